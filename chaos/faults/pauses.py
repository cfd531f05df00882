"""Processes that stand still past their lease and go on as if nothing had happened."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress

import psutil

from chaos.faults.fault import Fault
from chaos.settings import LEASE, SCAN
from chaos.world import World


class Zombies(Fault):
    """SIGSTOP to a group of workers, past their lease, then SIGCONT. What they write late must be refused.

    A frozen process may hold a lock of the store, so the time it was frozen belongs to the limit.
    """

    name = "SIGSTOP past the lease"
    from_the_end = False
    _FROZEN = LEASE + 1.5
    limit = _FROZEN + LEASE + SCAN

    async def inject(self, world: World) -> int:
        await world.nap(0.5)
        workers = world.fleet.workers()
        victims = world.chance.sample(workers, max(1, len(workers) * 3 // 4))
        began = time.monotonic()
        _tell(victims, signal.SIGSTOP)
        try:
            await asyncio.sleep(self._FROZEN)
        finally:
            _tell(victims, signal.SIGCONT)
        injection = world.happened(began, frozenset(victim.pid for victim in victims))
        world.zombies += len(victims)
        await world.recovered(injection)
        return len(victims)


def _tell(victims: list[psutil.Process], number: signal.Signals) -> None:
    for victim in victims:
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(number)
