"""Processes that die: killed at any moment, or exactly where it hurts most."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress

import msgspec
import psutil

from chaos import arming
from chaos.faults.fault import Fault
from chaos.fleet import Size
from chaos.world import World
from holdfast.kernel.crashpoints import CRASHPOINTS
from tools.processes import Process

_CALLERS = 0.3  # of the volleys hit a caller as well
_SUPERVISORS = 0.1  # of the volleys hit a supervisor


class Kills(Fault):
    """SIGKILL to a random group of workers, at random moments of half a second; now and then to a caller or a supervisor."""

    name = "SIGKILL"
    from_the_end = False

    async def inject(self, world: World) -> int:
        await world.nap(0.5)
        began, victims = time.monotonic(), self._victims(world)
        for victim in victims:
            await world.nap(0.06)
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        injection = world.happened(began, frozenset(victim.pid for victim in victims))
        world.kills += len(victims)
        await world.recovered(injection)
        return len(victims)

    def _victims(self, world: World) -> list[psutil.Process]:
        workers = world.fleet.workers()
        victims = world.chance.sample(workers, max(1, len(workers) * 4 // 5))
        callers = world.fleet.callers if self._hits_callers() else []
        for share, group in ((_CALLERS, callers), (_SUPERVISORS, world.fleet.supervisors)):
            alive = [each.pid for each in group if each.alive]
            if alive and world.chance.random() < share:
                victims.append(psutil.Process(world.chance.choice(alive)))
        return victims

    def _hits_callers(self) -> bool:
        return True


class CrashPoints(Fault):
    """Workers and callers that kill themselves at a crash point, at the first, second or a later passing; all points in turn."""

    name = "SIGKILL at crash points"
    from_the_end = False
    _AT_ONCE = 6
    _PATIENCE = 12.0  # seconds for all of them to come to their points

    def __init__(self) -> None:
        self._turn = 0

    def size(self, usual: Size) -> Size:
        """Few others, so that those who shall die get work."""
        return msgspec.structs.replace(usual, workers=2, supervisors=1, children=1)

    async def inject(self, world: World) -> int:
        armed = [self._arm(world) for _ in range(self._AT_ONCE)]
        end, dead = time.monotonic() + self._PATIENCE, 0
        while armed and time.monotonic() < end:
            await asyncio.sleep(0.02)
            for process in [each for each in armed if not each.alive]:
                armed.remove(process)
                dead += 1
                injection = world.happened(time.monotonic(), frozenset([process.pid]))
        for process in armed:  # nothing came along there
            process.signal(signal.SIGTERM)
        if dead:
            await world.recovered(injection)
        world.kills += dead
        return dead

    def _arm(self, world: World) -> Process:
        points = list(CRASHPOINTS)
        point = points[self._turn % len(points)]
        self._turn += 1
        longest = 30 if point.startswith("store.") else 4
        given = {arming.VARIABLE: f"{point}:{world.chance.randint(1, longest)}"}
        calls = point.startswith(("store.", "transaction.")) and world.chance.random() < 0.3
        return world.fleet.start_caller(**given) if calls else world.fleet.start_worker(**given)
