"""Bugs around enqueue: its transaction, its unknown outcomes, its twins, its schedules."""
# ruff: noqa: ARG001  a planted function takes what the true one takes

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from holdfast.kernel.errors import CommitUnknown, StoreUnavailable
from holdfast.kernel.ids import new_id
from holdfast.store.records import Enqueued, NewJob
from holdfast.store.sqlite import jobs, schedules, writer
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.testing.simulation.mutants.planting import beside, mutant, replace, unkeyed


@mutant("enqueue ignores tx")
def _enqueue_ignores_tx(stack: ExitStack) -> None:
    """a job is stored beside its caller's transaction, not in it"""
    original = jobs.Jobs.enqueue

    async def enqueue(
        self: jobs.Jobs, new: Sequence[NewJob], *, tx: object = None, again: bool = False
    ) -> list[Enqueued]:
        if isinstance(tx, SqliteTx):
            return await tx.run(beside(partial(jobs.enqueue, jobs=tuple(new))))
        return await original(self, new, again=again)

    replace(stack, jobs.Jobs, "enqueue", enqueue)


@mutant("a retry mints a new id")
def _retry_mints_a_new_id(stack: ExitStack) -> None:
    """an enqueue of unknown outcome is repeated as another job"""
    original = jobs.Jobs.enqueue

    async def enqueue(
        self: jobs.Jobs, new: Sequence[NewJob], *, tx: object = None, again: bool = False
    ) -> list[Enqueued]:
        if tx is not None:
            return await original(self, new, tx=tx)
        lost: CommitUnknown | None = None
        while True:
            try:
                return await self._file.write(partial(jobs.enqueue, jobs=new))
            except CommitUnknown as unknown:
                lost = unknown
                new = [msgspec.structs.replace(job, id=new_id()) for job in new]
            except StoreUnavailable as refused:
                raise (lost or refused) from refused

    replace(stack, jobs.Jobs, "enqueue", enqueue)


@mutant("refused after unknown")
def _refused_after_unknown(stack: ExitStack) -> None:
    """an enqueue that may have committed is answered as refused, because its repetition was"""
    original = jobs.Jobs.enqueue

    async def enqueue(self: jobs.Jobs, new: Any, *, tx: Any = None, again: bool = False) -> list[Enqueued]:
        try:
            return await original(self, new, tx=tx, again=again)
        except CommitUnknown as unknown:
            raise (
                unknown.__cause__ if isinstance(unknown.__cause__, StoreUnavailable) else unknown
            ) from None

    replace(stack, jobs.Jobs, "enqueue", enqueue)


@mutant("no unique key", unkeyed("holdfast_unique", "key TEXT, seq INTEGER"))
def _no_unique_key(stack: ExitStack) -> None:
    """neither the index nor enqueue looks for another job with the unique key"""
    replace(stack, jobs, "_twins", lambda *_: {})


@mutant("a tick without its row")
def _tick_without_its_row(stack: ExitStack) -> None:
    """two schedulers each enqueue the job of a nominal time"""

    def tick(db: Db, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        [enqueued] = jobs.enqueue(db, [job])
        sql = "INSERT INTO holdfast_tick (schedule, nominal, job_id, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        db.run(sql, schedule, nominal, enqueued.id, db.now)
        return enqueued

    replace(stack, schedules, "tick", tick)


@mutant("a twin is called new")
def _a_twin_is_called_new(stack: ExitStack) -> None:
    """who enqueues a job whose unique key is taken is told that it was stored"""
    original = jobs.enqueue

    def enqueue(db: Db, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return [Enqueued(answer.id, created=True) for answer in original(db, jobs)]

    replace(stack, jobs, "enqueue", enqueue)


@mutant("cause and story are swapped")
def _cause_and_story_are_swapped(stack: ExitStack) -> None:
    """a job is stored with its causation as its correlation"""
    original = jobs._job_row  # noqa: SLF001  the true one

    def job_row(job: NewJob, now: float) -> Any:
        swapped = {"correlation_id": job.causation_id, "causation_id": job.correlation_id}
        return original(msgspec.structs.replace(job, **swapped), now)

    replace(stack, jobs, "_job_row", job_row)


@mutant("transactions are never cut off")
def _transactions_are_never_cut_off(stack: ExitStack) -> None:
    """a caller may keep everyone from writing for as long as it likes"""
    replace(stack, writer, "TRANSACTION_LIMIT", 1000.0)
