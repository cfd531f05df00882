"""Times that people type, in their zone, and times as words."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from publisher.domain.zones import at as moment_at


def typed(text: str, zone: ZoneInfo) -> float | None:
    """What a field of type datetime-local has: 2026-11-20T18:00. None when it is no time."""
    try:
        local = datetime.fromisoformat(text)
        if local.tzinfo is not None:  # it would be another time than the one that was typed
            return None
        return moment_at(local.date(), time(local.hour, local.minute), zone).timestamp()
    except (ValueError, OverflowError):
        return None


def field_of(at: float | None, zone: ZoneInfo) -> str:
    """The same the other way round."""
    return "" if at is None else datetime.fromtimestamp(at, zone).strftime("%Y-%m-%dT%H:%M")


def words_of(at: float, zone: ZoneInfo) -> str:
    """Fri 20 Nov, 18:00."""
    return datetime.fromtimestamp(at, zone).strftime("%a %-d %b, %H:%M")


def day_of(at: float, zone: ZoneInfo) -> date:
    return datetime.fromtimestamp(at, zone).date()


def begin_of(day: date, zone: ZoneInfo) -> float:
    return moment_at(day, time(0), zone).timestamp()


def typed_day(text: str, fallback: date) -> date:
    """2026-11-18, between the years 1990 and 2100."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return fallback
    return found if 1990 <= found.year < 2100 else fallback


def utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
