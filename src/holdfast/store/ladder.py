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


@dataclass
class Facts:
    """What the database says of the keys in question, kept true as steps are decided."""

    turns: set[str] = field(default_factory=set)  # ordering keys that have a job whose turn it is
    slots: dict[str, set[int]] = field(default_factory=dict)  # slots taken, by concurrency key
    ready: dict[tuple[str, str], int] = field(default_factory=dict)  # ready jobs, by (queue, tenant)


def climb(waiting: Iterable[Waiting], facts: Facts, *, window: int) -> list[Rung]:
    """Decide for each job, oldest first: its turn, then its time, then a slot, then its tenant's window."""
    return [_next(job, facts, window) for job in waiting]


def _next(job: Waiting, facts: Facts, window: int) -> Rung:
    has_turn = job.has_turn or _take_turn(job, facts)
    if job.ordered is not None and not has_turn:
        return Rung(job, Held.ORDERING, False, job.slot)
    if not job.due:
        return Rung(job, Held.TIME, has_turn, job.slot)
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
    if facts.ready.get(place, 0) >= window:
        return False
    facts.ready[place] = facts.ready.get(place, 0) + 1
    return True
