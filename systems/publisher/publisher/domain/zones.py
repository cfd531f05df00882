"""Wall clock times in a zone, also where clocks are changed: a time that is skipped is moved to the end of the gap, one that comes twice counts once."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def at(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """This time of this day, in UTC."""
    local = datetime.combine(day, clock, zone)
    found = local.astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return found  # of a time that comes twice, the first
    return _end_of_gap(found, zone)


def _end_of_gap(near: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which the clock was set forward, near this one."""
    before, after = near - timedelta(days=1), near + timedelta(days=1)
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)


def day_of(moment: datetime, zone: ZoneInfo) -> date:
    return moment.astimezone(zone).date()


def begin_of(day: date, zone: ZoneInfo) -> datetime:
    return at(day, time(0), zone)
