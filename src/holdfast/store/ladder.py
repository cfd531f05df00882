"""What a queued job still waits for. Both stores ask here, so both promote alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from holdfast.store.states import Held

T = TypeVar("T")


class Waiting(msgspec.Struct, frozen=True):
    """A queued job, as far as promotion cares."""

    job_id: str
    queue: str
    due: bool  # its time has come
    ordered: str | None
    has_turn: bool
    concurrency: str | None
    concurrency_limit: int | None
    slot: int | None
    tenant: str | None
    was: str | None = None  # by what it is held so far
    by_time: bool = False  # it stands in line for its turn by its time, and not from its enqueue on
    row: int = 0  # the store's own number of the job, where it has one
    rank: int = 0  # its age among those that have arrived, where the store needs it


class Rung(msgspec.Struct, frozen=True):
    """Where a job goes: held with a reason, or ready (None)."""

    job: Waiting
    held: Held | None
    has_turn: bool
    slot: int | None

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def goes_last(self) -> bool:
        """Whether it is served after what was there before it: it is ready, or its time has come just now."""
        if self.held is None:
            return True
        is_late = self.held is not Held.ORDERING or self.job.by_time
        return self.job.was == Held.TIME and self.held is not Held.TIME and is_late


@dataclass
class Facts:
    """What the database says of the keys in question, kept true as steps are decided."""

    turns: set[str] = field(default_factory=set)  # ordering keys that have a job whose turn it is
    slots: dict[str, set[int]] = field(default_factory=dict)  # slots taken, by concurrency key
    ready: dict[tuple[str, str], int] = field(default_factory=dict)  # ready jobs, by (queue, tenant)
    lines: set[tuple[str, str]] = field(default_factory=set)  # those with jobs that wait for their window
    paused: set[str] = field(default_factory=set)  # tenants
    resumed: set[str] = field(default_factory=set)  # tenants whose paused jobs go before those that come now

    def lines_with_room(self, window: int) -> list[tuple[str, str]]:
        """Where jobs wait for a window that is not full: who came now has gone behind them, and they are the next."""
        return sorted(place for place in self.lines if self.ready.get(place, 0) < window)


def climb(waiting: Iterable[Waiting], facts: Facts, *, window: int) -> list[Rung]:
    """Decide for each job, oldest first: turn, time, its tenant's pause, a slot, and then its tenant's window."""
    return [_next(job, facts, window) for job in waiting]


def _next(job: Waiting, facts: Facts, window: int) -> Rung:
    waits_first = job.by_time and not job.due
    has_turn = job.has_turn or (not waits_first and _take_turn(job, facts))
    if job.ordered is not None and not has_turn and not waits_first:
        return Rung(job, Held.ORDERING, False, job.slot)
    if not job.due or _is_paused(job, facts):
        return Rung(job, Held.PAUSED if job.due else Held.TIME, has_turn, job.slot)
    slot = job.slot if job.slot is not None else _take_slot(job, facts)
    if job.concurrency is not None and slot is None:
        return Rung(job, Held.CONCURRENCY, has_turn, None)
    if job.tenant is not None and not _take_room(job, facts, window):
        return Rung(job, Held.TENANT, has_turn, slot)
    return Rung(job, None, has_turn, slot)


def _take_turn(job: Waiting, facts: Facts) -> bool:
    if job.ordered is None or job.ordered in facts.turns:
        return False
    facts.turns.add(job.ordered)
    return True


_COMING = (Held.ARRIVED, Held.TIME, Held.ORDERING)


def _is_paused(job: Waiting, facts: Facts) -> bool:
    """While a tenant's paused jobs are let go, those that come wait behind them."""
    return job.tenant in facts.paused or (job.tenant in facts.resumed and job.was in _COMING)


def _take_slot(job: Waiting, facts: Facts) -> int | None:
    if job.concurrency is None or job.concurrency_limit is None:
        return None
    taken = facts.slots.setdefault(job.concurrency, set())
    if (
        len(taken) >= job.concurrency_limit
    ):  # also when a limit was lowered, and the slots above it are still taken
        return None
    for slot in range(1, job.concurrency_limit + 1):
        if slot not in taken:
            taken.add(slot)
            return slot
    return None


def _take_room(job: Waiting, facts: Facts, window: int) -> bool:
    assert job.tenant is not None
    place = (job.queue, job.tenant)
    if place in facts.lines or facts.ready.get(place, 0) >= window:
        facts.lines.add(place)
        return False
    facts.ready[place] = facts.ready.get(place, 0) + 1
    return True
