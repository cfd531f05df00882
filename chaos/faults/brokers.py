"""Events while workers die or stand still; and over a broker that is frozen, killed, and comes back without what it had."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from chaos.announcing import KIND
from chaos.faults.deaths import Kills
from chaos.faults.fault import Fault
from chaos.faults.pauses import Zombies
from chaos.fleet import Size
from chaos.place import Place
from chaos.world import World
from holdfast import Holdfast
from tools.local_server import LocalServer
from tools.nats_server import NatsServer
from tools.valkey import ValkeyServer


class _Streaming(Fault):
    """Callers do nothing but emit."""

    def size(self, usual: Size) -> Size:
        return msgspec.structs.replace(usual, kinds=KIND, rate=2 * usual.rate)


class EventKills(_Streaming, Kills):
    name = "SIGKILL while events stream"


class EventZombies(_Streaming, Zombies):
    name = "SIGSTOP while events stream"


class _Broker(_Streaming, Kills):
    """Workers are killed as ever, and between the volleys the broker is hurt. What it lost is published again at the end."""

    server: Callable[[], LocalServer]
    _FROZEN = 2.0  # seconds

    def __init__(self) -> None:
        self._its: LocalServer | None = None

    @asynccontextmanager
    async def around(self, place: Place) -> AsyncIterator[None]:
        self._its = await asyncio.to_thread(type(self).server)
        place.broker = self._its.url
        try:
            yield
        finally:
            self._its.stop()

    async def inject(self, world: World) -> int:
        if world.chance.random() < 0.3:
            await world.nap(0.5)
            began = time.monotonic()
            await asyncio.to_thread(self._hurt, world.chance.random())
            world.happened(began, frozenset())
        return await super().inject(world)

    def _hurt(self, how: float) -> None:
        assert self._its is not None
        if how < 0.5:
            self._its.freeze()
            time.sleep(self._FROZEN)
            self._its.thaw()
        else:
            self._its.kill()
            time.sleep(self._FROZEN / 4)
            self._its.start()

    async def heal(self, world: World) -> None:
        """As a person would who knows that the broker has lost something."""
        await world.fleet.stop_callers()
        async with Holdfast(world.place.url, transport=world.place.broker) as hf:
            while (await hf.outbox.lag()).waiting:
                await asyncio.sleep(0.2)
            await hf.outbox.redrive()


class OverRedis(_Broker):
    """A Valkey that keeps nothing: killed, it comes back empty."""

    name = "SIGKILL to workers and to Valkey, which carries events"
    server = ValkeyServer


class OverNats(_Broker):
    name = "SIGKILL to workers and to NATS, which carries events"
    server = NatsServer
