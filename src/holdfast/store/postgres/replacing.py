"""What stands under a taken unique key, with new time and arguments where that is asked for."""

from __future__ import annotations

from holdfast.kernel.errors import StoreUnavailable
from holdfast.store.postgres.moves import Locked, lock_job
from holdfast.store.postgres.moving import move
from holdfast.store.postgres.rows import LIVE, OVER, to_record
from holdfast.store.records import JobRecord, NewJob, Standing
from holdfast.store.replacing import may_be_replaced, standing_of, wish_of
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import State

_LOOKS = 10  # at a key that is freed and taken meanwhile
_STAND = (State.RUNNING, State.UNKNOWN)  # with its key


def meet(job: NewJob) -> Procedure[Standing | None]:
    """The job that has the key, replaced when it may be; None: nobody has it. Its row is locked from the look to the write."""
    for _ in range(_LOOKS):
        rows = yield Statement(_HOLDER, (job.unique,))
        if not rows:
            return None
        holder = rows[0][0]
        met = yield from lock_job(holder, "j.state = 'queued'")
        record = yield from _record(holder)
        if isinstance(met, Locked):
            assert record is not None
            return (yield from _replaced(job, record, has_steps=met.has_steps))
        if met in _STAND and record is not None and record.state in _STAND:
            return standing_of(record)
    raise StoreUnavailable(
        f"The unique key {job.unique!r} was taken and freed {_LOOKS} times while it was being looked at. "
        "Nothing was stored; try again."
    )


def _replaced(job: NewJob, record: JobRecord, *, has_steps: bool) -> Procedure[Standing]:
    if not may_be_replaced(job, record, has_steps=has_steps):
        return standing_of(record)
    yield Statement(_REPLACE, (record.id, job.args, job.deadline, job.within, job.expires))
    yield from move(record.id, wish_of(job))
    found = yield from _record(record.id)
    assert found is not None
    return standing_of(found, replaced=True)


def look(holder: str) -> Procedure[Standing | None]:
    """What it is now; None: it is gone, and with it its key."""
    record = yield from _record(holder)
    return None if record is None else standing_of(record)


def _record(job_id: str) -> Procedure[JobRecord | None]:
    rows = yield Statement(_GET, (job_id,))
    return to_record(rows[0]) if rows else None


_HOLDER = """SELECT id::text FROM holdfast.job
    WHERE unique_key = $1 AND unique_key IS NOT NULL AND state <> 'dead'"""
_GET = f"""
SELECT {LIVE} FROM holdfast.job j WHERE j.id = $1::uuid
UNION ALL SELECT {OVER} FROM holdfast.history h WHERE h.id = $1::uuid"""
_DEADLINE = "least(to_timestamp($3::float8), holdfast.now() + make_interval(secs => $4::float8))"
_REPLACE = f"""
UPDATE holdfast.job j SET args = $2::text, deadline = {_DEADLINE},
    expires_at = least(holdfast.now() + make_interval(secs => $5::float8), {_DEADLINE})
WHERE j.id = $1::uuid AND j.state = 'queued'"""
