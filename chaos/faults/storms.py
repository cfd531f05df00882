"""Everything at once: faults that do not wait for each other, because real ones do not."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import psutil

from chaos.faults.servers import end_backends
from chaos.faults.wires import COMMIT, WireFault
from chaos.place import STORES, Place
from chaos.settings import LEASE
from chaos.world import World


class Storm(WireFault):
    """Kills, frozen processes, and on PostgreSQL the wire and the backends too. What counts is the time after its end."""

    name = "all at once"
    stores = STORES
    _began = 0.0

    @asynccontextmanager
    async def around(self, place: Place) -> AsyncIterator[None]:
        if place.store == "sqlite":
            yield
            return
        async with super().around(place):
            yield

    async def inject(self, world: World) -> int:
        self._began = self._began or time.monotonic()
        await world.chance.choice(self._actions(world))(world)
        await world.nap(1.0, shortest=0.1)
        return 1

    async def heal(self, world: World) -> None:
        """Who is frozen has been woken by then."""
        await asyncio.sleep(LEASE + 1.5)
        if world.place.server is not None and world.place.store == "postgres":
            self._wire.lose_request()
            self._wire.lose_answer_to()
            self._wire.delay = 0.0
        world.happened(self._began)

    def _actions(self, world: World) -> list[Callable[[World], Awaitable[object]]]:
        hits: list[Callable[[World], Awaitable[object]]] = [_kill, _kill, _freeze]
        if world.place.store == "sqlite":
            return hits
        return [
            *hits,
            self._hang_up,
            self._cut_before,
            self._cut_after,
            self._slow,
            self._silent,
            end_backends,
        ]

    async def _hang_up(self, world: World) -> None:
        self._wire.hang_up()

    async def _cut_before(self, world: World) -> None:
        self._wire.lose_request(COMMIT, COMMIT)

    async def _cut_after(self, world: World) -> None:
        self._wire.lose_answer_to(COMMIT, COMMIT)

    async def _slow(self, world: World) -> None:
        self._wire.delay = world.chance.choice([0.0, 0.05, 0.2])

    async def _silent(self, world: World) -> None:
        self._wire.fall_silent()
        await world.nap(LEASE)
        self._wire.flow()


async def _kill(world: World) -> None:
    for victim in world.chance.sample(world.fleet.workers(), 2):
        with suppress(psutil.NoSuchProcess):
            victim.kill()
            world.kills += 1


async def _freeze(world: World) -> None:
    """Woken later, whatever happens meanwhile."""
    [victim] = world.chance.sample(world.fleet.workers(), 1)
    with suppress(psutil.NoSuchProcess):
        victim.send_signal(signal.SIGSTOP)
        asyncio.get_running_loop().call_later(world.chance.uniform(0.5, LEASE + 1.5), _wake, victim)
        world.zombies += 1


def _wake(victim: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        victim.send_signal(signal.SIGCONT)
