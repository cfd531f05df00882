"""What stands around the body of a run: the quota that it brings, what it finds out, what its guard meets, its deadline."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from holdfast.guards.deadline import deadline
from holdfast.guards.reservations import carrying
from holdfast.guards.visits import visiting
from holdfast.guards.witness import Witness, witnessing
from holdfast.jobs.run import Run
from holdfast.jobs.task import Task


def has_nothing_around(run: Run, task: Task[Any, Any]) -> bool:
    """Most runs: entering what is empty costs time, too."""
    return (
        run.reservation is None
        and run.visit is None
        and run.claim.deadline is None
        and ((guard := task.declaration.guard) is None or not guard.uncharged)
    )


@contextmanager
def around(run: Run) -> Generator[None, None, None]:
    if run.reservation is not None:
        run.reservation.keep()  # from here on it is spent, also when the task makes no call
    if _needs_witness(run):
        run.witness = Witness()
    with (
        carrying(run.reservation),
        visiting(run.visit),
        witnessing(run.witness),
        deadline(run.time_left()),
    ):
        yield


def _needs_witness(run: Run) -> bool:
    """Whether it matters for what is charged, which faults its guard meets."""
    guard = None if run.task is None else run.task.declaration.guard
    return guard is not None and bool(guard.uncharged)
