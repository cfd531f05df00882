"""Signals: frozen past the lease, asked to leave, asked twice; and a task that blocks the loop. Rows 11 and 13 to 15."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest
from faultkit import on_sqlite
from waiting import until

from holdfast.store.states import State

ZOMBIE = """
from holdfast.kernel.errors import LeaseLost

@hf.task(name="write", retry=QUICK)
async def write(job: Job) -> None:
    mark("began", attempt=job.attempt)
    while not opened("go"):
        time.sleep(0.01)  # the loop stands still, so that nothing can stop this body before it writes
    try:
        async with job.commit() as tx:
            await effect(tx, job)
    except LeaseLost:
        mark("refused")
        raise
    except asyncio.CancelledError:
        mark("stopped")
        raise
    mark("wrote", attempt=job.attempt)
"""

LONG = """
@hf.task(name="long", retry=QUICK)
async def long(job: Job) -> None:
    mark("began", job=job.id)
    await gate("go")

@hf.task(name="stubborn", retry=QUICK)
def stubborn(job: Job) -> None:
    mark("began", job=job.id)
    time.sleep(600)
"""

BLOCKS = """
@hf.task(name="bad.sleep")
async def bad(seconds: float) -> None:
    mark("began")
    time.sleep(seconds)
"""


BEHIND = """
import threading

@hf.task(name="to_thread", retry=QUICK)
async def to_thread() -> None:
    mark("began")
    await asyncio.to_thread(time.sleep, 600)

@hf.task(name="forgets", retry=QUICK)
def forgets() -> None:
    threading.Thread(target=time.sleep, args=(600,)).start()
    mark("began")
"""

RESOURCE = """
from collections.abc import AsyncIterator

class Client: ...

@hf.resource
async def client() -> AsyncIterator[Client]:
    mark("opens")
    await asyncio.sleep({opening})
    yield Client()
    await asyncio.sleep({closing})
