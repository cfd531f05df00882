"""Enqueue jobs, look at them, cancel them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.loops import PerLoop
from holdfast.store.batching import Batcher
from holdfast.store.bell import EVERYONE, STOP, news_of
from holdfast.store.edge import checked
from holdfast.store.moving import Move
from holdfast.store.postgres import counting, finding
from holdfast.store.postgres.connection import BEGIN, IMPATIENT, AlreadyStored
from holdfast.store.postgres.enqueue import (
    PLAIN,
    enqueue,
    enqueue_and_tell,
    is_plain,
    is_single,
    plain_columns,
)
from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.listener import CHANNEL
from holdfast.store.postgres.moves import cancel
from holdfast.store.postgres.moving import move
from holdfast.store.postgres.rows import LIVE, OVER, to_record
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.postgres.transaction import Executor, PostgresTx
from holdfast.store.postgres.wakeups import TELLING, payload_of
from holdfast.store.records import Cancelled, Count, Enqueued, JobRecord, NewJob, id_range
from holdfast.store.replacing import answers_again
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import Held, State
from holdfast.store.story import Entry, entries_of
from holdfast.store.unknown import still_unknown

T = TypeVar("T")
_TRIES = 5  # for a call whose answer was lost
_TOGETHER = 1_000  # jobs of several callers in one statement
_MANY = 500  # jobs of one caller that are worth a COPY


def get(job_id: str) -> Procedure[JobRecord | None]:
    rows = yield Statement(_GET, (job_id,))
    return to_record(rows[0]) if rows else None


_GET = f"""
SELECT {LIVE} FROM holdfast.job j WHERE j.id = $1::uuid
UNION ALL SELECT {OVER} FROM holdfast.history h WHERE h.id = $1::uuid"""


def entries(job_id: str) -> Procedure[list[Entry]]:
    return [each for (text,) in (yield Statement(_ENTRIES, (job_id,))) for each in entries_of(text)]


_ENTRIES = """
SELECT story::text FROM holdfast.job WHERE id = $1::uuid
UNION ALL SELECT story::text FROM holdfast.history WHERE id = $1::uuid"""


def starting(prefix: str, limit: int) -> Procedure[list[str]]:
    return [row[0] for row in (yield Statement(_STARTING, (*id_range(prefix), limit)))]


_STARTING = """
SELECT DISTINCT id::text FROM (
    (SELECT id FROM holdfast.job WHERE id BETWEEN $1::uuid AND $2::uuid ORDER BY id LIMIT $3)
    UNION ALL
    (SELECT id FROM holdfast.history WHERE id BETWEEN $1::uuid AND $2::uuid ORDER BY id LIMIT $3)) AS found
