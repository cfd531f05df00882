"""From a call to a stored event: its data is checked, the caller's story is carried on, and the store is asked once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec.structs import replace

from holdfast.events import versions
from holdfast.events.catalog import Catalog, EventType
from holdfast.events.envelope import DATA_LIMIT
from holdfast.jobs.blocking import Portal, inner
from holdfast.jobs.stories import story_in
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import context
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.show import show
from holdfast.kernel.tracing import traceparent, tracer
from holdfast.store.event_records import Emitted, NewEvent
from holdfast.store.ports import Store

Item: TypeAlias = "tuple[EventType[Any] | str, Any] | tuple[EventType[Any] | str, Any, str | None]"
_BEFORE = '{"data":'


class Emitter:
    """Stores the events of one program."""

    _store: Store
    _portal: Portal

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def send_to(self, store: Store, portal: Portal) -> None:
        """From now on events are stored there."""
        self._store, self._portal = store, portal

    def build(self, type_: EventType[Any] | str, data: Any, key: str | None, tx: object) -> NewEvent:
        declared, around, event_id = self._catalog.emitted(type_), context(), new_id()
        return NewEvent(
            id=event_id,
            type=declared.name,
            data=_written(declared, data),
            key=key,
            correlation_id=story_in(tx, event_id, around.correlation_id) or event_id,
            causation_id=around.job_id or around.causation_id,
            trace=traceparent(),
        )

    async def emit(
        self,
        type_: EventType[Any] | str,
        data: Any,
        *,
        key: str | None,
        tx: object,
        expect: int | None = None,
    ) -> Emitted:
        event = self.build(type_, data, key, tx)
        if (tracing := tracer()) is None:
            return await self._emit(event, expect, tx)
        with tracing.sends(event.type, None, [event.id], event.correlation_id) as span:
            return await self._emit(replace(event, trace=span.traceparent or event.trace), expect, tx)

    async def emit_many(self, items: Iterable[Item], *, tx: object) -> list[Emitted]:
        """All of them or none, in one statement; without `tx` they are one story, as in a transaction."""
        events: list[NewEvent] = []
        for type_, data, key in map(_item, items):
            event = self.build(type_, data, key, tx)
            if tx is None and events and context().correlation_id is None:
                event = replace(event, correlation_id=events[0].correlation_id)
            events.append(event)
        if not events:
            return []
        if (tracing := tracer()) is None:
            return await self._store.outbox.emit(events, tx=inner(tx))
        ids = [event.id for event in events]
        with tracing.sends(events[0].type, None, ids, events[0].correlation_id) as span:
            told = [replace(event, trace=span.traceparent or event.trace) for event in events]
            return await self._store.outbox.emit(told, tx=inner(tx))

    async def _emit(self, event: NewEvent, expect: int | None, tx: object) -> Emitted:
        if expect is not None:
            return await self._emit_expecting(event, expect, inner(tx))
        [emitted] = await self._store.outbox.emit([event], tx=inner(tx))
        return emitted

    async def _emit_expecting(self, event: NewEvent, version: int, tx: object) -> Emitted:
        """Before it is stored: whoever goes on after the conflict has not emitted anything."""
        if tx is None:
            async with self._store.transaction() as own:
                return await self._emit_expecting(event, version, own)
        await versions.expect(self._store, versions.needed(event.key), version, tx=tx)
        [emitted] = await self._store.outbox.emit([event], tx=tx)
        return emitted

    def emit_many_sync(self, items: Iterable[Item], *, tx: object) -> list[Emitted]:
        return self._portal.run_with(
            tx, lambda: self.emit_many(items, tx=tx), instead="`await hf.emit_many(…)`"
        )

    def emit_sync(
        self,
        type_: EventType[Any] | str,
        data: Any,
        *,
        key: str | None,
        tx: object,
        expect: int | None = None,
    ) -> Emitted:
        return self._portal.run_with(
            tx, lambda: self.emit(type_, data, key=key, tx=tx, expect=expect), instead="`await hf.emit(…)`"
        )


def _item(given: Any) -> tuple[EventType[Any] | str, Any, str | None]:
    if not isinstance(given, list | tuple) or not 2 <= len(given) <= 3:
        raise UsageError(
            f"An event of many is (type, data) or (type, data, key), not {show(given)} ({type(given).__name__})."
        )
    type_, data, *key = given
    return type_, data, key[0] if key else None


def _written(declared: EventType[Any], data: Any) -> str:
    """Within an object, as it will be on the wire: so deep and so large may it be."""
    where = f"event {declared.name}"
    text = encode({"data": data}, limit=DATA_LIMIT, where=where)[len(_BEFORE) : -1]
    if declared.data is not Any:
        try:
            decode_stored(text, declared.data)
        except PayloadError as error:
            raise PayloadError(f"{where}: its data is not what was declared: {error}") from None
    return text
