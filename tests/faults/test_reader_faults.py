"""Nobody reads what a worker says: the reader of its stderr is gone, or asleep. It runs jobs and leaves all the same."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import time

import psutil
import pytest
from faultkit import on_sqlite
from waiting import until

from holdfast.store.states import State

pytestmark = on_sqlite  # no store has a part in it

WORK = """
from holdfast import Reject
from holdfast.jobs import renewer
renewer.HARD_GRACE = 0.5  # seconds; 10 in production

@hf.task(name="quick")
async def quick(job: Job) -> None:
    mark("ran")

@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began")
    await gate("go")

@hf.task(name="deaf", timeout=0.5, retry=QUICK)
def deaf(job: Job) -> None:
    mark("began", attempt=job.attempt)
    while not opened("go"):
        try:
            time.sleep(0.01)
        except BaseException:
            pass

@hf.task(name="dies")
async def dies() -> None:
    raise Reject("x" * 200)

@hf.task(name="prints")
async def prints() -> None:
    import sys
    mark("prints")
    while True:
        sys.stderr.write("x" * 1000)
"""


class Reader:
    """Of a pipe that holds little."""

    def __init__(self):
        self._ours, self.theirs = os.pipe()
        fcntl.fcntl(self.theirs, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)

    def let_go(self):
        """The processes have theirs."""
        os.close(self.theirs)

    def hear(self):
        return os.read(self._ours, 10_000).decode()

    def go(self):
        os.close(self._ours)


@pytest.fixture
def reader():
    return Reader()


async def _started(fleet, reader, *options, **settings):
    process = fleet.start(*options, said=reader.theirs, **settings)
    reader.let_go()
    said = ""
    while "takes jobs" not in said:
        said += await asyncio.to_thread(reader.hear)
    return process


@pytest.mark.parametrize("processes", [(), ("-p", "1")])
async def test_asked_to_leave_when_the_reader_has_gone(fleet, reader, processes):
    """`worker 2>&1 | tee log`, and Ctrl-C has ended tee."""
    fleet.program(WORK)
    process = await _started(fleet, reader, "--shutdown-timeout", "0.5", *processes, lease=30)
    job = await fleet.put("wait")
    await fleet.marked("began")
    reader.go()
    process.signal(signal.SIGTERM)
    assert await process.ended(10) == 0
    record = await fleet.record(job)
    assert (record.state, record.attempt, record.interruptions) == (State.QUEUED, 0, 0)


@pytest.mark.parametrize(("processes", "told"), [((), 130), (("-p", "1"), 130)])
async def test_asked_twice_when_the_reader_has_gone(fleet, reader, processes, told):
    fleet.program(WORK)
    process = await _started(fleet, reader, "--shutdown-timeout", "600", *processes, lease=30)
    await fleet.put("wait")
    await fleet.marked("began")
    children = process.children
    reader.go()
    process.signal(signal.SIGTERM)
    asked = time.monotonic()
    await until(lambda: time.monotonic() > asked + 0.5)  # two that come at once are one
    process.signal(signal.SIGTERM)
    assert await process.ended(10) == told
    await until(lambda: not any(psutil.pid_exists(pid) for pid in children))


async def test_a_supervisor_is_killed_when_the_reader_has_gone(fleet, reader):
    fleet.program(WORK)
    process = await _started(fleet, reader, "-p", "1", "--shutdown-timeout", "0.5", lease=30)
    [child] = process.children
    reader.go()
    process.signal(signal.SIGKILL)
    await process.ended()
    await until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 10)


async def test_a_run_that_cannot_be_stopped_when_the_reader_has_gone(fleet, reader):
    """The process ends before anyone else runs the job."""
    fleet.program(WORK)
    process = await _started(fleet, reader, lease=30)
    await fleet.put("deaf")
    [began] = await fleet.marked("began")
    reader.go()
    assert await process.ended(10) == 70
    assert began["pid"] == process.pid


async def test_a_reader_who_sleeps(fleet, reader):
    """Far more is said than the pipe holds: jobs run on, and the worker leaves in order."""
    fleet.program(WORK)
    process = await _started(fleet, reader, lease=30)
    await fleet.all_become(await fleet.put_many("dies", 100), State.DEAD)
    await fleet.becomes(await fleet.put("quick"))
    process.signal(signal.SIGTERM)
    assert await process.ended(10) == 0
    reader.go()


async def test_a_task_that_prints_to_a_reader_who_sleeps(fleet, reader):
    """The loop stands still in that write: the process leaves soon after its grace, as from any task that blocks."""
    fleet.program(WORK)
    process = await _started(fleet, reader, "--shutdown-timeout", "0.1", lease=30)
    await fleet.put("prints")
    await fleet.marked("prints")
    process.signal(signal.SIGTERM)
    assert await process.ended(15) == 70
    reader.go()
