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


def tick(db: Db, schedule: str, nominal: float, job: NewJob, *, again: bool = False) -> Enqueued | None:
    """The job first: a refusal must leave no tick behind."""
    if db.value("SELECT 1 FROM holdfast_tick WHERE schedule = ? AND nominal >= ?", schedule, nominal):
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
    row = db.row("SELECT schedule, nominal, job_id, at FROM holdfast_tick WHERE schedule = ?", schedule)
    return None if row is None else Tick(*row)


def reset(db: Db, schedule: str, *, actor: str) -> bool:
    tick = last(db, schedule)
    if tick is None:
        return False
    db.run("DELETE FROM holdfast_tick WHERE schedule = ?", schedule)
    audit.write(db, verdicts.reset(tick, actor=actor))
    return True


@checked
class Schedules(Subject):
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