ORDER BY 1 LIMIT $3"""


@checked
class Jobs(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._batches: PerLoop[Batcher[NewJob, Enqueued]] = PerLoop(
            lambda: Batcher(self._enqueue_batch, limit=_TOGETHER, name="enqueue")
        )

    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, again: bool = False
    ) -> list[Enqueued]:
        if not jobs:
            return []
        if (executor := await self._executor(tx)) is not None:
            answers = await self._within(executor, jobs, again=again)
        elif not again and len(jobs) == 1 and jobs[0].is_plain and self._home.wakeups.may_tell():
            answers, told = await self._and_tell(jobs[0])
            if told:
                return answers
        else:
            answers = await self._enqueue(jobs, again=again)
        self._home.hint(news_of(jobs, answers), tx=tx)
        return answers

    async def _within(self, executor: Executor, jobs: Sequence[NewJob], *, again: bool) -> list[Enqueued]:
        """In a caller's transaction, where plans are kept from when there were no jobs, and then walk through all of them."""
        procedure = enqueue(jobs, again=again)
        if isinstance(executor, PostgresTx):
            return await executor.run(
                procedure, is_large=again or any(job.unique is not None for job in jobs)
            )
        return await executor.run(procedure)

    async def _and_tell(self, job: NewJob) -> tuple[list[Enqueued], bool]:
        """A lone job in quiet times: the news of it does not take a round trip of its own."""
        self._database.pool.check()
        make = partial(enqueue_and_tell, job, TELLING, CHANNEL, payload_of({job.queue}))
        try:
            told = await self._database.write(make)
        except Blocked:
            return await self._alone([job]), False
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._repeated([job])), False
        if told:
            self._home.wakeups.told({job.queue})
        return [Enqueued(job.id, created=True)], told

    async def _enqueue(self, jobs: Sequence[NewJob], *, again: bool) -> list[Enqueued]:
        self._database.pool.check()
        if not again and len(jobs) < _MANY and all(job.is_batchable for job in jobs):
            return await self._together(jobs)
        if not again and len(jobs) >= _MANY and is_plain(jobs):
            return await self._copied(jobs)
        return await self._settled(jobs, again=again)

    async def _copied(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """COPY is about twice as fast, but knows no ON CONFLICT: an id that is there takes the usual way."""
        try:
            await self._database.copy("job", PLAIN, list(zip(*plain_columns(jobs), strict=True)))
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._settled(jobs, again=True))
        except AlreadyStored:
            return await self._settled(jobs)
        return [Enqueued(job.id, created=True) for job in jobs]

    async def _together(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """With those of others, unless another's open transaction has stored one of these ids: that is waited for alone."""
        try:
            return await self._batches.get().add(jobs)
        except Blocked:
            return await self._alone(jobs)

    async def _alone(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._database.patience.wait(partial(self._settled, jobs, begin=IMPATIENT))

    async def _enqueue_batch(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        try:
            return await self._database.write(partial(enqueue, jobs, impatient=True))
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._repeated(jobs))

    async def _settled(
        self, jobs: Sequence[NewJob], *, again: bool = False, begin: str | None = None
    ) -> list[Enqueued]:
        """Ids are the caller's, so a call whose answer was lost is simply made again."""
        make = partial(enqueue, jobs, again=again)
        try:
            if begin is None and is_single(jobs) and not again and not any(job.replace for job in jobs):
                return await self._database.write(make)
            return await self._database.atomic(make, begin=begin or BEGIN)
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._repeated(jobs))

    async def _repeated(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        for _ in range(_TRIES - 1):
            try:
                answers = await self._database.atomic(partial(enqueue, jobs, again=True))
                return answers_again(jobs, answers, CommitUnknown("It happened or it did not."))
            except CommitUnknown as unknown:
                lost = unknown
        raise lost

    async def get(self, job_id: str, *, tx: object | None = None) -> JobRecord | None:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(get(job_id))
        return await self._database.read(partial(get, job_id))

    async def entries(self, job_id: str) -> list[Entry]:
        return await self._database.read(partial(entries, job_id))

    async def starting(self, prefix: str, *, limit: int = 10) -> list[str]:
        return await self._database.read(partial(starting, prefix, limit))

    async def find(
        self,
        *,
        state: State | None = None,
        queue: str | None = None,
        task: str | None = None,
        held: Held | None = None,
        tenant: str | None = None,
        correlation_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
        tx: object | None = None,
    ) -> list[JobRecord]:
        keys = {"queue": queue, "task": task, "tenant": tenant, "correlation_id": correlation_id}
        call = partial(finding.find, state=state, held=held, before=before, limit=limit, **keys)
        return await self._read(call, tx)

    async def of_unique(
        self, keys: Sequence[str], *, each: int = 1, tx: object | None = None
    ) -> list[JobRecord]:
        return await self._read(partial(finding.of_unique, keys=keys, each=each), tx)

    async def of_tenant(
        self,
        tenant: str,
        *,
        states: Collection[State] = (),
        before: str | None = None,
        limit: int = 100,
        tx: object | None = None,
    ) -> list[JobRecord]:
        call = partial(finding.of_tenant, tenant=tenant, states=states, before=before, limit=limit)
        return await self._read(call, tx)

    async def _read(self, make: Callable[[], Procedure[T]], tx: object | None) -> T:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(make())
        return await self._database.read(make)

    async def count(self) -> list[Count]:
        return await self._database.atomic(counting.count, begin=counting.BY_INDEX, repeatable=True)

    async def tally(self) -> int:
        return await self._database.atomic(counting.tally, begin=counting.BY_INDEX, repeatable=True)

    async def cancel(
        self, job_id: str, reason: str, *, running: bool = True, tx: object | None = None
    ) -> State | None:
        met = await self.end(job_id, reason, running=running, tx=tx)
        return None if met is None else met.state

    async def end(
        self, job_id: str, reason: str, *, running: bool = True, tx: object | None = None
    ) -> Cancelled | None:
        met = await self._changed(partial(cancel, job_id, reason, running=running), tx)
        if met is not None and met.state is State.RUNNING and running:
            self._home.hint((STOP,), tx=tx)
        return met

    async def move(
        self,
        job_id: str,
        *,
        at: float | None = None,
        delay: float | None = None,
        priority: int | None = None,
        tx: object | None = None,
    ) -> State | None:
        wish = Move(at=at, delay=delay, priority=priority)
        state = await self._changed(partial(move, job_id, wish), tx)
        if state is State.QUEUED and wish.is_soon:
            self._home.hint((EVERYONE,), tx=tx)
        return state

    async def _changed(self, make: Callable[[], Procedure[T]], tx: object | None) -> T:
        if (executor := await self._executor(tx)) is not None:
            return await executor.run(make())
        return await self._database.atomic(make, repeatable=True)
