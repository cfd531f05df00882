"""DateTime on SQLite, as it is on PostgreSQL: with `timezone=True` moments, kept and given back in UTC; else without a zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.dialects.sqlite.base import DATETIME

from holdfast.kernel.errors import UsageError


class Moment(DATETIME):
    """SQLite has no type for it: the text has no zone, so what has another one must be turned into UTC, or refused."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        render = super().bind_processor(dialect)
        assert render is not None
        check = _in_utc if self.timezone else _without_zone
        return lambda value: render(check(value) if isinstance(value, datetime) else value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        read = super().result_processor(dialect, coltype)
        if not self.timezone or read is None:
            return read
        return lambda text: None if (found := read(text)) is None else _as_utc(found)


def _in_utc(value: datetime) -> datetime:
    """One without a zone is the machine's local time, as for asyncpg."""
    return value.astimezone(UTC)


def _without_zone(value: datetime) -> datetime:
    if value.utcoffset() is not None:
        raise UsageError(
            f"{value!r} has a time zone, which would be lost, and the column is DateTime(): make it DateTime(timezone=True)."
        )
    return value


def _as_utc(value: datetime) -> datetime:
    """What others wrote into the file may name a zone."""
    return value.replace(tzinfo=UTC) if value.utcoffset() is None else value.astimezone(UTC)
