"""From a call to a stored event: its data is checked, the caller's story is carried on, and the store is asked once."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.events import versions
from holdfast.events.catalog import Catalog, EventType
from holdfast.events.envelope import DATA_LIMIT
from holdfast.jobs.blocking import Portal, inner
from holdfast.jobs.stories import story_in
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import context
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.ids import new_id
from holdfast.kernel.tracing import traceparent, tracer
from holdfast.store.event_records import Emitted, NewEvent
from holdfast.store.ports import Store

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
