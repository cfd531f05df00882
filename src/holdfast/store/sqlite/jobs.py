"""Enqueue jobs, look at them, cancel them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import CommitUnknown, NotOpen, StoreError, TooManyWaiting
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.show import storable
from holdfast.store import saga_verdicts
from holdfast.store.batching import Batcher
from holdfast.store.bell import EVERYONE, STOP, news_of
from holdfast.store.edge import checked
from holdfast.store.moving import Move
from holdfast.store.records import Cancelled, Count, Enqueued, JobRecord, NewJob, Standing, id_range
from holdfast.store.replacing import answers_again
from holdfast.store.sqlite import counting, finding
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moves import end_parked, end_queued, pass_on
from holdfast.store.sqlite.moving import move
from holdfast.store.sqlite.replacing import check_replaced, meet
from holdfast.store.sqlite.rows import RECORD, Row, to_record
from holdfast.store.sqlite.subject import File, Subject
from holdfast.store.states import Held, State
from holdfast.store.story import Entry, entries_of
from holdfast.store.turns import turns

T = TypeVar("T")
_TRIES = 5  # for a call whose answer was lost
_TOGETHER = 500  # jobs of several callers in one commit
_FEW = 100  # jobs of one caller that may share it
_JOB = """
    INSERT INTO holdfast_job (id, task, queue, priority, args, generation, bounded, enqueued_at, expires_at, deadline,
        unique_key, ordering_key, concurrency_key, concurrency_limit, tenant, guard,
        correlation_id, causation_id, trace, due_at, by_time)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_QUEUED = """
    INSERT INTO holdfast_queued (seq, rank, priority, queue, held, run_at, expires_at, bounded_task,
        ordering_key, concurrency_key, tenant)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


# Ready at once: half of the columns, and what is queued follows from what was stored.
_PLAIN = """
    INSERT INTO holdfast_job (id, task, queue, priority, args, generation, bounded, enqueued_at,
        correlation_id, causation_id, trace)
    VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)"""
_PLAIN_QUEUED = """
    INSERT INTO holdfast_queued (seq, rank, priority, queue)
    SELECT seq, ?1 + seq - ?2, priority, queue FROM holdfast_job WHERE seq BETWEEN ?2 AND ?3"""


def enqueue(db: Db, jobs: Sequence[NewJob], *, free: Collection[str] = ()) -> list[Enqueued]:
    """Store all of them, or raise before anything is written. An id that is known is not stored again.

    `free`: orders in which nobody is, and the first of these jobs has its turn at once.
    """
    known, first = _known(db, jobs), dict[str, NewJob]()
    for job in jobs:
        first.setdefault(job.id, job)
    once = list(first.values())
    if not known and all(job.is_plain for job in once):
        _insert_plain(db, once)
        return [Enqueued(job.id, True) for job in jobs]
    twins = _twins(db, once, known)
    new = [job for job in once if job.id not in known and job.id not in twins]
    stored = {job.id for job in new}
    for job in once:
        if job.id in twins and twins[job.id] not in stored:
            check_replaced(db, job, twins[job.id])
    _refuse_crowd(db, new)
    if new:
        _insert(db, new, free)
    standing = {job.id: _meet(db, job, twins[job.id], stored) for job in once if job.id in twins}
    return [Enqueued(twins.get(job.id, job.id), job.id not in twins, standing.get(job.id)) for job in jobs]


def _meet(db: Db, job: NewJob, holder: str, stored: Collection[str]) -> Standing:
    expires_at, deadline = _expires_at(job, db.now), _deadline(job, db.now)
    return meet(db, job, holder, expires_at=expires_at, deadline=deadline, is_new=holder in stored)


def _known(db: Db, jobs: Sequence[NewJob]) -> set[str]:
    ids = '["' + '","'.join([job.id for job in jobs]) + '"]'  # of hexadecimal digits: a NewJob has checked
    sql = "SELECT id FROM holdfast_job WHERE id IN (SELECT value FROM json_each(?))"
    return {row[0] for row in db.rows(sql, ids)}


def _twins(db: Db, jobs: Sequence[NewJob], known: set[str]) -> dict[str, str]:
    """For each new job whose unique key another has, or had earlier in this call: the id of that other."""
    twins: dict[str, str] = {}
    # By key: also one that is over by now, or a repeated call would store its twin.
    first: dict[str, str] = {}
    sql = "SELECT id FROM holdfast_job WHERE seq = (SELECT seq FROM holdfast_unique WHERE key = ?)"
    for job in jobs:
        if job.unique is None:
            continue
        if job.id not in known:
            holder = first.get(job.unique) or db.value(sql, job.unique) or job.id
            if holder != job.id:
                twins[job.id] = holder
        first.setdefault(job.unique, twins.get(job.id, job.id))
    return twins


def _refuse_crowd(db: Db, new: Sequence[NewJob]) -> None:
    bounded: dict[str, list[int]] = {}
    for job in new:
        if job.max_waiting is not None:
            bounded.setdefault(job.task, []).append(job.max_waiting)
    for task, limits in bounded.items():
        waiting = db.value("SELECT count(*) FROM holdfast_queued WHERE bounded_task = ?", task)
        if waiting + len(limits) > min(limits):
            raise TooManyWaiting(
                f"Task {task!r} has {waiting} jobs waiting and may have {min(limits)} (max_waiting); "
                f"{len(limits)} more were refused and nothing was stored. Try again later, or raise max_waiting."
            )


def _insert_plain(db: Db, new: Sequence[NewJob]) -> None:
    rank = db.draw("rank", len(new))
    db.run_many(_PLAIN, [_plain_row(job, db.now) for job in new])
    last = db.connection.last_insert_rowid()
    # One after the other in one transaction: none is skipped.
    db.run(_PLAIN_QUEUED, rank, last - len(new) + 1, last)


def _plain_row(job: NewJob, now: float) -> Row:
    return (
        job.id, job.task, job.queue, job.priority, job.args, job.generation, now,
        job.correlation_id, job.causation_id, job.trace,
    )  # fmt: skip


def _insert(db: Db, new: Sequence[NewJob], free: Collection[str]) -> None:
    rank = db.draw("rank", len(new))
    db.run_many(_JOB, [_job_row(job, db.now) for job in new])
    last = db.connection.last_insert_rowid()
    first = last - len(new) + 1  # one statement after the other in one transaction: no number is skipped
    given = turns(new, free)
    rows = [
        _queued_row(job, turn, first + place, rank + place, db.now)
        for place, (job, turn) in enumerate(zip(new, given, strict=True))
    ]
    db.run_many(_QUEUED, rows)
    if with_turn := [(new[place].ordered, first + place) for place, turn in enumerate(given) if turn]:
        db.run_many("INSERT INTO holdfast_turn (key, seq) VALUES (?, ?)", with_turn)
    unique = [(job.unique, first + place) for place, job in enumerate(new) if job.unique is not None]
    if unique:
        db.run_many("INSERT INTO holdfast_unique (key, seq) VALUES (?, ?)", unique)


def _job_row(job: NewJob, now: float) -> Row:
    return (
        job.id,
        job.task,
        job.queue,
        job.priority,
        job.args,
        job.generation,
        job.max_waiting is not None,
        now,
        _expires_at(job, now),
        _deadline(job, now),
        job.unique,
        job.ordered,
        job.concurrency,
        job.concurrency_limit,
        job.tenant,
        job.guard,
        job.correlation_id,
        job.causation_id,
        job.trace,
        _run_at(job, now),
        job.by_time,
    )


def _run_at(job: NewJob, now: float) -> float | None:
    return now + job.delay if job.delay else job.at


def _deadline(job: NewJob, now: float) -> float | None:
    if job.within is None:
        return job.deadline
    return now + job.within if job.deadline is None else min(job.deadline, now + job.within)


def _expires_at(job: NewJob, now: float) -> float | None:
    """Nothing begins after its deadline either, so what has not begun by then has expired."""
    ends = (None if job.expires is None else now + job.expires, _deadline(job, now))
    return min((end for end in ends if end is not None), default=None)


def _queued_row(job: NewJob, turn: bool | None, seq: int, rank: int, now: float) -> Row:
    run_at = _run_at(job, now)
    return (
        seq,
        rank,
        job.priority,
        job.queue,
        _held(job, turn, is_due=run_at is None or run_at <= now),
        run_at,
        _expires_at(job, now),
        None if job.max_waiting is None else job.task,
        job.ordered,
        job.concurrency,
        job.tenant,
    )


def _held(job: NewJob, turn: bool | None, *, is_due: bool) -> Held | None:
    if turn is not None:
        return None if turn else Held.ORDERING
    if not is_due and not job.has_place:
        return Held.TIME
    return Held.ARRIVED if job.keyed else None


def get(db: Db, job_id: str) -> JobRecord | None:
    row = db.row(f"{RECORD} WHERE j.id = ?", job_id)
    return None if row is None else to_record(row)


def entries(db: Db, job_id: str) -> list[Entry]:
    return entries_of(db.value("SELECT story FROM holdfast_job WHERE id = ?", job_id))


def starting(db: Db, prefix: str, *, limit: int) -> list[str]:
    sql = "SELECT id FROM holdfast_job WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
    return [job_id for (job_id,) in db.rows(sql, *id_range(prefix), limit)]


_CARRIED = "SELECT id FROM holdfast_saga WHERE job_id = ? AND finished_at IS NULL"


def cancel(db: Db, job_id: str, reason: str, *, running: bool) -> Cancelled | None:
    row = db.row(f"SELECT state, seq FROM ({RECORD} WHERE j.id = ?) JOIN holdfast_job USING (id)", job_id)
    if row is None:
        return None
    state, seq = State(row[0]), row[1]
    if (saga := db.value(_CARRIED, job_id)) is not None:
        raise saga_verdicts.refuse_cancel(job_id, saga)
    match state:
        case State.QUEUED:
            pass_on(db, [end_queued(db, seq, reason)])
        case State.RUNNING if running:
            db.run("UPDATE holdfast_running SET stop = ? WHERE seq = ?", reason, seq)
            db.draw("rank")  # that is what other processes watch for news
            return Cancelled(state, state)
        case State.DEAD | State.UNKNOWN:
            pass_on(db, [end_parked(db, seq, reason)])
        case _:
            return Cancelled(state, state)
    return Cancelled(State.CANCELLED, state)


@checked
class Jobs(Subject):
    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._batches: PerLoop[Batcher[NewJob, Enqueued]] = PerLoop(
            lambda: Batcher(self._enqueue, limit=_TOGETHER, name="enqueue")
        )

    async def enqueue(
        self,
        jobs: Sequence[NewJob],
        *,
        tx: object | None = None,
        again: bool = False,  # noqa: ARG002  an id is known here for as long as the history keeps it
    ) -> list[Enqueued]:
        if not jobs:
            return []
        if tx is not None:
            answers = await self._file.write(partial(enqueue, jobs=jobs), tx=tx)
        elif len(jobs) <= _FEW and all(job.is_batchable for job in jobs):
            self._file.check_free()  # here: the batch is another task's, which would wait for its own caller
            answers = await self._batches.get().add(jobs)
        else:
            answers = await self._enqueue(jobs)
        self._file.hint(news_of(jobs, answers), tx=tx)
        return answers

    async def rest(self) -> None:
        """Wait for what callers of this loop have asked for together."""
        await self._batches.get().rest()

    async def _enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        call = partial(enqueue, jobs=jobs)
        lost: CommitUnknown | None = None
        for _ in range(_TRIES):
            try:
                answers = await self._file.write(call)
            except CommitUnknown as unknown:
                lost = unknown  # the ids are the caller's, so the call is simply made again
            except (StoreError, NotOpen) as error:
                if lost is None:
                    raise
                raise lost from error  # "nothing was stored" would be a guess: the try before may have committed
            else:
                return answers_again(jobs, answers, lost)
        assert lost is not None
        raise lost

    async def get(self, job_id: str, *, tx: object | None = None) -> JobRecord | None:
        call = partial(get, job_id=job_id)
        return await (self._file.read(call) if tx is None else self._file.write(call, tx=tx))

    async def entries(self, job_id: str) -> list[Entry]:
        return await self._file.read(partial(entries, job_id=job_id))

    async def starting(self, prefix: str, *, limit: int = 10) -> list[str]:
        return await self._file.read(partial(starting, prefix=prefix, limit=limit))

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
        keys: dict[str, Any] = {
            "queue": queue,
            "task": task,
            "tenant": tenant,
            "correlation_id": correlation_id,
        }
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

    async def _read(self, call: Callable[[Db], T], tx: object | None) -> T:
        return await (self._file.read(call) if tx is None else self._file.write(call, tx=tx))

    async def count(self) -> list[Count]:
        return await self._file.read(counting.count)

    async def tally(self) -> int:
        """What takes long is read, and only the numbers are written."""
        kinds, is_over = await self._file.read(counting.due)
        if is_over:
            await self._file.write(partial(counting.keep, numbers=[], at=0.0, took=0.0), repeatable=True)
        if not kinds:
            return 0
        began = monotonic()
        at, numbers = await self._file.read(partial(counting.count_all, kinds=kinds))
        took = monotonic() - began
        await self._file.write(partial(counting.keep, numbers=numbers, at=at, took=took), repeatable=True)
        return len(kinds)

    async def cancel(
        self, job_id: str, reason: str, *, running: bool = True, tx: object | None = None
    ) -> State | None:
        met = await self.end(job_id, reason, running=running, tx=tx)
        return None if met is None else met.state

    async def end(
        self, job_id: str, reason: str, *, running: bool = True, tx: object | None = None
    ) -> Cancelled | None:
        call = partial(cancel, job_id=job_id, reason=storable(reason), running=running)
        met = await self._file.write(call, tx=tx, repeatable=True)
        if met is not None and met.state is State.RUNNING and running:
            self._file.hint((STOP,), tx=tx)
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
        state = await self._file.write(partial(move, job_id=job_id, wish=wish), tx=tx, repeatable=True)
        if state is State.QUEUED and wish.is_soon:
            self._file.hint((EVERYONE,), tx=tx)
        return state
