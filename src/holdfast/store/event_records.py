"""Frozen rows of events: what is emitted, what the outbox keeps, and how far readers are."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.kernel.names import check_name
from holdfast.store.records import NewJob, check_args, check_id

OutboxState = Literal["waiting", "published", "quarantined"]
LAG_COUNTED = 100_000  # nobody waits for a longer count
BEHIND = 100  # so many deliveries that wait behind another of their key take the room of one
RAW_LIMIT = 1024 * 1024  # bytes kept of a message that could not be understood
RAW_SHOWN = 4096  # bytes of it that a listing has
READER_KEPT = 30 * 86_400.0  # seconds after which a group that nobody reads for holds no events back
_set = msgspec.structs.force_setattr


class NewEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event to store. It checks itself when built, so a bad value never reaches a database."""

    id: str  # minted once, here; every delivery carries it
    type: str
    data: str = "null"  # JSON text
    key: str | None = None  # what it is about; events of one key have versions 1, 2, 3 …
    correlation_id: str | None = None
    causation_id: str | None = None
    trace: str | None = None

    def __post_init__(self) -> None:
        check_id(self.id)
        check_args(self.data)
        _set(self, "type", check_name("type", self.type))
        for kind in ("key", "correlation_id", "causation_id", "trace"):
            if (value := getattr(self, kind)) is not None:
                _set(self, kind, check_name(kind, value))


class Emitted(msgspec.Struct, frozen=True, gc=False):
    id: str
    version: int | None  # of its key; None: it has no key


class OutboxEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it is stored."""

    seq: int  # in the order of the inserts; within one key that is the order of the commits too
    id: str
    type: str
    key: str | None
    version: int | None
    data: str
    time: float
    correlation_id: str | None
    causation_id: str | None
    trace: str | None
    state: OutboxState
    position: (
        int | None
    )  # stamped when it is published, in serial commits: what is behind a position is complete
    published_at: float | None
    tries: int  # publications that failed
    error: str | None  # of the last one


class OutboxLag(msgspec.Struct, frozen=True):
    """How far publishing is behind."""

    waiting: int  # counted up to LAG_COUNTED
    oldest: float | None  # seconds since the oldest waiting one was emitted
    quarantined: int
    position: int  # the newest one stamped; 0: none


class GroupLag(msgspec.Struct, frozen=True):
    """What a group has not begun to handle, each counted up to the limit that was asked for."""

    waiting: dict[str, int]  # events that are not published, by type
    unread: dict[str, int] | None  # published events behind its cursor, by type; None: it has none
    queued: int  # deliveries


class Delivery(msgspec.Struct, frozen=True):
    """One event on its way to one group: the job that will handle it."""

    event_id: str
    job: NewJob


class Cursor(msgspec.Struct, frozen=True):
    """How far a group has read the store's own log of events."""

    group: str
    position: int
    seen_at: float  # when somebody last read for it


class Stored(msgspec.Struct, frozen=True):
    """Which of the deliveries were stored with our jobs, and whether promote must look at any of those."""

    answers: list[bool]
    arrived: bool = False


class NewStray(msgspec.Struct, frozen=True):
    """A message to be kept as it came, and why."""

    raw: bytes
    reason: str
    type: str | None = None  # of an event that nobody knows


class Stray(msgspec.Struct, frozen=True, kw_only=True):
    """A message that could not be understood, or an event of a type that nobody knows, kept as it came."""

    id: int
    transport: str
    group: str
    type: str | None  # None: it is no event
    raw: bytes
    reason: str
    at: float
