"""What callers do: enqueue, in transactions or not, cancel, pause, drain; and how they handle refused and unknown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import CommitUnknown, TooManyWaiting, TransactionEnded
from holdfast.kernel.ids import new_id
from holdfast.kernel.randomness import jittered
from holdfast.store.records import Enqueued, NewJob
from holdfast.testing.simulation.alerts import calling as alerts
from holdfast.testing.simulation.contenders import hold_lease, steal_lease, use_key
from holdfast.testing.simulation.events.emitting import emit, emit_expecting, emit_in_transaction
from holdfast.testing.simulation.events.viewing import rebuild
from holdfast.testing.simulation.fleet import Args, Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import SLOTS, JobSpec, Op
from holdfast.testing.simulation.sagas import calling as sagas

TRIES = 8


class _Rollback(Exception):
    """The caller changed its mind."""


async def call(life: Life, op: Op) -> None:
    await _KINDS[op.kind](life, op)


# --- enqueue ---


async def _enqueue(life: Life, op: Op) -> None:
    """Ids are minted once, so every try after an unknown outcome is the same request."""
    jobs = _new_jobs(life, op)
    again = False
    for _ in range(TRIES):
        asked = (op.number, [job.id for job in jobs], again)
        try:
            work = partial(life.store.jobs.enqueue, jobs, again=again)
            answer = await life.history.call("enqueue", asked, work)
        except CommitUnknown:
            again = True
        except REFUSALS:
            pass
        except TooManyWaiting:
            return
        else:
            life.fleet.acknowledged[op.number] = [stored.id for stored in answer]
            return
        await sleep(jittered(0.5))


async def _commit(life: Life, op: Op) -> None:
    """A business row and jobs in one transaction. After an unknown commit the row tells whether it happened."""
    jobs = _new_jobs(life, op)
    for _ in range(TRIES):
        asked = (op.number, [job.id for job in jobs], op.kind)
        try:
            answer = await life.history.call("transaction", asked, lambda: _transact(life, op, jobs))
        except CommitUnknown:
            if await _row_is_there(life, op):
                return
        except (TooManyWaiting, TransactionEnded, _Rollback):
            return
        except REFUSALS:
            pass
        else:
            life.fleet.acknowledged[op.number] = [stored.id for stored in answer]
            return
        await sleep(jittered(0.5))


async def _transact(life: Life, op: Op, jobs: list[NewJob]) -> list[Enqueued]:
    async with life.store.transaction() as tx:
        await tx.execute("INSERT INTO sim_row (op, kind, job_id) VALUES ($1, 'order', NULL)", op.number)
        answer = await life.store.jobs.enqueue(jobs, tx=tx)
        await sleep(op.seconds)  # sometimes past the limit of a transaction
        if op.kind == "rollback":
            raise _Rollback
    return answer


async def _row_is_there(life: Life, op: Op) -> bool:
    while True:
        try:
            async with life.store.transaction() as tx:
                return bool(
                    await tx.fetch("SELECT 1 FROM sim_row WHERE op = $1 AND kind = 'order'", op.number)
                )
        except (*REFUSALS, CommitUnknown):
            await sleep(jittered(0.5))


def traced(epoch: float, op: int, place: int) -> dict[str, Any]:
    """What a job carries along, different for each."""
    return {
        "correlation_id": f"story {op}",
        "causation_id": f"cause {op}.{place}",
        "trace": f"trace {place}.{op}",
        "deadline": epoch + 1e6 + 1000.0 * op + place,
        "generation": op + place,
    }


def _new_jobs(life: Life, op: Op) -> list[NewJob]:
    new_job = life.fleet.workload.new_job
    return [new_job(life, op, place, spec) for place, spec in enumerate(op.jobs)]


def new_job(life: Life, op: Op, place: int, spec: JobSpec) -> NewJob:
    return NewJob(
        id=new_id(),
        task="sim" if spec.max_waiting is None else "bounded",
        args=msgspec.json.encode(Args(op.number, place, spec.script)).decode(),
        queue=spec.queue,
        priority=spec.priority,
        delay=spec.delay,
        at=None if spec.at is None else life.fleet.plan.epoch + spec.at,
        expires=spec.expires,
        unique=spec.unique,
        replace=spec.replace,
        ordered=spec.ordered,
        concurrency=spec.concurrency,
        concurrency_limit=None if spec.concurrency is None else SLOTS[spec.concurrency],
        tenant=spec.tenant,
        guard=spec.guard,
        **traced(life.fleet.plan.epoch, op.number, place),
        max_waiting=spec.max_waiting,
    )


# --- the rest ---


async def _cancel(life: Life, op: Op) -> None:
    for job_id in life.fleet.acknowledged.get(op.target, []):
        await _try(life, "cancel", job_id, partial(_cancelled, life, job_id))


async def _cancelled(life: Life, job_id: str) -> object:
    """A program tells its handlers."""
    ends = getattr(life.app, "ends", None)
    if ends is None:
        return await life.store.jobs.cancel(job_id, "simulated")
    return await ends.cancel(job_id, "simulated", running=True, tx=None)


async def _pause(life: Life, op: Op) -> None:
    await _try(life, "pause", op.name, lambda: life.store.queues.pause(op.name, by="simulated"))
    await sleep(op.seconds)
    await _try(life, "resume", op.name, lambda: life.store.queues.resume(op.name, by="simulated"))


async def _pause_tenant(life: Life, op: Op) -> None:
    pause = partial(life.store.tenants.pause, op.name, reason="simulated", by="simulated")
    await _try(life, "pause tenant", op.name, pause)
    await sleep(op.seconds)
    resume = partial(life.store.tenants.resume, op.name, by="simulated")
    await _try(life, "resume tenant", op.name, resume)


async def _drain(life: Life, op: Op) -> None:
    for _ in range(op.turns):
        await sleep(0)
    await life.fleet.drain(life)


async def _epoch(life: Life, _: Op) -> None:
    await _try(life, "raise_epoch", None, life.store.raise_epoch)


async def _try(life: Life, verb: str, asked: object, work: Callable[[], Awaitable[object]]) -> None:
    try:
        await life.history.call(verb, asked, work)
    except (*REFUSALS, CommitUnknown):
        return


_KINDS: dict[str, Callable[[Life, Op], Awaitable[None]]] = {
    "enqueue": _enqueue,
    "commit": _commit,
    "rollback": _commit,
    "cancel": _cancel,
    "pause": _pause,
    "pause tenant": _pause_tenant,
    "drain": _drain,
    "epoch": _epoch,
    "lease": hold_lease,
    "steal": steal_lease,
    "key": use_key,
    "emit": emit,
    "emit in transaction": emit_in_transaction,
    "emit, then roll back": emit_in_transaction,
    "emit expecting": emit_expecting,
    "rebuild": rebuild,
    "start saga": sagas.start,
    "start saga in transaction": sagas.start_in_transaction,
    "roll back saga": sagas.start_in_transaction,
    "signal saga": sagas.signal,
    "cancel saga": sagas.cancel,
    "emit to sagas": sagas.emit,
    "raise alert": alerts.raise_,
    "raise alert in transaction": alerts.raise_in_transaction,
    "roll back alert": alerts.raise_in_transaction,
    "end alert": alerts.over,
}
