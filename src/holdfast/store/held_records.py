"""Why a queued job does not run yet: by what it is held, and by whom. For people who ask; nothing is decided by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from holdfast.store.states import Held, State


class HeldFor(StrEnum):
    """As `Held`, and more: a time may be that of a lock, and a ready job may stand in a paused queue."""

    ARRIVED = "arrived"  # nobody has looked at it yet
    ORDERING = "ordering"  # `job` is before it, with the key `name`
    TIME = "time"  # that is `until`
    LOCK = "lock"  # `name`, which `job` holds, or `by`, who is no job
    CONCURRENCY = "concurrency"  # `number` of `limit` places of the key `name` are taken, one by `job`
    TENANT = "tenant"  # the tenant `name` has `number` ready jobs in its queue
    GUARD = "guard"  # the guard `name` refused it
    WAITING = "waiting"  # its saga waits for `name`
    UNKNOWN_TASK = "unknown_task"  # the worker that met it does not know the task `name`
    PAUSED = "paused"  # its queue `name` is paused, by `by`; with `words`, it is its tenant `name`


class Holder(msgspec.Struct, frozen=True):
    """The job that has what another waits for."""

    id: str
    task: str
    state: State
    since: float | None  # when its run began


class HeldBy(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps one queued job from running. Which of the fields are there depends on `reason`."""

    reason: HeldFor
    name: str | None = None
    until: float | None = None
    by: str | None = None
    number: int | None = None
    limit: int | None = None
    words: str | None = None  # why its tenant is paused
    job: Holder | None = None


class HeldRow(msgspec.Struct, frozen=True):
    """What a store reads of one job, in this order."""

    id: str
    held: str | None
    queue: str
    task: str
    run_at: float | None
    ordered: str | None
    concurrency: str | None
    limit: int | None
    tenant: str | None
    gate: str | None
    lock: str | None
    owner: str | None  # of the lock, when somebody holds it now
    paused_by: str | None
    saga_waits: str | None
    holder: str | None  # the id of the job with its turn, or with one of the slots
    number: int | None  # of slots that are taken, or of ready jobs of its tenant
    pause: str | None  # the words of its tenant's pause,
    pauser: str | None  # and whose it is


_OF_JOB = re.compile(r"/([0-9a-f-]{36})/\d+$")  # a task's lock is owned by worker/job/token


def job_of(owner: str | None) -> str | None:
    found = None if owner is None else _OF_JOB.search(owner)
    return None if found is None else found[1]


def holders(rows: Iterable[HeldRow]) -> list[str]:
    """The ids of the jobs that must be read too."""
    return sorted({found for row in rows if (found := row.holder or job_of(row.owner)) is not None})


# A pause of its tenant is what keeps a job from running that is held for these reasons, or ready.
_BY_TENANT = (None, Held.ARRIVED, Held.PAUSED, Held.TENANT)


def held_by(row: HeldRow, found: Mapping[str, Holder]) -> HeldBy | None:
    """None: it is ready, and a worker may take it."""
    if row.pause is not None and row.held in _BY_TENANT:
        return HeldBy(reason=HeldFor.PAUSED, name=row.tenant, by=row.pauser, words=row.pause)
    if row.held is None:
        if row.paused_by is None:
            return None
        return HeldBy(reason=HeldFor.PAUSED, name=row.queue, by=row.paused_by)
    return _held_by(row, Held(row.held), found.get(row.holder or job_of(row.owner) or ""))


def _held_by(row: HeldRow, held: Held, holder: Holder | None) -> HeldBy:
    if held is Held.TIME:
        by = row.owner if holder is None else None
        reason = HeldFor.TIME if row.lock is None else HeldFor.LOCK
        return HeldBy(reason=reason, name=row.lock, until=row.run_at, by=by, job=holder)
    if held is Held.CONCURRENCY:
        return HeldBy(
            reason=HeldFor.CONCURRENCY, name=row.concurrency, number=row.number, limit=row.limit, job=holder
        )
    names = {
        Held.ORDERING: row.ordered,
        Held.PAUSED: row.tenant,  # resumed just now: the next promote lets it go
        Held.TENANT: row.tenant,
        Held.GUARD: row.gate,
        Held.WAITING: row.saga_waits,
        Held.UNKNOWN_TASK: row.task,
    }
    until = row.run_at if held is Held.WAITING else None
    return HeldBy(reason=HeldFor(held), name=names.get(held), until=until, number=row.number, job=holder)
