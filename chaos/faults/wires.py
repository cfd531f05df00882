"""The wire between Holdfast and PostgreSQL: slow, cut before and after COMMIT, silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.faults.fault import Fault
from chaos.place import Place
from chaos.settings import LEASE
from chaos.world import World
from tools.wire import Wire

COMMIT = b"COMMIT\0"  # the statement, not the words of BEGIN


class WireFault(Fault):
    stores: tuple[str, ...] = ("postgres",)
    _wire: Wire

    @asynccontextmanager
    async def around(self, place: Place) -> AsyncIterator[None]:
        async with Wire(place.url).open() as self._wire:
            place.way = self._wire.url
            yield


class SlowWire(WireFault):
    """Every request takes some time more, for longer than a lease."""

    name = "wire: every request 0.2 s late"

    async def inject(self, world: World) -> int:
        began = time.monotonic()
        self._wire.delay = 0.2
        await asyncio.sleep(LEASE + 1)
        self._wire.delay = 0.0
        await world.recovered(world.happened(began))
        return 1


class CutBeforeCommit(WireFault):
    """COMMIT does not reach the server, and the connection ends."""

    name = "wire: cut before COMMIT"
    _AT_ONCE = 5

    async def inject(self, world: World) -> int:
        began, cuts = time.monotonic(), self._wire.cuts
        self._arm()
        while self._wire.cuts < cuts + self._AT_ONCE and time.monotonic() < began + 5:
            await asyncio.sleep(0.02)
        world.happened(began)
        await world.nap(0.5)
        return self._wire.cuts - cuts

    def _arm(self) -> None:
        self._wire.lose_request(*[COMMIT] * self._AT_ONCE)

    async def heal(self, world: World) -> None:
        self._wire.lose_request()
        self._wire.lose_answer_to()


class CutAfterCommit(CutBeforeCommit):
    """The server has committed, and nobody hears of it."""

    name = "wire: cut after COMMIT"

    def _arm(self) -> None:
        self._wire.lose_answer_to(*[COMMIT] * self._AT_ONCE)


class HangUp(WireFault):
    """Every connection ends, in the middle of whatever it carries: claims, renewals, finishes."""

    name = "wire: all connections cut"

    async def inject(self, world: World) -> int:
        await world.nap(0.7)
        began = time.monotonic()
        self._wire.hang_up()
        world.happened(began)
        return 1


class SilentWire(WireFault):
    """Nothing gets through for longer than a lease, and nobody is told."""

    name = "wire: silent past the lease"

    async def inject(self, world: World) -> int:
        await world.nap(1.0)
        began = time.monotonic()
        self._wire.fall_silent()
        await asyncio.sleep(LEASE + 1.5)
        self._wire.flow()
        await world.recovered(world.happened(began))
        return 1
