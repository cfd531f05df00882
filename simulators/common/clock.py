"""A clock that goes with the machine's, and can be moved ahead."""

from __future__ import annotations

import time


class Clock:
    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"a clock goes ahead only, not by {seconds} s")
        self._ahead += seconds
