"""How many runs a worker still takes before it leaves, where that was said."""

from __future__ import annotations

from holdfast.kernel.randomness import random


class Allowance:
    """No end to it until `set`."""

    def __init__(self) -> None:
        self._left: int | None = None

    def set(self, runs: int) -> None:
        self._left = runs

    def took(self, runs: int) -> None:
        if self._left is not None:
            self._left -= runs

    def gave_back(self, runs: int) -> None:
        """They were not run after all."""
        self.took(-runs)

    def spent(self) -> bool:
        return self._left is not None and self._left <= 0

    def of(self, wants: dict[str, int]) -> dict[str, int]:
        """What is left, in any order: given to the first queue each time, the others would starve."""
        if (left := self._left) is None:
            return wants
        allowed: dict[str, int] = {}
        for queue in sorted(wants, key=lambda _: random()):
            allowed[queue] = min(wants[queue], left)
            left -= allowed[queue]
        return {queue: number for queue, number in allowed.items() if number > 0}
