"""Waits for a run, and says so when that waits for a clock that nobody moves: a test must not hang without a word."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.jobs.run import Run
from holdfast.kernel.reality import REALITY
from holdfast.kernel.world import current
from holdfast.testing.clock import WAITS, ManualClock
from holdfast.testing.waits import Wait

STILL = 3.0  # real seconds in which a run does nothing but wait for the clock, until that is told
HUNG = 15.0  # the same of one that may do something, within a timeout
_ADVICE = (
    "Let time pass for it with `await clock.run(drain(hf))`, or around whatever runs the job; "
    "or do that in a task of its own, and call `clock.advance` meanwhile."
)


async def watched(work: asyncio.Task[Any], run: Run) -> None:
    """Return when the work is over, however it ends."""
    clock = current()
    if not isinstance(clock, ManualClock):
        await asyncio.wait([work])
        return
    seen, since = None, 0.0
    while not work.done():
        now, waits = REALITY.monotonic(), clock.waits_of(run)
        if seen != (seen := (clock.moves, waits)):
            since = now
        elif waits and now - since > HUNG:
            raise AssertionError(_hung(run, waits[0]))
        elif now - since > STILL and (still := clock.waits_of(run, WAITS)):
            raise AssertionError(
                f"{run.claim.task!r} waits for the clock at {still[0]}, and nobody moves it. {_ADVICE}"
            )
        await asyncio.wait([work], timeout=min(STILL, HUNG) / 4)


def _hung(run: Run, wait: Wait) -> str:
    return (
        f"{run.claim.task!r} has not ended after {HUNG:g} s of real time, and nobody moves the clock by which its timeout ends "
        f"at {wait}. {_ADVICE}"
    )
