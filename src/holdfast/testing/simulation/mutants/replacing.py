"""Bugs where a call gives a queued job another time and other arguments."""
# ruff: noqa: ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from contextlib import ExitStack

import msgspec

from holdfast.store import replacing as rules
from holdfast.store.records import JobRecord, NewJob
from holdfast.store.sqlite import replacing
from holdfast.store.states import State
from holdfast.testing.simulation.mutants.planting import mutant, replace


@mutant("a replaced job keeps its time")
def _a_replaced_job_keeps_its_time(stack: ExitStack) -> None:
    """it is told that a job has another time, and only its arguments are others"""
    replace(stack, replacing, "move", lambda db, job_id, wish: State.QUEUED)


@mutant("a replaced job keeps its arguments")
def _a_replaced_job_keeps_its_arguments(stack: ExitStack) -> None:
    """a job gets another time and runs with what was said before"""
    changed = replacing._IN_JOB.replace("args = ?", "args = coalesce(args, ?)")
    assert changed != replacing._IN_JOB
    replace(stack, replacing, "_IN_JOB", changed)


@mutant("what runs is replaced")
def _what_runs_is_replaced(stack: ExitStack) -> None:
    """a job that a worker has taken gets other arguments, and the caller hears that it will run with them"""
    original = rules.may_be_replaced

    def may_be_replaced(job: NewJob, record: JobRecord, *, has_steps: bool) -> bool:
        if record.state is State.RUNNING:
            record = msgspec.structs.replace(record, state=State.QUEUED)
        return original(job, record, has_steps=has_steps)

    replace(stack, replacing, "may_be_replaced", may_be_replaced)


@mutant("a queued job is left alone")
def _a_queued_job_is_left_alone(stack: ExitStack) -> None:
    """replace=True does what an enqueue without it does"""
    replace(stack, replacing, "may_be_replaced", lambda job, record, *, has_steps: False)
