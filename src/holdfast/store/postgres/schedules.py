"""The ticks of schedules: one job for each nominal time, whoever asks."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.errors import CommitUnknown
from holdfast.store import verdicts
from holdfast.store.bell import news_of
from holdfast.store.edge import checked
from holdfast.store.postgres import audit
from holdfast.store.postgres.enqueue import enqueue
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import Enqueued, NewJob, Tick
from holdfast.store.statements import Procedure, Statement
from holdfast.store.unknown import still_unknown

# In place of a job: the row is a beginning, and the schedule has not ticked yet.
NO_JOB = "00000000-0000-0000-0000-000000000000"


def begin(schedule: str) -> Procedure[float]:
    [(left,)] = yield Statement(_BEGIN, (schedule,))
    return float(left)


# The update changes nothing: it makes the row that is there the answer, in the same statement.
_BEGIN = f"""
INSERT INTO holdfast.tick (schedule, nominal, job_id) VALUES ($1::text, holdfast.now(), '{NO_JOB}')
ON CONFLICT (schedule) DO UPDATE SET nominal = tick.nominal RETURNING date_part('epoch', nominal)"""


def tick(schedule: str, nominal: float, job: NewJob, *, again: bool = False) -> Procedure[Enqueued | None]:
    """The row first: whoever comes second waits for it, and then has nothing to do."""
    rows = yield Statement(_TICK, (schedule, float(nominal), job.id))
    if not rows:
        return (yield from _ours(schedule, nominal, job)) if again else None
    [enqueued] = yield from enqueue([job], again=again)
    if enqueued.id != job.id:
        sql = "UPDATE holdfast.tick SET job_id = $2::uuid WHERE schedule = $1::text"
        yield Statement(sql, (schedule, enqueued.id))
    return enqueued


_TICK = f"""
INSERT INTO holdfast.tick (schedule, nominal, job_id) VALUES ($1::text, to_timestamp($2::float8), $3::uuid)
ON CONFLICT (schedule) DO UPDATE SET nominal = excluded.nominal, job_id = excluded.job_id, at = holdfast.now()
WHERE tick.nominal < excluded.nominal OR tick.job_id = '{NO_JOB}' RETURNING job_id"""


def _ours(schedule: str, nominal: float, job: NewJob) -> Procedure[Enqueued | None]:
    """After a lost answer: the row that is there may be of our own first try, if nobody has gone on since."""
    sql = """SELECT 1 FROM holdfast.tick
        WHERE schedule = $1::text AND nominal = to_timestamp($2::float8) AND job_id = $3::uuid"""
    rows = yield Statement(sql, (schedule, float(nominal), job.id))
    return Enqueued(job.id, True) if rows else None


def last(schedule: str) -> Procedure[Tick | None]:
    sql = """SELECT schedule, date_part('epoch', nominal), job_id::text, date_part('epoch', at) FROM holdfast.tick
        WHERE schedule = $1::text"""
    rows = yield Statement(sql, (schedule,))
    return Tick(*rows[0]) if rows and rows[0][2] != NO_JOB else None


def reset(schedule: str, *, actor: str) -> Procedure[bool]:
    """Also a beginning: a wrong clock may have put it far in the future as well."""
    rows = yield Statement(_RESET, (schedule,))
    for row in rows:
        yield from audit.write(verdicts.reset(Tick(*row), actor=actor))
    return bool(rows)


_RESET = """
DELETE FROM holdfast.tick WHERE schedule = $1::text
RETURNING schedule, date_part('epoch', nominal), job_id::text, date_part('epoch', at)"""


@checked
class Schedules(Subject):
    async def begin(self, schedule: str) -> float:
        return await self._database.write(partial(begin, schedule), repeatable=True)

    async def tick(self, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        enqueued = await self._tick(schedule, nominal, job)
        if enqueued is not None:
            self._home.hint(news_of([job], [enqueued]))
        return enqueued

    async def _tick(self, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        try:
            return await self._database.atomic(partial(tick, schedule, nominal, job))
        except CommitUnknown as unknown:
            again = self._database.atomic(partial(tick, schedule, nominal, job, again=True))
            return await still_unknown(unknown, again)

    async def last(self, schedule: str) -> Tick | None:
        return await self._database.read(partial(last, schedule))

    async def reset(self, schedule: str, *, actor: str) -> bool:
        return await self._database.atomic(partial(reset, schedule, actor=actor))
