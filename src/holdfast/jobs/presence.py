"""A worker's row for people who ask who is alive: written at its start, renewed while it lives, removed when it leaves.

Nothing depends on it, so a row that cannot be written is noted, and the worker goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.kernel.clock import monotonic, patience
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Periodic
from holdfast.kernel.spawn import end, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.store.worker_records import NewWorker

TTL = 30.0  # seconds without a sign of life after which a worker is taken for dead, at most
_PATIENCE = 2.0  # seconds for one write


class Presence:
    """`look` is called often, on any one loop, and begins a write when one is due."""

    def __init__(
        self, worker: NewWorker, *, ttl: float = TTL, is_draining: Callable[[], bool] = lambda: False
    ) -> None:
        self._worker, self._ttl, self._is_draining = worker, min(ttl, TTL), is_draining
        self._due = 0.0
        self._told = False  # whether the row says that it is draining
        self._writing: asyncio.Task[None] | None = None
        self._is_well = True
        self._has_begun = False

    async def begin(self, store: Store) -> None:
        """Write the row, so that who asks after this sees it."""
        self._has_begun, self._due = True, monotonic() + self._pause()
        await self._try(lambda: store.workers.register(self._worker, ttl=self._ttl))

    def look(self, store: Store) -> None:
        """It must not wait: leases are renewed on this loop."""
        if not self._has_begun or (self._writing is not None and not self._writing.done()):
            return
        if monotonic() >= self._due or self._is_draining() is not self._told:
            self._due = monotonic() + self._pause()
            self._writing = spawn(self._try(lambda: self._beat(store)), name="presence")

    async def rest(self) -> None:
        """End what is being written."""
        if (writing := self._writing) is not None:
            self._writing = None
            await end(writing)

    async def end(self, store: Store) -> None:
        """It leaves in order: nobody shall look for what became of it."""
        if self._has_begun:
            await self._try(lambda: store.workers.leave(self._worker.name))

    def _pause(self) -> float:
        return jittered(self._ttl / 3, 0.1)

    async def _beat(self, store: Store) -> None:
        self._told = self._is_draining()
        if not await store.workers.beat(self._worker.name, ttl=self._ttl, draining=self._told):
            await store.workers.register(self._worker, ttl=self._ttl)  # it was forgotten, or never known

    async def _try(self, write: Callable[[], Awaitable[object]]) -> None:
        try:
            async with patience(_PATIENCE):
                await write()
        except Exception as error:  # noqa: BLE001  whatever it is, work goes on
            if self._is_well:
                note("worker.not_shown", worker=self._worker.name, error=repr(error))
            self._is_well = False
        else:
            self._is_well = True


class PresenceService(Periodic):
    """The same for a process that has no renewer, such as a relay."""

    def __init__(self, store: Store, presence: Presence) -> None:
        super().__init__("presence", self._look, every=1.0)
        self._store, self._presence = store, presence

    async def start(self) -> None:
        await self._presence.begin(self._store)
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        await self._presence.rest()
        await self._presence.end(self._store)

    async def _look(self) -> None:
        self._presence.look(self._store)
