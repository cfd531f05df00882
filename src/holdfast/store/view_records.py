"""Frozen rows of views: what a projection has made of events, how far it has read, and what it could not take."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_text
from holdfast.kernel.show import show, storable
from holdfast.store.records import ARGS_LIMIT, check_id

ViewState = Literal["building", "serving", "old"]
ROW_LIMIT = ARGS_LIMIT  # bytes of JSON text kept in a view's row
EVENT_LIMIT = 2 * ARGS_LIMIT  # of an event that is set aside, with all that its envelope adds
ERROR_LIMIT = 2_000  # characters of what a projection raised
BATCH_LIMIT = 5_000  # rows, and events that are set aside, in one batch
DAY = 86_400.0
BURIED = 30 * DAY  # seconds for which the version of a deleted row is remembered
_INT8 = 2**63 - 1
_set = msgspec.structs.force_setattr


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far one generation of a view has read the log of events."""

    view: str
    generation: int
    state: ViewState
    start: int  # it has read what is behind this position; 0: all that there ever was
    position: int  # up to here
    history: bool  # events are kept for it, so that it can be built again from its start
    seen_at: float  # when somebody last ran it
    begun_at: float


class ViewRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the events of one key have come to."""

    key: str
    data: str | None  # JSON text; None: it was deleted
    source: str | None  # the key of the events that it is made of; None: of several, or of events without
    version: int | None  # of the newest of them; None: it has no single source
    position: int  # of the newest event in it: it only grows
    updated_at: float


class NewRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row as a projection has left it. It checks itself when built, so a bad value never reaches a database."""

    key: str
    data: str | None
    source: str | None = None
    version: int | None = None
    position: int

    def __post_init__(self) -> None:
        _set(self, "key", check_name("key", self.key))
        check_position("position", self.position, 1)
        if self.data is not None:
            check_text("data", self.data, ROW_LIMIT)
        if (self.source is None) != (self.version is None):
            raise UsageError(
                f"source and version go together: source={show(self.source)}, version={show(self.version)}."
            )
        if self.source is not None:
            _set(self, "source", check_name("source", self.source))
            check_int("version", self.version, 0, _INT8)


class SetAside(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a projection could not take, as it was."""

    position: int
    event_id: str
    event: str  # JSON text of the whole event: it outlives the log
    error: str
    key: str | None = None  # of the row that waits for it; None: not even that could be found out

    def __post_init__(self) -> None:
        check_position("position", self.position, 1)
        check_id(self.event_id)
        check_text("event", self.event, EVENT_LIMIT)
        if not isinstance(self.error, str):
            raise UsageError(f"An error is told as text, not {show(self.error)}.")
        _set(self, "error", storable(self.error)[:ERROR_LIMIT])
        if self.key is not None:
            _set(self, "key", check_name("key", self.key))


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is set aside for a generation of a view."""

    view: str
    generation: int
    position: int
    event_id: str
    key: str | None
    event: str
    error: str
    tries: int
    at: float  # when it was first set aside
    tried_at: float


class ViewBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of the events in (after, upto], to be kept in one commit with the checkpoint."""

    view: str
    generation: int
    after: int  # the checkpoint that this was made from
    upto: int
    seen: tuple[
        str, ...
    ] = ()  # ids of the events that were read, up to there; with others in the log nothing is kept
    rows: tuple[NewRow, ...] = ()
    aside: tuple[SetAside, ...] = ()  # new ones, and others whose next try failed
    settled: tuple[int, ...] = ()  # positions of events that were set aside, and are in the rows now

    def __post_init__(self) -> None:
        _set(self, "view", check_name("view", self.view))
        check_int("generation", self.generation, 1, _INT8)
        check_position("after", self.after)
        check_position("upto", self.upto, self.after)
        _set(self, "seen", _each(self.seen, str, "seen"))
        _set(self, "rows", _each(self.rows, NewRow, "rows"))
        _set(self, "aside", _each(self.aside, SetAside, "aside"))
        _set(self, "settled", _each(self.settled, int, "settled"))
        for position in self.settled:
            check_position("settled", position, 1)
        _once("rows", [row.key for row in self.rows])
        _once("aside", [event.position for event in self.aside])


def _each(items: object, kind: type, what: str) -> tuple[object, ...]:
    if not isinstance(items, list | tuple) or not all(isinstance(item, kind) for item in items):
        raise UsageError(f"The {what} of a batch are a list of {kind.__name__}, not {show(items)}.")
    if len(items) > BATCH_LIMIT:
        raise UsageError(
            f"{len(items):,} {what} are too many for one batch: at most {BATCH_LIMIT:,}. Make it smaller."
        )
    return tuple(items)


def _once(what: str, names: list[object]) -> None:
    if len(set(names)) < len(names):
        raise UsageError(f"One of the {what} of a batch is there twice. Give the last of each.")


def check_position(kind: str, position: object, low: int = 0) -> int:
    return check_int(kind, position, low, _INT8)


class Loaded(msgspec.Struct, frozen=True):
    """The rows that a batch goes on from."""

    rows: tuple[ViewRow, ...]  # also deleted ones; a key without a row has none
    held: frozenset[str]  # keys for which an event is set aside: what comes after it has to wait


def behind(prefix: str) -> str | None:
    """The first text after all that begin with this one, in the order of code points; None: there is none."""
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        if code <= 0x10FFFF:
            return prefix[:place] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)
    return None
