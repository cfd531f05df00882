"""Fold events into rows, in the order of their positions. Pure: rows and events go in, rows and what failed come out.

Each row is made of its own events alone. So when one event cannot be taken, only its row waits for it: that event is set
aside, and what comes later for the same row with it. Taken up again in order, they give the row that a rebuild would give.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.events import envelope
from holdfast.events.event import AnyEvent, Event
from holdfast.kernel.clock import moment
from holdfast.kernel.codec import decode_stored
from holdfast.store.event_records import OutboxEvent
from holdfast.store.view_records import Aside, Loaded, NewRow, SetAside
from holdfast.views.projection import Projection

OVERTAKEN = "Its row is at position {} already, without it. Rebuild the view."
# Whatever a plain function does is its failure: an exit would end every worker that comes to the event, one after the other, and
# a cancellation, which nobody has asked for, would end the view without a word.
THEIRS = (Exception, SystemExit, asyncio.CancelledError)
WAITS = "It waits for an event before it, of the same row, that is set aside."


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a view hears, and the row it is for; or why that cannot be found out."""

    position: int
    event_id: str
    raw: OutboxEvent | Aside  # as it is stored
    is_heard: bool = True
    event: AnyEvent | None = None
    key: str | None = None
    error: str | None = None

    def aside(self, error: str) -> SetAside:
        body = self.raw.event if isinstance(self.raw, Aside) else envelope.encode(self.raw).decode()
        return SetAside(position=self.position, event_id=self.event_id, event=body, key=self.key, error=error)


def hear(projection: Projection, events: Iterable[OutboxEvent]) -> list[Heard]:
    """Those of a stretch of the log that the view hears."""
    return [
        _heard(projection, Heard(position=each.position or 0, event_id=each.id, raw=each))
        for each in events
        if projection.hears(each.type)
    ]


def hear_again(projection: Projection, asides: Iterable[Aside]) -> list[Heard]:
    """Those that were set aside; the function, the key, or what it hears, may be another by now."""
    return [
        _heard(projection, Heard(position=each.position, event_id=each.event_id, raw=each)) for each in asides
    ]


def _heard(projection: Projection, found: Heard) -> Heard:
    try:
        if isinstance(found.raw, Aside) and not projection.hears(
            envelope.read(found.raw.event.encode()).type
        ):
            return msgspec.structs.replace(found, is_heard=False)
        event = _read(found.raw, projection.data_type)
        return msgspec.structs.replace(found, event=event, key=projection.key_of(event))
    except THEIRS as error:
        return msgspec.structs.replace(found, error=projection.told(error))


def _read(raw: OutboxEvent | Aside, data_type: Any) -> AnyEvent:
    """The event as the function takes it."""
    if isinstance(raw, Aside):
        return envelope.read(raw.event.encode()).event(data_type)
    return Event(
        id=raw.id,
        type=raw.type,
        data=decode_stored(raw.data, data_type),
        key=raw.key,
        version=raw.version,
        time=moment(raw.time),
        source=envelope.SOURCE,
        correlation_id=raw.correlation_id,
        causation_id=raw.causation_id,
        trace=raw.trace,
    )


class Fold:
    """One batch: what rows have become, and what could not be taken."""

    def __init__(self, projection: Projection, loaded: Loaded) -> None:
        self._projection = projection
        self._rows = {
            row.key: NewRow(
                key=row.key, data=row.data, source=row.source, version=row.version, position=row.position
            )
            for row in loaded.rows
        }
        self._held = set(loaded.held)
        self._changed: dict[str, NewRow] = {}
        self.aside: list[SetAside] = []
        self.late: list[Heard] = []  # ignored: the row has a newer version of the same key

    @classmethod
    def again(cls, projection: Projection, loaded: Loaded) -> Fold:
        """For events that were set aside: nothing holds a row but what fails now."""
        return cls(projection, Loaded(loaded.rows, frozenset()))

    @property
    def rows(self) -> tuple[NewRow, ...]:
        return tuple(self._changed.values())

    def take(self, heard: Heard) -> bool:
        """False: this event could not be taken. What only waits for another is set aside too, and no failure."""
        if heard.key in self._held:
            self.aside.append(heard.aside(WAITS))
            return True
        if (error := self.project(heard)) is None:
            return True
        self.aside.append(heard.aside(error))
        if heard.key is not None:
            self._held.add(heard.key)
        return False

    def take_again(self, heard: Heard) -> bool:
        """Whether an event that was set aside is in its row now, or in none. What waits behind another is left as it is."""
        if not heard.is_heard:
            return True
        if (error := self._overtaken(heard)) is None:
            return heard.key not in self._held and self.take(heard)
        # Its row does not wait for what only a rebuild can bring, or it would wait until then.
        self.aside.append(msgspec.structs.replace(heard, key=None).aside(error))
        return False

    def _overtaken(self, heard: Heard) -> str | None:
        row = None if heard.key is None else self._rows.get(heard.key)
        return OVERTAKEN.format(row.position) if row is not None and row.position >= heard.position else None

    def project(self, heard: Heard) -> str | None:
        """Bring its row up to date; returns what is wrong when that fails."""
        if heard.event is None or heard.key is None:
            return heard.error or "Its row is not known."
        row = self._rows.get(heard.key)
        if (overtaken := self._overtaken(heard)) is not None:
            return overtaken
        if row is not None and self._projection.late == "ignore" and _is_late(row, heard.event):
            self.late.append(heard)
            return None
        try:
            data = self._projection.project(None if row is None else row.data, heard.event)
        except THEIRS as error:
            return self._projection.told(error)
        source, version = _source(row, heard.event)
        made = NewRow(key=heard.key, data=data, source=source, version=version, position=heard.position)
        self._rows[heard.key] = self._changed[heard.key] = made
        return None


def _is_late(row: NewRow, event: AnyEvent) -> bool:
    """Whether the row has this version of the event's key, or a newer one."""
    return row.version is not None and row.source == event.key and (event.version or 0) <= row.version


def _source(row: NewRow | None, event: AnyEvent) -> tuple[str | None, int | None]:
    """The key whose versions the row goes by. A row of several keys has none: its position is its version."""
    if event.key is None or event.version is None or (row is not None and row.source != event.key):
        return None, None
    return event.key, event.version


def keys_of(heard: Sequence[Heard]) -> list[str]:
    """Each row's key once."""
    return list(dict.fromkeys(each.key for each in heard if each.key is not None))
