"""A world made of plain numbers, for tests of what asks the world."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.world import LoopTimers, inhabit


class PaperWorld(LoopTimers):
    """Its clock moves only by sleeping, and its chance is what the test says."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0
        self.slept: list[float] = []
        self.chance = 0.5
        self.bytes = iter(range(1, 1_000_000))

    def now(self):
        return self.time

    def host_now(self):
        return self.time + 1000

    def monotonic(self):
        return self.time - 1_700_000_000.0

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    def random(self):
        return self.chance

    def random_bytes(self, count):
        return next(self.bytes).to_bytes(count, "big")


@pytest.fixture
def paper():
    with inhabit(PaperWorld()) as world:
        yield world
