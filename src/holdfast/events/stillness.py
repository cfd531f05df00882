"""Whether events are still on their way: for a worker that leaves when there is nothing to do."""

from __future__ import annotations

from holdfast.events.bus import Bus
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import TROUBLE, TransportUnavailable
from holdfast.store.ports import Store

_PATIENCE = (
    5.0  # seconds without a change after which what waits is waiting for a person, or for another program
)


class Stillness:
    """Asked whenever there is no job. What waits behind a quarantined event does not keep a worker for ever."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store, self._bus = store, bus
        self._seen: object = None
        self._since = monotonic()
        self._was_still = False

    async def is_reached(self) -> bool:
        """At the second look that finds the same: the last event may have become a job since it was looked for jobs."""
        if self._bus.catalog.is_empty:
            return True
        try:
            behind, seen = await self._look()
        except (*TROUBLE, TransportUnavailable):
            return False
        if seen != self._seen:
            self._seen, self._since, self._was_still = seen, monotonic(), False
        is_still = not behind or monotonic() - self._since > _PATIENCE
        was_still, self._was_still = self._was_still, is_still
        return is_still and was_still

    async def _look(self) -> tuple[bool, object]:
        """Whether there is anything, and what it looks like."""
        lag = await self._store.outbox.lag()
        names = [group.name for group in self._bus.groups]
        if self._bus.wire is None:
            cursors = {each.group: each.position for each in await self._store.inbox.cursors()}
            unread = [lag.position - cursors.get(name, lag.position) for name in names]
        else:
            transport = await self._bus.wire.ready()
            unread = [await transport.backlog(name) or 0 for name in names]
        return bool(lag.waiting or any(unread)), (lag.waiting, lag.position, unread)
