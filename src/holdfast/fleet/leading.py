"""A service of many processes of which one at a time does anything: whoever holds the lease."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextlib import suppress
from math import inf

from holdfast.kernel.clock import look_after, monotonic, news_within, patience
from holdfast.kernel.errors import HoldfastError, LeaseLost
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Looping
from holdfast.kernel.spawn import beside, end, over, spawn, start
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.store.records import Lease

TTL = 5.0  # seconds; a killed holder's successor begins after that
_GOODBYE = 1.0  # seconds for giving the lease back; it ends by itself


class Leading(Looping):
    """The lease is renewed beside the work, so that one slow call does not lose it; when it is lost, the work is cancelled."""

    def __init__(self, name: str, store: Store, *, lease: str, owner: str, ttl: float = TTL) -> None:
        super().__init__(name)
        self._store, self._lease_name, self._owner, self._ttl = store, lease, owner, ttl
        self._until = inf  # on the clock of this process: before that nobody else can have the lease
        self.is_leading = False

    @abstractmethod
    async def _serve(self, lease: Lease) -> None:
        """Do it, until this is cancelled or raises. Every write names the lease."""

    async def _run(self) -> None:
        while True:
            try:
                await self._term()
            except LeaseLost:
                note("leading.lost", service=self._name)
            except Exception as error:  # noqa: BLE001  somebody must do it
                self._failed(error)
            await look_after(jittered(self._ttl / 3))

    def _must_lead(self) -> None:
        """A process that stood still goes on where it was, before it is told that another leads now."""
        if monotonic() >= self._until:
            raise LeaseLost(f"the lease {self._lease_name!r} is over")

    async def _term(self) -> None:
        began = monotonic()
        if (lease := await self._taken()) is None:
            self._trouble = None  # another does it
            return
        self._until = began + self._ttl
        work = beside(start(self._serve(lease), name=self._name))
        self.is_leading = True
        try:
            await self._keep(lease, work)
        finally:
            self.is_leading = False
            await end(work)
            await asyncio.shield(spawn(self._give_up(lease), name=f"{self._name}-release"))
        if not work.cancelled():
            work.result()

    async def _taken(self) -> Lease | None:
        """Looked at before it is asked for: looking takes no lock, and most of the time another has it."""
        held = await self._store.leases.get(self._lease_name)
        if held is not None and held.owner != self._owner:
            return None
        return await self._store.leases.acquire(self._lease_name, owner=self._owner, ttl=self._ttl)

    async def _keep(self, lease: Lease, work: asyncio.Task[None]) -> None:
        """Until the work is over, or somebody else may hold the lease."""
        pause = self._ttl / 3
        while not work.done():
            with suppress(TimeoutError):
                async with news_within(pause):
                    await over(work)
                    return
            began = monotonic()
            try:
                async with patience(max(0.01, self._until - began)):
                    renewed = await self._store.leases.renew(lease, ttl=self._ttl)
            except (HoldfastError, TimeoutError) as error:
                note("leading.not_renewed", service=self._name, error=repr(error))
                pause = self._ttl / 30
                if monotonic() + pause < self._until:
                    continue
                renewed = None
            if renewed is None:
                note("leading.lost", service=self._name)
                return
            self._until, pause = began + self._ttl, self._ttl / 3

    def _failed(self, error: Exception) -> None:
        self._trouble = f"{self._name}: {error}"
        note(f"{self._name.partition(' ')[0]}.failed", error=repr(error))

    async def _give_up(self, lease: Lease) -> None:
        try:
            async with patience(_GOODBYE):
                await self._store.leases.release(lease)
        except (HoldfastError, TimeoutError) as error:
            note("leading.not_released", service=self._name, error=repr(error))
