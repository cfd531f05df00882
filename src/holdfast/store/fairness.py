"""Which of the jobs that have arrived a promote looks at: half by age, half some of each tenant. Both stores ask here.

By age alone, one job would wait behind all that another tenant has enqueued before it, however many those are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from holdfast.store.ladder import share


class Arrived(Protocol):
    @property
    def job_id(self) -> str: ...
    @property
    def rank(self) -> int: ...


T = TypeVar("T", bound=Arrived)
Place: TypeAlias = tuple[str, str]  # a queue and a tenant; jobs without a tenant are those of ""

PLACES = 100  # places of which one promote takes some
_START: Place = ("", "")


@dataclass
class Tour:
    """Where the look around the places goes on: of more than PLACES, each has its turn."""

    after: Place = _START

    def seen(self, places: Sequence[Place]) -> None:
        self.after = places[-1] if len(places) >= PLACES else _START


def is_crowd(oldest: Sequence[Arrived], limit: int) -> bool:
    """Whether some that have arrived may find no room."""
    return len(oldest) > limit - limit // 2


def some_of_each(limit: int, places: Sequence[Place]) -> int:
    """How many of each place. None where there is one place only: then its oldest are the oldest."""
    half = limit // 2
    return max(half // len(places), 1) if half and len(places) > 1 else 0


def choose(oldest: Sequence[T], fair: Sequence[T], due: Sequence[T], limit: int) -> list[T]:
    """At most `limit` of all. What has arrived stays in the order of its ranks: nobody is overtaken."""
    room = limit - min(len(due), limit // 2)
    chosen = {job.job_id: job for job in sorted(fair, key=_rank)[: room // 2]}
    for job in oldest:
        if len(chosen) >= room:
            break
        chosen[job.job_id] = job
    return share(sorted(chosen.values(), key=_rank), due, limit)


def _rank(job: Arrived) -> int:
    return job.rank
