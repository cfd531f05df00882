"""The words of this bench: a design, a space that holds one, a lap of work and a measured figure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol


@dataclass(frozen=True)
class Phase:
    """A stretch of work: it ends after `jobs` jobs or `seconds`, and goes no faster than `pace` jobs/s."""

    jobs: int = 1 << 60
    seconds: float = 600.0
    pace: float | None = None


@dataclass(frozen=True)
class Lap:
    """What one process did in one phase. CPU is the client's and, when a server works for it, the server's."""

    jobs: int
    start: float
    end: float
    cpu: float


@dataclass(frozen=True)
class Work:
    """How to drain: batch size, processes, phases, and whether claims carry a low-water mark."""

    batch: int
    procs: int = 1
    phases: tuple[Phase, ...] = (Phase(),)
    mark: bool = True


@dataclass(frozen=True)
class Speed:
    """The sum of the laps that several processes ran side by side."""

    rate: float
    cpu_us: float

    @classmethod
    def of(cls, laps: Sequence[Lap]) -> Speed:
        jobs = sum(lap.jobs for lap in laps)
        wall = max(lap.end for lap in laps) - min(lap.start for lap in laps)
        cpu = sum(lap.cpu for lap in laps)
        return cls(jobs / wall if wall > 0 else 0.0, 1e6 * cpu / jobs if jobs else 0.0)


def middle(speeds: Sequence[Speed]) -> Speed:
    return Speed(median(s.rate for s in speeds), median(s.cpu_us for s in speeds))


@dataclass(frozen=True)
class Figure:
    """One line of the results file."""

    system: str
    store: str
    measure: str
    rate: float
    unit: str = "jobs/s"
    config: dict[str, object] = field(default_factory=dict)


class Bench(Protocol):
    """What the shared measures need from a store. A space is a separate copy of one design's tables."""

    store: str

    def designs(self) -> list[str]: ...
    def create(self, space: str, design: str) -> None: ...
    def fill(self, space: str, jobs: int, tidy: bool = True) -> None: ...
    def load_finished(self, space: str, rows: int) -> None: ...
    def drain(self, space: str, work: Work) -> list[Speed]: ...
    def enqueue(self, space: str, batch: int, batches: int) -> Speed: ...
    def snapshot(self, space: str) -> AbstractContextManager[None]: ...
    def size(self, space: str) -> int: ...
    def drop(self, space: str) -> None: ...
