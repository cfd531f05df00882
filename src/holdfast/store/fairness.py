"""Which of the jobs that have arrived a promote looks at: half by age, half some of each tenant. Both stores ask here.

By age alone, one job would wait behind all that another tenant has enqueued before it, however many those are.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol, TypeAlias, TypeVar


class Arrived(Protocol):
    @property
    def job_id(self) -> str: ...
    @property
    def rank(self) -> int: ...


T = TypeVar("T", bound=Arrived)
Place: TypeAlias = tuple[str, str]  # a queue and a tenant; jobs without a tenant are those of ""

ONE = (
    1  # ready job of a tenant is enough to go on from: the claim that takes it fills the window that it knows
)
PLACES = 100  # places of which one promote takes some, at most
_START: Place = ("", "")


@dataclass
class Tour:
    """Where the look around the places goes on: of more than a promote can take from, each has its turn."""

    after: Place = _START

    def seen(self, places: Sequence[Place], wanted: int) -> None:
        self.after = places[-1] if len(places) >= wanted else _START


def first_rank(drawn: int) -> int:
    """Of those that are put before all that wait: what was ready was the next, and a later pause finds what was let go first."""
    return -(drawn << 20)


def room_for(due: Sized, limit: int) -> int:
    """For what has arrived; neither keeps the other out, however many come."""
    return limit - min(len(due), limit // 2)


def is_crowd(oldest: Sized, room: int) -> bool:
    """Whether some that have arrived may find no room, and half of it is something."""
    return len(oldest) >= room > 1


def places_for(room: int) -> int:
    """How many places it is enough to look at: half of the room is theirs, and each gets one at least."""
    return min(PLACES, room // 2)


def of_each(room: int, places: Sequence[Place]) -> int:
    return room // 2 // len(places)


def braid(due: Sequence[T], released: Sequence[T]) -> list[T]:
    """Those of tenants that were resumed take turns with those that are due: neither keeps the other out."""
    if not released:
        return [*due]
    pairs = zip_longest(due, released)
    return [job for pair in pairs for job in pair if job is not None]


def choose(oldest: Sequence[T], fair: Sequence[T], due: Sequence[T], limit: int) -> list[T]:
    """At most `limit` of all. What has arrived stays in the order of its ranks: nobody is overtaken."""
    room = room_for(due, limit)
    chosen = {job.job_id: job for job in fair}
    for job in oldest:
        if len(chosen) >= room:
            break
        chosen[job.job_id] = job
    arrived = sorted(chosen.values(), key=_rank)
    return [*arrived, *due[: limit - len(arrived)]]


def _rank(job: Arrived) -> int:
    return job.rank
