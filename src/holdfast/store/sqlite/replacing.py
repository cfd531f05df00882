"""What stands under a taken unique key, with new time and arguments where that is asked for."""

from __future__ import annotations

from holdfast.store.records import JobRecord, NewJob, Standing
from holdfast.store.replacing import may_be_replaced, standing_of, wish_of
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moving import move
from holdfast.store.sqlite.rows import RECORD, to_record

_HAS_STEPS = "SELECT steps_of IS NOT NULL AND steps_of = generation FROM holdfast_job WHERE id = ?"
_IN_JOB = "UPDATE holdfast_job SET args = ?, expires_at = ?, deadline = ? WHERE id = ?"
_IN_QUEUED = (
    "UPDATE holdfast_queued SET expires_at = ? WHERE seq = (SELECT seq FROM holdfast_job WHERE id = ?)"
)


def check_replaced(db: Db, job: NewJob, holder: str) -> None:
    """Before anything is written: raises when it would need other keys."""
    if job.replace:
        may_be_replaced(job, _record(db, holder), has_steps=False)


def meet(
    db: Db, job: NewJob, holder: str, *, expires_at: float | None, deadline: float | None, is_new: bool
) -> Standing:
    """`is_new`: it was stored by this very call."""
    record = _record(db, holder)
    if not job.replace or is_new:
        return standing_of(record)
    if not may_be_replaced(job, record, has_steps=bool(db.value(_HAS_STEPS, holder))):
        return standing_of(record)
    db.run(_IN_JOB, job.args, expires_at, deadline, holder)
    db.run(_IN_QUEUED, expires_at, holder)
    move(db, holder, wish_of(job))
    return standing_of(_record(db, holder), replaced=True)


def _record(db: Db, job_id: str) -> JobRecord:
    row = db.row(f"{RECORD} WHERE j.id = ?", job_id)
    assert row is not None
    return to_record(row)
