"""Workers that are killed around the commit of an end: what its handler writes is there with that end, once."""

from __future__ import annotations

import signal

import pytest

from holdfast.store.states import State

ENDS = """
from holdfast import Cancel

async def fail() -> None:
    raise ConnectionError("the line is dead")

@hf.task(name="unknown", retry=QUICK)
async def unknown(job: Job) -> None:
    await job.effect("publish", fail, policy="at_most_once")

@hf.task(name="cancelled", retry=QUICK)
async def cancelled(job: Job) -> None:
    mark("began", job=job.id)
    raise Cancel("gone")

async def write(job: Job, tx) -> None:
    await effect(tx, job, job.task)

hf.on_unknown(unknown)(write)
hf.on_cancelled(cancelled)(write)
"""


@pytest.mark.parametrize("task", ["unknown", "cancelled"])
async def test_killed_before_the_commit_of_an_end(fleet, task):
    """Neither the end nor what its handler has written: the job comes back, ends again, and both are there."""
    fleet.program(ENDS)
    first = fleet.start(HOLDFAST_CRASH="end.told")
    job = await fleet.put(task)
    assert await first.ended() == -signal.SIGKILL
    assert (await fleet.record(job)).state is State.RUNNING
    assert await fleet.effects(task) == []
    await fleet.started()
    await fleet.becomes(job, State(task))
    assert [each for each, _ in await fleet.effects(task)] == [job]


@pytest.mark.parametrize("task", ["unknown", "cancelled"])
async def test_killed_after_the_commit_of_an_end(fleet, task):
    """Both are there, although nobody was told; and nothing ends it once more."""
    fleet.program(ENDS)
    first = fleet.start(HOLDFAST_CRASH="end.committed")
    job = await fleet.put(task)
    assert await first.ended() == -signal.SIGKILL
    assert (await fleet.record(job)).state is State(task)
    assert [each for each, _ in await fleet.effects(task)] == [job]
    await fleet.started()
    await fleet.becomes(await fleet.put(task), State(task))
    assert len([each for each, _ in await fleet.effects(task) if each == job]) == 1
