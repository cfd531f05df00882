"""When a cron expression fires, as pure math: no clock is read and nothing is stored.

Local clocks jump. An entry that names its hours ("30 2 * * *") fires once for each local time it names: at the gap's
end when that time is skipped, at the first occurrence when it is repeated. An entry whose hour begins with a star
("*/5 * * * *") follows real time: it fires whenever the local clock shows a time that matches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show

SHORT = {  # as crontab has them
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_LATEST = datetime(9000, 12, 31, tzinfo=UTC)
_MOST = 10_000  # times of one answer
_FAR = timedelta(
    days=366 * 50
)  # the fifth Monday of a February comes every 28 years, and less often around 2100


class Cron:
    """A cron expression on the clock of a zone: when it fires, as schedules compute it.

    `Cron("0 18 * * 1-5", tz="Europe/Zurich").between(a, b)`. Times that it gives are in UTC; those that it is given have a zone.
    """

    def __init__(self, expression: str, *, tz: str = "UTC") -> None:
        check_cron(expression, tz)
        self.expression, self.tz = expression, tz

    def between(self, after: datetime, until: datetime) -> list[datetime]:
        """The times with `after` < time <= `until`, in order: neighbouring spans share none, and miss none.

        None when `until` is not later. More than 10,000 are refused: ask for a shorter span.
        """
        found = list(islice(self.fires(after, until), _MOST + 1))
        if len(found) > _MOST:
            raise UsageError(
                f"{self!r} fires more than {_MOST:,} times between {after.isoformat()} and {until.isoformat()}. "
                "Ask for a shorter span, and go on from its end."
            )
        return found

    def next(self, after: datetime) -> datetime:
        """The first time later than `after`."""
        _check_moment("after", after)
        for moment in self.fires(after, min(after.astimezone(UTC), _LATEST - _FAR) + _FAR):
            return moment
        raise UsageError(f"{self!r} does not fire within 50 years after {after.isoformat()}.")

    def fires(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """As `between`, however many there are, one after the other."""
        return fires(self.expression, self.tz, after, until)

    def told(self) -> str:
        """For people."""
        return f"{self.expression} ({self.tz})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cron) and (self.expression, self.tz) == (other.expression, other.tz)

    def __hash__(self) -> int:
        return hash((self.expression, self.tz))

    def __repr__(self) -> str:
        return f"Cron({self.expression!r}, tz={self.tz!r})"


def fires(expression: str, zone: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """The nominal times in (after, until], in UTC and in order; splitting the interval anywhere changes nothing."""
    check_cron(expression, zone)
    expression = SHORT.get(expression, expression)
    kind = _real if _hour(expression).startswith("*") else _fixed
    return kind(expression, ZoneInfo(zone), _whole("after", after), _whole("until", until))


def check_cron(expression: str, zone: str) -> None:
    """Return when both can be used."""
    check_name("cron expression", expression)
    check_name("time zone", zone)
    if expression.startswith("@") and expression not in SHORT:
        raise UsageError(
            f"There is no cron expression {show(expression)}. Write 5 fields, or one of {', '.join(SHORT)}."
        )
    expression = SHORT.get(expression, expression)
    if len(expression.split()) != 5:
        raise UsageError(
            f"The cron expression {show(expression)} needs 5 fields: minute, hour, day of month, month, day of week."
        )
    try:
        CronSim(expression, datetime.fromtimestamp(0, UTC))
    except (CronSimError, ValueError, AssertionError) as error:
        raise UsageError(
            f"The cron expression {show(expression)} cannot be read: {error}. Mend that field."
        ) from error
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"There is no time zone {show(zone)}. Use a name such as Europe/Zurich, or UTC."
        ) from error


# --- the two kinds of entry ---


def _fixed(expression: str, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Once for each local time that is named."""
    last = after
    for wall in CronSim(expression, _wall(after, zone)):
        moment = _first_occurrence(wall, zone)
        if moment > until:
            return
        if moment > last:  # several skipped times share the gap's end
            last = moment
            yield moment


def _real(expression: str, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Whenever the local clock matches. CronSim alone loses an hour where a jump is no full hour (Lord Howe)."""
    for begin, end, offset in _stretches(zone, after, until):
        for wall in CronSim(expression, begin.replace(tzinfo=None) + offset):
            moment = wall.replace(tzinfo=UTC) - offset
            if moment > end:
                break
            yield moment


# --- local time ---


def _first_occurrence(wall: datetime, zone: ZoneInfo) -> datetime:
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if _wall(moment, zone) == wall:
        return moment
    # It is skipped: read with the offset behind the gap it lies before the jump, and the other way round.
    return _jump(zone, wall.replace(tzinfo=zone, fold=1).astimezone(UTC), moment)


def _stretches(
    zone: ZoneInfo, after: datetime, until: datetime
) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """Cut (after, until] where the local clock jumps: parts (begin, end] with one offset each, at most a day long."""
    while after < until:
        first, end = after + _SECOND, min(after + _DAY, until)
        offset = _offset(first, zone)
        if _offset(end, zone) != offset:
            end = _jump(zone, first, end) - _SECOND
        yield after, end, offset
        after = end


def _jump(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The first second after `low` that has another offset. No zone jumps twice within a day."""
    before = _offset(low, zone)
    seconds = range(int((high - low) / _SECOND))
    return low + _SECOND * bisect_left(
        seconds, True, key=lambda n: _offset(low + _SECOND * n, zone) != before
    )


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    """What a clock on the wall shows then."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return _wall(moment, zone) - moment.replace(tzinfo=None)


# --- checks ---


def _hour(expression: str) -> str:
    return expression.split()[1]


def _whole(kind: str, moment: datetime) -> datetime:
    """In UTC, cut to the second: every fire is on a whole one."""
    _check_moment(kind, moment)
    return moment.astimezone(UTC).replace(microsecond=0)


def _check_moment(kind: str, moment: object) -> None:
    if not isinstance(moment, datetime):
        raise UsageError(f"`{kind}` is {show(moment)}. Pass a datetime with a time zone.")
    if moment.utcoffset() is None:
        raise UsageError(
            f"`{kind}` is {moment.isoformat()}, without a time zone. "
            "Say of which: `datetime.now(UTC)`, or `moment.replace(tzinfo=ZoneInfo(…))`."
        )
    if not 1970 <= moment.year <= _LATEST.year:
        raise UsageError(f"`{kind}` is {moment.isoformat()}. Pass a time between the years 1970 and 9000.")
