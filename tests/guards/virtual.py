"""Worlds for tests of guards: one whose clock a test moves, and one whose clock is that of a seeded loop."""

from __future__ import annotations

import random
from contextlib import contextmanager

from holdfast.kernel.world import LoopTimers, inhabit
from holdfast.testing.clock import START, ManualClock
from holdfast.testing.simulation.loop import SeededLoop


class StillWorld(ManualClock):
    """Chance is what the test says."""

    chance = 0.5

    def random(self):
        return self.chance


class LoopWorld(LoopTimers, StillWorld):
    """Sleeping and timeouts cost no time: the loop jumps to the next timer."""

    def __init__(self, loop, seed):
        super().__init__()
        self._loop = loop
        self._chances = random.Random(seed)
        self.random = self._chances.random if seed != "0" else lambda: 0.5

    def now(self):
        return START + self._loop.time()

    def monotonic(self):
        return self._loop.time()


def virtually(main, seed="0"):
    """Run a coroutine function on a loop that skips all waiting; the seed decides who runs next, "0": first come."""
    loop = SeededLoop(str(seed), fifo_after=0 if seed == "0" else None)
    try:
        with inhabit(LoopWorld(loop, str(seed))):
            return loop.run_until_complete(main())
    finally:
        loop.close()


@contextmanager
def refused(kind):
    """The block raises this, and it says in how many seconds to come back."""
    told = {}
    try:
        yield told
    except kind as error:
        told["after"] = error.retry_after
    else:
        raise AssertionError(f"it was not refused by {kind.__name__}")


def most_above(calls, rate):
    """By how much a window that begins and ends with a call exceeds rate · T; the burst must cover it."""
    most, run = 0.0, 0.0
    # The largest of all sums of cost minus rate · time between: one pass, as for the largest sum of a row.
    before = None
    for moment, cost in calls:
        run = max(0.0, run - (0.0 if before is None else (moment - before) * rate)) + cost
        most, before = max(most, run), moment
    return most
