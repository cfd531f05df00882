"""Make a failing schedule small: leave out faults one at a time, then take the oldest callback from as early as possible."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from holdfast.testing.simulation.kinds import make_plan
from holdfast.testing.simulation.simulate import Choices, Result

Simulate = Callable[[Choices], Result]


def shrink(failed: Result, simulate: Simulate, start: Choices) -> tuple[Choices, Result]:
    """The smallest choices found under which the same invariant still breaks."""
    invariant = failed.violations[0].invariant
    smallest = _Smallest(invariant, simulate, start, failed)
    _leave_out_faults(smallest)
    _force_fifo(smallest)
    return smallest.choices, smallest.result


class _Smallest:
    def __init__(self, invariant: str, simulate: Simulate, choices: Choices, result: Result) -> None:
        self._invariant, self._simulate = invariant, simulate
        self.choices, self.result = choices, result

    def take(self, choices: Choices) -> bool:
        """Keep these choices when the invariant still breaks under them."""
        result = self._simulate(choices)
        if not any(violation.invariant == self._invariant for violation in result.violations):
            return False
        self.choices, self.result = choices, result
        return True


def _leave_out_faults(smallest: _Smallest) -> None:
    failed = smallest.result
    numbers = [fault.number for fault in make_plan(failed.seed, failed.kind).faults]
    progress = True
    while progress:
        progress = False
        for number in numbers:
            left_out = smallest.choices.without_faults
            if number not in left_out:
                fewer = msgspec.structs.replace(smallest.choices, without_faults=left_out | {number})
                progress = smallest.take(fewer) or progress


def _force_fifo(smallest: _Smallest) -> None:
    """By halving: not every earlier step need fail, and the smallest that does is not promised."""
    low, high = 0, smallest.result.steps
    if smallest.take(msgspec.structs.replace(smallest.choices, fifo_after=0)):
        return
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        if smallest.take(msgspec.structs.replace(smallest.choices, fifo_after=middle)):
            high = middle
        else:
            low = middle
