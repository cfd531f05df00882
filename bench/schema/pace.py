"""Walk a worker through its phases: count jobs, keep the pace, know when a phase is over."""

from __future__ import annotations

import time

from .model import Lap, Phase


class Pacer:
    """Counts one phase. `over` after each batch; `rest` is how long to sleep to keep the pace."""

    def __init__(self, phase: Phase, cpu: float) -> None:
        self._phase, self._cpu = phase, cpu
        self._jobs = 0
        self._start = self._end = time.time()

    def add(self, jobs: int) -> None:
        self._jobs += jobs
        self._end = time.time()

    @property
    def over(self) -> bool:
        return self._jobs >= self._phase.jobs or self._end - self._start >= self._phase.seconds

    @property
    def rest(self) -> float:
        if self._phase.pace is None:
            return 0.0
        return max(0.0, self._jobs / self._phase.pace - (time.time() - self._start))

    def lap(self, cpu: float) -> Lap:
        return Lap(self._jobs, self._start, self._end, cpu - self._cpu)


class Mark:
    """A low-water mark: claims start at the lowest rank of the last batch.

    It is a hint that only skips dead index entries, so it is forgotten every second and after a short
    batch: a row that committed late with a lower rank is then found.
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._until = 0.0
        self.low = 0

    def see(self, ranks: list[int], asked: int) -> None:
        now = time.monotonic()
        if not self._enabled or len(ranks) < asked or now > self._until:
            self.low, self._until = 0, now + 1.0
        else:
            self.low = min(ranks)
