"""When a term is open: instants, written in the university's zone, and judged by the time at which a submission arrived."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo


class Door(StrEnum):
    NOT_YET = "not_yet"
    OPEN = "open"
    GRACE = "grace"  # the deadline has passed, and what was begun before may still arrive
    CLOSED = "closed"


@dataclass(frozen=True)
class Window:
    """`closes_at` belongs to the open time: what arrives in that second is in time."""

    opens_at: float  # seconds since 1970
    closes_at: float
    grace: float = 0.0  # seconds

    def __post_init__(self) -> None:
        if self.closes_at <= self.opens_at:
            raise ValueError("A term closes after it opens.")
        if not 0 <= self.grace <= 86_400:
            raise ValueError(f"grace is from 0 to 86,400 seconds, not {self.grace:g}.")

    def door(self, arrived_at: float) -> Door:
        if arrived_at < self.opens_at:
            return Door.NOT_YET
        if arrived_at < self.closes_at + 1:
            return Door.OPEN
        return Door.GRACE if arrived_at < self.closes_at + 1 + self.grace else Door.CLOSED


def instant(local: datetime, zone: ZoneInfo) -> float:
    """A wall clock time of the university; of one that comes twice, or that clocks skip, the later reading, for the applicant."""
    if local.tzinfo is not None:
        raise ValueError("Give the time of the wall clock, without a zone.")
    return max(local.replace(tzinfo=zone, fold=fold).astimezone(UTC).timestamp() for fold in (0, 1))