"""


async def test_frozen_past_its_lease(fleet):
    """Row 11: who was away longer than its lease gets no write accepted; the job is done once, by the other."""
    fleet.program(ZOMBIE)
    zombie = await fleet.started()
    job = await fleet.put("write")
    await fleet.marked("began", pid=zombie.pid)
    zombie.signal(signal.SIGSTOP)
    held = await fleet.record(job)
    other = await fleet.started()
    await fleet.marked("began", pid=other.pid)
    fleet.open("go")
    done = await fleet.becomes(job)
    assert done.started_at >= held.lease_until
    zombie.signal(signal.SIGCONT)
    await until(lambda: fleet.marks("refused", pid=zombie.pid) or fleet.marks("stopped", pid=zombie.pid))
    assert [each["pid"] for each in fleet.marks("wrote")] == [other.pid]
    assert await fleet.effects() == [(job, done.token)]
    await zombie.says("ended, and this run is stopped")


async def test_asked_to_leave_with_a_long_job(fleet):
    """Row 13: nothing is claimed after the signal; it leaves within its grace, and the job is released uncharged."""
    fleet.program(LONG)
    worker = await fleet.started("--shutdown-timeout", "1", lease=3)
    job = await fleet.put("long")
    await fleet.marked("began")
    worker.signal(signal.SIGTERM)
    began = time.monotonic()
    await worker.says("no further claims")
    late = await fleet.put_many("long", 5)
    assert await worker.ended(seconds=5) == 0
    assert time.monotonic() - began < 1 + 2
    for record in [await fleet.record(each) for each in (job, *late)]:
        assert (record.state, record.held, record.attempt) == (State.QUEUED, None, 0)
        assert (record.interruptions, record.suspect) == (0, False)
    assert [each["job"] for each in fleet.marks("began")] == [job]


async def test_asked_to_leave_with_a_thread_that_does_not_listen(fleet):
    """Row 13: a plain function in C code cannot be stopped; its job is released all the same and the process leaves."""
    fleet.program(LONG)
    worker = await fleet.started("--shutdown-timeout", "0.5", lease=3)
    job = await fleet.put("stubborn")
    await fleet.marked("began")
    worker.signal(signal.SIGTERM)
    assert await worker.ended(seconds=6) == 0
    record = await fleet.record(job)
    assert (record.state, record.attempt, record.interruptions) == (State.QUEUED, 0, 0)


@on_sqlite
@pytest.mark.parametrize("task", ["to_thread", "forgets"])
async def test_asked_to_leave_with_threads_that_tasks_have_left_behind(fleet, task):
    """Row 13: Python would wait for them, while another worker runs the same job."""
    fleet.program(BEHIND)
    worker = await fleet.started("--shutdown-timeout", "0.5")
    await fleet.put(task)
    await fleet.marked("began")
    worker.signal(signal.SIGTERM)
    assert await worker.ended(seconds=8) == 0
    assert "threads that tasks have started do not end" in worker.log


@on_sqlite
async def test_asked_to_leave_with_a_resource_that_is_not_closed(fleet):
    """Row 13: its loop turns, and still it would never leave."""
    fleet.program(RESOURCE.format(opening=0, closing=600))
    worker = await fleet.started("--shutdown-timeout", "0")
    worker.signal(signal.SIGTERM)
    assert await worker.ended(seconds=20) == 70
    assert "does not let it leave" in worker.log


@on_sqlite
async def test_asked_to_leave_before_it_has_started(fleet):
    """Row 13: it has no jobs, so there is nothing to wait for."""
    fleet.program(RESOURCE.format(opening=600, closing=0))
    worker = fleet.start()
    await fleet.marked("opens")
    worker.signal(signal.SIGTERM)
    assert await worker.ended(seconds=8) == 0


async def test_asked_to_leave_while_jobs_stream_in(fleet):
    """Row 13: at whatever moment of claiming the signal comes, no job is left behind charged or held."""
    fleet.program(LONG)
    fleet.open("go")
    for _ in range(3):
        worker = await fleet.started("--shutdown-timeout", "20", lease=30)
        jobs = await fleet.put_many("long", 300)
        await until(lambda pid=worker.pid: fleet.marks("began", pid=pid))
        worker.signal(signal.SIGTERM)
        assert await worker.ended(seconds=6) == 0
        records = [await fleet.record(job) for job in jobs]
        assert {record.state for record in records} <= {State.QUEUED, State.SUCCEEDED}
        assert all(record.attempt == (record.state is State.SUCCEEDED) for record in records)
        assert not any(record.interruptions for record in records)
        for job in jobs:
            await fleet.hf.jobs.cancel(job)


async def test_asked_twice(fleet):
    """Row 14: the second signal does not wait; the lease ends by itself, and the job runs elsewhere."""
    fleet.program(LONG)
    worker = await fleet.started("--shutdown-timeout", "600")
    job = await fleet.put("long")
    await fleet.marked("began")
    worker.signal(signal.SIGTERM)
    await worker.says("no further claims")
    told = time.monotonic()
    assert (await fleet.record(job)).state is State.RUNNING
    while time.monotonic() < told + 0.5:  # two that come at once are one
        await asyncio.sleep(0.05)
    worker.signal(signal.SIGTERM)
    assert await worker.ended(seconds=2) == 130
    held = await fleet.record(job)
    fleet.open("go")
    await fleet.started()
    done = await fleet.becomes(job)
    assert done.started_at >= held.lease_until
    assert (done.attempt, done.interruptions) == (2, 1)


async def test_a_task_that_blocks_the_loop_longer_than_its_lease(fleet):
    """Row 15: renewals go on from a thread, nobody else gets the job, and the log names the task."""
    fleet.program(BLOCKS)
    worker = await fleet.started()
    await fleet.started()  # it would take the job when the lease ended
    job = await fleet.put("bad.sleep", seconds=4.0)
    done = await fleet.becomes(job)
    assert (done.attempt, done.interruptions) == (1, 0)
    assert len(fleet.marks("began")) == 1
    blocked = next(each for each in fleet.processes if each.pid == fleet.marks("began")[0]["pid"])
    assert "task bad.sleep has blocked the event loop" in blocked.log, worker.log


async def _asked_to_leave_while_blocked(fleet, grace):
    fleet.program(BLOCKS)
    worker = await fleet.started("--shutdown-timeout", grace)
    await fleet.put("bad.sleep", seconds=60.0)
    await fleet.marked("began")
    worker.signal(signal.SIGTERM)
    return worker


async def test_asked_twice_while_a_task_blocks_the_loop(fleet):
    """Row 14: a loop that stands still hears nothing, and the second signal ends the process all the same."""
    worker = await _asked_to_leave_while_blocked(fleet, grace="600")
    told = time.monotonic()
    while time.monotonic() < told + 0.5:  # two that come at once are one
        await asyncio.sleep(0.05)
    worker.signal(signal.SIGTERM)
    assert await worker.ended(seconds=3) == 130


async def test_asked_once_while_a_task_blocks_the_loop(fleet):
    """Row 13: the process leaves soon after its grace, although nothing of its drain could happen."""
    worker = await _asked_to_leave_while_blocked(fleet, grace="0.1")
    assert await worker.ended(seconds=15) == 70
    assert "blocks the event loop" in worker.log
