"""Why a job does not run yet, in words: short in a listing, whole where one job is shown."""

from __future__ import annotations

from holdfast.jobs.rates import NAME
from holdfast.kernel.show import show
from holdfast.runtime.cli.times import ago, span
from holdfast.store.held_records import HeldBy, HeldFor, Holder
from holdfast.store.records import JobRecord
from holdfast.store.states import State

_RATE = NAME.format("")  # before the name of a task, and its key
_SHORT = 13  # letters of an id that tell it from others, as commands take them


def why_held(record: JobRecord, now: float, *, whole: bool = False) -> str | None:
    """`lock 'one', of job 01a1f028-30ce (shop.ship, running for 12 s)`; None: it is not held."""
    held = record.held_by
    if held is None:
        return None if record.held is None else str(record.held)
    return _WORDS[held.reason](held, now, whole)


def _arrived(_: HeldBy, __: float, whole: bool) -> str:
    return "arrived; a worker looks at it in a moment" if whole else "arrived"


def _ordering(held: HeldBy, now: float, whole: bool) -> str:
    return f"order {show(held.name)}, behind {_job(held.job, now, whole=whole)}"


def _time(held: HeldBy, now: float, _: bool) -> str:
    return "time" if held.until is None else f"time, {ago(held.until, now)}"


def _lock(held: HeldBy, now: float, whole: bool) -> str:
    lock = f"lock {show(held.name)}"
    if held.job is not None:
        return f"{lock}, of {_job(held.job, now, whole=whole)}"
    return f"{lock}, of {held.by}" if held.by else f"{lock}, which is free now"


def _concurrency(held: HeldBy, now: float, whole: bool) -> str:
    taken = f"concurrency {show(held.name)}, {held.number} of {held.limit} taken"
    return taken if held.job is None else f"{taken}, by {_job(held.job, now, whole=whole)}"


def _tenant(held: HeldBy, _: float, __: bool) -> str:
    return f"tenant {show(held.name)}, {held.number:,} of it are ready"


def _guard(held: HeldBy, _: float, whole: bool) -> str:
    if held.name is not None and held.name.startswith(_RATE):
        rate = f"rate {show(held.name.removeprefix(_RATE))}"
        return f"{rate}: its turn comes, so many a second as the task says" if whole else rate
    return f"guard {show(held.name)}" + (": `holdfast guards` tells why" if whole else "")


def _waiting(held: HeldBy, now: float, _: bool) -> str:
    until = "" if held.until is None else f", {ago(held.until, now)}"
    return f"waiting for {held.name}{until}" if held.name else f"waiting{until}"


def _unknown_task(held: HeldBy, _: float, whole: bool) -> str:
    return f"the worker that met it does not know {held.name}" if whole else "unknown_task"


def _paused(held: HeldBy, _: float, __: bool) -> str:
    if held.words is None:
        return f"queue {show(held.name)} is paused, by {held.by}"
    return f"tenant {show(held.name)} is paused, by {held.by}: {held.words}"


_WORDS = {
    HeldFor.ARRIVED: _arrived,
    HeldFor.ORDERING: _ordering,
    HeldFor.TIME: _time,
    HeldFor.LOCK: _lock,
    HeldFor.CONCURRENCY: _concurrency,
    HeldFor.TENANT: _tenant,
    HeldFor.GUARD: _guard,
    HeldFor.WAITING: _waiting,
    HeldFor.UNKNOWN_TASK: _unknown_task,
    HeldFor.PAUSED: _paused,
}


def _job(job: Holder | None, now: float, *, whole: bool) -> str:
    if job is None:
        return "a job that is over by now"
    name = job.id if whole else job.id[:_SHORT]
    state = (
        f"running for {span(now - job.since)}"
        if job.since is not None
        else _STATES.get(job.state, str(job.state))
    )
    return f"job {name} ({job.task}, {state})"


_STATES = {State.QUEUED: "queued too"}
