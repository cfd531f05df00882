"""What a program sees of its events on their way: what waits, what is set aside, and what a person does about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from holdfast.events.bus import Bus
from holdfast.events.redriving import redrive
from holdfast.jobs.options import moment
from holdfast.store.event_records import Cursor, OutboxEvent, OutboxLag, OutboxState, Stray
from holdfast.store.ports import Store


class OutboxView:
    """`hf.outbox`."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store, self._bus = store, bus

    async def lag(self) -> OutboxLag:
        """How far publishing is behind."""
        return await self._store.outbox.lag()

    async def get(self, event_id: str) -> OutboxEvent | None:
        """The event as it is stored, or None."""
        return await self._store.outbox.get(event_id)

    async def find(
        self,
        *,
        state: OutboxState | None = None,
        type: str | None = None,  # noqa: A002  the word of the envelope
        key: str | None = None,
        correlation_id: str | None = None,
        limit: int = 100,
    ) -> list[OutboxEvent]:
        """Newest first."""
        return await self._store.outbox.find(
            state=state, type=type, key=key, correlation_id=correlation_id, limit=limit
        )

    async def groups(self) -> list[Cursor]:
        """How far each group has read, where the database carries the events."""
        return await self._store.inbox.cursors()

    async def requeue(self, ids: Sequence[str], *, by: str = "code") -> list[bool]:
        """Publish quarantined events after all. False: it was not quarantined."""
        return await self._store.outbox.requeue(ids, actor=by)

    async def drop(self, ids: Sequence[str], *, reason: str, by: str = "code") -> list[bool]:
        """Give quarantined events up: those behind them of the same key go on."""
        return await self._store.outbox.drop(ids, actor=by, reason=reason)

    async def redrive(
        self,
        *,
        since: float | datetime | None = None,
        after: int = 0,
        told: Callable[[int, int], None] | None = None,
    ) -> int:
        """Publish again what was published from the moment `since`, or behind a position: for a broker that has lost it.

        Ids and bytes are the same, so groups that had an event ignore it. `told` hears the number so far and the position.
        """
        known = partial(self._bus.make_known, "redrive")
        return await redrive(
            self._store, self._bus.wire, make_known=known, since=moment(since), after=after, told=told
        )

    async def strays(self, *, limit: int = 100) -> list[Stray]:
        """Messages that no group could understand, as they came; newest first."""
        return await self._store.strays.find(limit=limit)
