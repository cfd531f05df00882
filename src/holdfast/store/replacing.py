"""A taken unique key: the job that stands there, and whether a new call may replace its time and arguments."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.errors import CommitUnknown, UsageError
from holdfast.kernel.show import show
from holdfast.store.moving import Move
from holdfast.store.records import Enqueued, JobRecord, NewJob, Standing
from holdfast.store.states import State

_KEPT = ("task", "queue", "ordered", "concurrency", "tenant", "guard")


def standing_of(record: JobRecord, *, replaced: bool = False) -> Standing:
    return Standing(record.id, record.state, record.run_at or record.due_at, replaced)


def may_be_replaced(job: NewJob, record: JobRecord, *, has_steps: bool) -> bool:
    """One that has recorded steps keeps its arguments: they were made with these. Raises when its keys would be others."""
    if record.state is not State.QUEUED:
        return False
    for option in _KEPT:
        has, gets = getattr(record, option), getattr(job, option)
        if has != gets:
            raise UsageError(
                f"replace=True: job {record.id} with the unique key {show(job.unique)} has {option} {show(has)}, which it keeps, and this "
                f"call has {show(gets)}. Cancel it and enqueue another, or leave replace out. Nothing was stored."
            )
    return not has_steps or record.args == job.args


def wish_of(job: NewJob) -> Move:
    """Its new time: at once when none is given."""
    if job.at is not None:
        return Move(at=job.at, priority=job.priority)
    return Move(delay=job.delay or 0.0, priority=job.priority)


def answers_again(
    jobs: Sequence[NewJob], answers: list[Enqueued], lost: CommitUnknown | None
) -> list[Enqueued]:
    """Of a call that was repeated because its commit had no answer: what it replaced then may run by now, and nobody can tell."""
    for job, answer in zip(jobs, answers, strict=True):
        if lost is not None and job.replace and answer.standing is not None and not answer.standing.replaced:
            raise lost
    return answers
