"""What somebody must do for all: promote, rescue, expire, prune. One worker at a time does it, under a lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.jobs.deaths import Deaths
from holdfast.kernel.clock import look_after, monotonic, patience
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Looping
from holdfast.kernel.spawn import spawn
from holdfast.kernel.telemetry import note
from holdfast.store.bell import ARRIVED
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.store.worker_records import KEPT as DEAD_KEPT

LEASE_NAME = "holdfast:upkeep"
TTL = 5.0  # seconds; a killed holder's successor begins after that
KEEP = 7 * 86_400.0  # seconds for which finished jobs and their results are kept
_SEEN_KEPT = 30 * 86_400.0  # seconds for which it is known which versions a reader has seen
_PAUSE = 0.1  # seconds between turns
_PART = 500  # rows of one turn
_STUCK = 30.0  # seconds in the middle of a statement after which a worker is taken for one that stands still
_PATIENCE = 1.0  # seconds for giving up the lease; it ends by itself


class Duty:
    """One thing to be done every so often; at once again while it is not done with."""

    def __init__(self, name: str, every: float, act: Callable[[], Awaitable[bool]]) -> None:
        self.name, self._every, self._act = name, every, act
        self._due = 0.0

    def hurry(self) -> None:
        self._due = 0.0

    async def perform(self) -> None:
        if monotonic() < self._due:
            return
        try:
            more = await self._act()
        except Exception as error:  # noqa: BLE001  one duty's failure must not end the others
            note("upkeep.failed", duty=self.name, error=repr(error))
            more = False
        self._due = 0.0 if more else monotonic() + jittered(self._every)


class Upkeep(Looping):
    """A service of every worker; only the holder of the lease does anything."""

    def __init__(
        self,
        store: Store,
        deaths: Deaths,
        *,
        owner: str,
        window: int,
        keep: float = KEEP,
        ttl: float = TTL,
    ) -> None:
        super().__init__("upkeep")
        self._store, self._deaths, self._owner, self._window, self._keep = store, deaths, owner, window, keep
        self._ttl = ttl
        self._promotion = Duty("promote", _PAUSE, self._promote)
        self._duties = [
            self._promotion,
            Duty("rescue", 1.0, self._rescue),
            Duty("expire", 1.0, self._expire),
            Duty("repair", 60.0, self._repair),
            Duty("sessions", _STUCK / 3, self._end_stuck),
            Duty("sagas", 5.0, self._sagas),
            Duty("prune", 600.0, self._prune),
            Duty("prune-cache", 60.0, self._prune_cache),
            Duty("prune-visits", 120.0, self._prune_visits),
            Duty("tally", 5.0, self._begin_tally),
        ]
        self._tally: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        while True:
            try:
                lease = await self._store.leases.acquire(LEASE_NAME, owner=self._owner, ttl=self._ttl)
                self._trouble = None
                if lease is not None:
                    await self._serve(lease)
            except Exception as error:  # noqa: BLE001  somebody must do it
                self._trouble = f"upkeep: {error}"
                note("upkeep.failed", duty="lease", error=repr(error))
            await look_after(jittered(self._ttl / 3))

    async def _serve(self, lease: Lease) -> None:
        """As long as the lease can be renewed. The duties do no harm when two perform them; the lease saves work."""
        held: Lease | None = lease
        renewed = monotonic()
        try:
            while held is not None:
                for duty in self._duties:
                    await duty.perform()
                if monotonic() - renewed > self._ttl / 3:
                    held = await self._store.leases.renew(held, ttl=self._ttl)
                    renewed = monotonic()
                if await self._store.wakeups.wait((ARRIVED,), jittered(_PAUSE)):
                    self._promotion.hurry()
        finally:
            if self._tally is not None:
                self._tally.cancel()
            if held is not None:
                await asyncio.shield(spawn(self._give_up(held), name="upkeep-release"))

    async def _give_up(self, lease: Lease) -> None:
        try:
            async with patience(_PATIENCE):
                await self._store.leases.release(lease)
        except (HoldfastError, TimeoutError) as error:  # it ends by itself
            note("upkeep.failed", duty="release", error=repr(error))

    # --- duties; each says whether there is more ---

    async def _promote(self) -> bool:
        looked_at = await self._store.holds.promote(window=self._window, limit=_PART)
        if looked_at:
            self._store.wakeups.hint(("*",))  # they may be of any queue
        return looked_at >= _PART

    async def _rescue(self) -> bool:
        return await self._deaths.rescue()

    async def _expire(self) -> bool:
        return await self._deaths.expire()

    async def _repair(self) -> bool:
        return await self._store.holds.repair(limit=_PART) >= _PART

    async def _end_stuck(self) -> bool:
        if ended := await self._store.sessions.end_stuck(after=_STUCK):
            note("store.sessions_ended", count=ended)
        return False

    async def _sagas(self) -> bool:
        """Tell of sagas whose job will not carry them any further."""
        parked = await self._store.sagas.park_lost(limit=100)
        for saga in parked:
            note("saga.parked", saga=saga)
        return len(parked) >= 100

    async def _prune(self) -> bool:
        pruned = await self._store.history.prune(keep=self._keep)
        await self._store.keys.prune(limit=1000)
        await self._store.leases.prune(limit=1000)
        await self._store.workers.prune(keep=DEAD_KEPT, limit=1000)
        await self._store.guards.prune(limit=1000)
        await self._store.versions.prune(keep=_SEEN_KEPT, limit=1000)
        # A generation of a view may have millions of rows. One part a turn: rescue and promotion do not wait for all of it.
        views = await self._store.views.prune(limit=1000)
        sagas = await self._store.sagas.prune(keep=self._keep, limit=1000)
        if pruned.jobs:
            note("history.pruned", jobs=pruned.jobs)
        return pruned.more or max(views, sagas) >= 1000

    async def _begin_tally(self) -> bool:
        """Beside the other duties: of very many jobs it takes a second, and they do not wait for that."""
        if self._tally is None or self._tally.done():
            self._tally = spawn(self._count(), name="upkeep-tally")
        return False

    async def _count(self) -> None:
        try:
            await self._store.jobs.tally()
        except HoldfastError as error:
            note("upkeep.failed", duty="tally", error=repr(error))

    async def _prune_cache(self) -> bool:
        return await self._store.cache.prune(limit=_PART) >= _PART

    async def _prune_visits(self) -> bool:
        return await self._store.visits.prune(limit=_PART) >= _PART
