"""Alerts: what holds that a person should know of, and what was told about it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

CAUSES = 1_000  # of one kind that are looked at
COUNTED = 10_000  # of one cause, no more are counted


class Seen(msgspec.Struct, frozen=True):
    """Something that holds now. The number says how much of it: jobs, seconds, nodes."""

    kind: str
    cause: str
    number: int


class Looked(msgspec.Struct, frozen=True):
    """What was seen, and the kinds of which there may be more than that. None stands for all kinds of programs."""

    seen: tuple[Seen, ...]
    cut: frozenset[str | None] = frozenset()


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An alert from its beginning to its end. Of one kind and cause one is open at a time."""

    id: str
    kind: str
    cause: str
    number: int
    opened_at: float
    told_at: float  # when it was told last
    told_number: int
    quiet_since: float | None = None  # it does not hold any more; it ends when that lasts
    ended_at: float | None = None


class Kind(StrEnum):
    """Those that Holdfast looks for itself. Programs have others of their own."""

    DEAD = "dead"
    UNKNOWN = "unknown"
    NEEDS_OPERATOR = "needs_operator"
    QUARANTINED = "quarantined"
    BREAKER = "breaker"
    OUTBOX_LAG = "outbox_lag"
    VIEW_LAG = "view_lag"
    WAITING = "waiting"
    EXPIRING = "expiring"


OF_HOLDFAST = frozenset(map(str, Kind))


def in_bounds(found: dict[str, list[Seen]], raised: list[Seen]) -> Looked:
    """Each source was asked for one more than is taken, so that it is known which were cut."""
    cut: set[str | None] = {kind for kind, seen in found.items() if len(seen) > CAUSES}
    if len(raised) > CAUSES:
        cut |= {None, str(Kind.EXPIRING)}
    parts = [*found.values(), raised]
    return Looked(tuple(each for part in parts for each in part[:CAUSES]), frozenset(cut))
