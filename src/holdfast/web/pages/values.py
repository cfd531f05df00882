"""How values are written: counts, sizes, durations, times. Plain functions from a value to a text."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show

NOTHING = "–"  # noqa: RUF001  the dash that stands for nothing
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_SHORT = ("", " k", " M", " B", " T")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def number(value: float | None, capped: int | None = None) -> str:
    """412,716; counted only up to 10,000: 10,000+."""
    if value is None:
        return NOTHING
    if capped is not None and value >= capped:
        return f"{capped:,}+"
    return f"{value:,}" if isinstance(value, int) else f"{round(value, 1):,}".removesuffix(".0")


def short(value: float | None) -> str:
    """1.2 M: for navigation and ticks, with the full number near."""
    return NOTHING if value is None else _scaled(float(value), _SHORT)


def size(value: float | None) -> str:
    """8.2 MB, 940 kB."""
    if value is None:
        return NOTHING
    return _scaled(float(value), tuple(f" {unit}" for unit in _SIZES))


def percent(share: float | None) -> str:
    """A part of 1: 0.8 %, 67.7 %. 100 % only when it is all, 0 % only when it is nothing."""
    if share is None:
        return NOTHING
    value = share * 100
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.1f}".removesuffix(".0") + " %"


def duration(seconds: float | None) -> str:
    """38 ms, 1.9 s, 12 s, 2 min 12 s, 3 h 39 min, 4 d 2 h."""
    if seconds is None:
        return NOTHING
    if seconds < 0:
        return f"−{duration(-seconds)}"  # noqa: RUF001  a minus
    if round(seconds * 1000) < 1000:
        return f"{round(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for large, small in ((_DAY, _HOUR), (_HOUR, _MINUTE), (_MINUTE, 1)):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {_UNIT[large]}" + (f" {rest} {_UNIT[small]}" if rest else "")
    return f"{whole} s"


_UNIT = {_DAY: "d", _HOUR: "h", _MINUTE: "min", 1: "s"}


def moment(value: datetime | float) -> datetime:
    """A time with its zone. Seconds since 1970 will do."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise UsageError(
                f"The time {value.isoformat()} has no zone. Give one with its zone, such as UTC."
            )
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{show(value)} is no time; give a datetime with its zone, or seconds since 1970.")
    return datetime.fromtimestamp(value, UTC)


def clock_time(at: datetime, now: datetime, zone: tzinfo, *, seconds: bool = False) -> str:
    """Today 14:05; in this year 18 Nov, 14:05; else 18 Nov 2026."""
    there, today = at.astimezone(zone), now.astimezone(zone)
    clock = there.strftime("%H:%M:%S" if seconds else "%H:%M")
    if there.date() == today.date():
        return clock
    day = f"{there.day} {_MONTHS[there.month - 1]}"
    return f"{day}, {clock}" if there.year == today.year or seconds else f"{day} {there.year}"


def distance(seconds: float) -> str | None:
    """2 s, 13 min, 3 h 39 min, 18 h. None from a day on: then the date says more."""
    whole = int(abs(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 10 * _HOUR and whole % _HOUR >= _MINUTE:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _HOUR} h" if whole < _DAY else None


def _scaled(value: float, units: tuple[str, ...]) -> str:
    size, place = abs(value), 0
    while round(size, 0 if size >= 10 else 1) >= 1000 and place < len(units) - 1:
        size, place = size / 1000, place + 1
    digits = 0 if (place == 0 and value == int(value)) or size >= 99.95 else 1
    text = f"{size:.{digits}f}".removesuffix(".0") if digits else f"{size:.0f}"
    return f"{'−' if value < 0 else ''}{text}{units[place]}"  # noqa: RUF001  a minus
