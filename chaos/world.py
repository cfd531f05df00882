"""What a fault sees: the place, the fleet, and a list of what was done to them and when."""

from __future__ import annotations

import asyncio
import random
import time

import msgspec

from chaos import recovery, settings
from chaos.fleet import Fleet
from chaos.place import Place
from holdfast.kernel.errors import HoldfastError


class Injection(msgspec.Struct, frozen=True):
    """One fault, from its beginning to its end; on the monotonic clock."""

    began: float
    ended: float
    pids: frozenset[int] | None = None  # whom it hit; None: all


class World:
    def __init__(self, place: Place, fleet: Fleet, seed: int) -> None:
        self.place, self.fleet, self.chance = place, fleet, random.Random(seed)
        self.injections: list[Injection] = []
        self.kills = self.zombies = 0

    def happened(self, began: float, pids: frozenset[int] | None = None) -> Injection:
        """It is over now."""
        made = Injection(began, time.monotonic(), pids)
        self.injections.append(made)
        return made

    async def nap(self, longest: float, shortest: float = 0.0) -> None:
        """A moment of chance."""
        await asyncio.sleep(self.chance.uniform(shortest, longest))

    async def recovered(self, injection: Injection) -> None:
        """Until what it interrupted has run again, or it is too late for that: so that the next one hits a whole fleet."""
        end = injection.ended + settings.LEASE + settings.SCAN
        while time.monotonic() < end:
            try:
                if await self._has_recovered(injection):
                    return
            except HoldfastError:
                pass  # the store is not back yet
            await asyncio.sleep(0.2)

    async def _has_recovered(self, injection: Injection) -> bool:
        runs = self.place.there.runs()
        for run, later in recovery.interrupted(runs, injection):
            if later is None:
                record = await self.place.hf.jobs.get(run.job)
                if record is None or (record.token == run.token and record.state == "running"):
                    return False
                if record.state == "queued" and record.held != "time":
                    return False
        return True
