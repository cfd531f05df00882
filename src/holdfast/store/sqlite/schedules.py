"""The ticks of schedules: one job for each nominal time, whoever asks."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.errors import CommitUnknown
from holdfast.store import verdicts
from holdfast.store.bell import news_of
from holdfast.store.edge import checked
from holdfast.store.records import Enqueued, NewJob, Tick
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.jobs import enqueue
from holdfast.store.sqlite.subject import Subject
from holdfast.store.unknown import still_unknown

# In place of a job: the row is a beginning, and the schedule has not ticked yet.
NO_JOB = "00000000-0000-0000-0000-000000000000"


def begin(db: Db, schedule: str) -> float:
    sql = (
        "INSERT INTO holdfast_tick (schedule, nominal, job_id, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    )
    db.run(sql, schedule, db.now, NO_JOB, db.now)
    left: float = db.value("SELECT nominal FROM holdfast_tick WHERE schedule = ?", schedule)
    return left


def tick(db: Db, schedule: str, nominal: float, job: NewJob, *, again: bool = False) -> Enqueued | None:
    """The job first: a refusal must leave no tick behind."""
    there = "SELECT 1 FROM holdfast_tick WHERE schedule = ? AND nominal >= ? AND job_id <> ?"
    if db.value(there, schedule, nominal, NO_JOB):
        return _ours(db, schedule, nominal, job) if again else None
    [enqueued] = enqueue(db, [job])
    sql = """INSERT INTO holdfast_tick (schedule, nominal, job_id, at) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET nominal = excluded.nominal, job_id = excluded.job_id, at = excluded.at"""
    db.run(sql, schedule, nominal, enqueued.id, db.now)
    return enqueued


def _ours(db: Db, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
    """After a lost answer: the row that is there may be of our own first try, if nobody has gone on since."""
    sql = "SELECT 1 FROM holdfast_tick WHERE schedule = ? AND nominal = ? AND job_id = ?"
    return Enqueued(job.id, True) if db.value(sql, schedule, nominal, job.id) else None


def last(db: Db, schedule: str) -> Tick | None:
    tick = _row(db, schedule)
    return None if tick is None or tick.job_id == NO_JOB else tick


def _row(db: Db, schedule: str) -> Tick | None:
    row = db.row("SELECT schedule, nominal, job_id, at FROM holdfast_tick WHERE schedule = ?", schedule)
    return None if row is None else Tick(*row)


def reset(db: Db, schedule: str, *, actor: str) -> bool:
    """Also a beginning: a wrong clock may have put it far in the future as well."""
    tick = _row(db, schedule)
    if tick is None:
        return False
    db.run("DELETE FROM holdfast_tick WHERE schedule = ?", schedule)
    audit.write(db, verdicts.reset(tick, actor=actor))
    return True


@checked
class Schedules(Subject):
    async def begin(self, schedule: str) -> float:
        return await self._file.write(partial(begin, schedule=schedule), repeatable=True)

    async def tick(self, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        call = partial(tick, schedule=schedule, nominal=nominal, job=job)
        try:
            enqueued = await self._file.write(call)
        except CommitUnknown as unknown:
            enqueued = await still_unknown(unknown, self._file.write(partial(call, again=True)))
        if enqueued is not None:
            self._file.hint(news_of([job], [enqueued]))
        return enqueued

    async def last(self, schedule: str) -> Tick | None:
        return await self._file.read(partial(last, schedule=schedule))

    async def reset(self, schedule: str, *, actor: str) -> bool:
        return await self._file.write(partial(reset, schedule=schedule, actor=actor))
