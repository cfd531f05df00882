"""A supervisor and its children: killed, crash-looping, recycled, stuck, orphaned; and bursts."""

from __future__ import annotations

import itertools
import os
import signal
import time

import psutil
import pytest
from faultkit import on_sqlite
from waiting import until

from holdfast.store.states import State

WORK = """
from holdfast.jobs import renewer
renewer.HARD_GRACE = 0.5  # seconds; 10 in production

@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began", job=job.id)
    await gate("go")
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="quick")
async def quick(job: Job) -> None:
    mark("ran", job=job.id)

@hf.task(name="quits", retry=QUICK)
def quits(job: Job, code: int) -> None:
    mark("quits", job=job.id)
    if job.interruptions == 0:
        os._exit(code)

@hf.task(name="stuck", timeout=0.5, retry=Backoff(attempts=1))
def stuck(job: Job) -> None:
    mark("began", job=job.id)
    if job.interruptions == 0:
        time.sleep(600)
"""


async def test_a_killed_child(fleet):
    """Its jobs run again in seconds, far below the lease; another takes its place; the innocent child goes on."""
    fleet.program(WORK)
    supervisor = fleet.start("-p", "2", lease=60)
    await until(lambda: supervisor.log.count("takes jobs") == 2, 20)
    job = await fleet.put("wait")
    [began] = await fleet.marked("began")
    before = set(supervisor.children)
    os.kill(began["pid"], signal.SIGKILL)
    killed = time.monotonic()
    fleet.open("go")
    done = await fleet.becomes(job)
    assert time.monotonic() - killed < 10
    assert (done.attempt, done.interruptions) == (2, 1)
    assert len(await fleet.effects()) == 1
    assert "died (SIGKILL)" in supervisor.log
    assert "1 of its jobs were put back" in supervisor.log
    await until(lambda: len(supervisor.children) == 2)
    assert before - set(supervisor.children) == {began["pid"]}
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0


@on_sqlite
async def test_a_child_that_cannot_live(fleet):
    """A child that dies at once is started again after pauses that grow, and the supervisor still leaves when asked."""
    fleet.program("import sys\nif '-p' not in sys.argv:\n    mark('child')\n    os._exit(9)")
    supervisor = fleet.start("-p", "1")
    starts = [each["at"] for each in await fleet.marked("child", 5)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert gaps[-1] > gaps[0] + 0.5, gaps  # pauses of 0.2, 0.4, 0.8 and 1.6 seconds, more or less
    assert "died (exit code 9)" in supervisor.log
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended(5) in (0, 9)  # in a pause, or while a child was dying


async def test_a_burst(fleet):
    """Everything that can run now is run, and then all leave by themselves: what is for later stays."""
    fleet.program(WORK)
    jobs = await fleet.put_many("quick", 200)
    jobs += [await fleet.put("quick", options={"ordered": "a"}) for _ in range(3)]
    jobs += [await fleet.put("quick", options={"tenant": "acme"}) for _ in range(3)]
    later = await fleet.put("quick", options={"delay": 600.0})
    alone = fleet.start("--burst")
    assert await alone.ended() == 0
    await fleet.all_become(jobs, seconds=1)
    assert (await fleet.record(later)).state is State.QUEUED
    more = await fleet.put_many("quick", 50)
    several = fleet.start("-p", "2", "--burst")
    assert await several.ended() == 0
    await fleet.all_become(more, seconds=1)
    more = await fleet.put_many("quick", 35)
    recycled = fleet.start("-p", "2", "--burst", "--max-tasks-per-child", "10")
    assert await recycled.ended() == 0  # a child that has done its share is no sign that nothing is left
    await fleet.all_become(more, seconds=1)
    assert "died" not in recycled.log
    more = await fleet.put_many("quick", 15)
    assert await fleet.start("--burst", "--max-tasks-per-child", "10").ended() == 0  # nobody starts the next
    assert [(await fleet.record(job)).state for job in more].count(State.SUCCEEDED) == 10


@pytest.mark.parametrize("code", [0, 75])
async def test_a_child_that_dies_with_the_code_of_one_that_leaves(fleet, code):
    """A task ends the process as if all was well: its jobs are put back all the same, and the burst goes on."""
    fleet.program(WORK)
    bad = await fleet.put("quits", code=code, options={"priority": 1})
    jobs = await fleet.put_many("quick", 5)
    supervisor = fleet.start("-p", "1", "--burst", "-q", "default:1", lease=60)
    assert await supervisor.ended() == 0
    await fleet.all_become([bad, *jobs], seconds=1)
    record = await fleet.record(bad)
    assert (record.attempt, record.interruptions) == (2, 1)
    assert f"died (exit code {code}, in the middle of its work)" in supervisor.log
    assert len({each["pid"] for each in fleet.marks("quits")}) == 2


@on_sqlite
async def test_a_rescue_that_fails_strangely(fleet):
    """The supervisor goes on: it has other children, and tries again."""
    fleet.program(
        WORK
        + """
from holdfast.jobs.deaths import Deaths
_rescue, _left = Deaths.rescue_worker, [KeyError("strange"), SystemExit(3)]
async def fails(self, worker):
    if _left:
        raise _left.pop()
    return await _rescue(self, worker)
Deaths.rescue_worker = fails
"""
    )
    supervisor = fleet.start("-p", "1", lease=60)
    job = await fleet.put("wait")
    [began] = await fleet.marked("began")
    os.kill(began["pid"], signal.SIGKILL)
    fleet.open("go")
    await fleet.becomes(job)
    assert "its jobs could not be put back yet: KeyError('strange')" in supervisor.log
    assert "1 of its jobs were put back" in supervisor.log
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0


@on_sqlite
async def test_a_child_that_is_killed_while_all_leave(fleet):
    """Whoever started the supervisor hears of it, as of a program that a signal ended."""
    fleet.program(WORK)
    supervisor = fleet.start("-p", "1", "--shutdown-timeout", "600", lease=60)
    await fleet.put("wait")
    [began] = await fleet.marked("began")
    supervisor.signal(signal.SIGTERM)
    await supervisor.says("no further claims")
    os.kill(began["pid"], signal.SIGKILL)
    assert await supervisor.ended() == 128 + signal.SIGKILL


async def test_a_burst_with_a_suspect(fleet):
    """A job whose worker was killed is run by a burst as well."""
    fleet.program(WORK)
    job = await fleet.put("quick")
    first = fleet.start(HOLDFAST_CRASH="claim.taken")
    assert await first.ended() == -signal.SIGKILL
    fleet.open("go")
    await until(lambda: _ended(fleet, job))
    assert await fleet.start("--burst").ended() == 0
    assert (await fleet.record(job)).state is State.SUCCEEDED


async def _ended(fleet, job):
    """The lease has ended, and a rescue has put it back."""
    await fleet.hf.store.claims.rescue()
    return (await fleet.record(job)).state is State.QUEUED


@on_sqlite
async def test_children_are_recycled(fleet):
    """A child leaves after its share, and nobody is charged: each process ran no more than that."""
    fleet.program(WORK)
    jobs = await fleet.put_many("quick", 35)
    supervisor = fleet.start("-p", "1", "--max-tasks-per-child", "10")
    for record in await fleet.all_become(jobs):
        assert (record.attempt, record.interruptions) == (1, 0)
    pids = [each["pid"] for each in fleet.marks("ran")]
    assert sorted((pids.count(pid) for pid in set(pids)), reverse=True) == [10, 10, 10, 5]
    assert "died" not in supervisor.log


async def test_a_hard_time_limit(fleet):
    """A thread that does not stop at its limit ends with its process; the supervisor starts another."""
    fleet.program(WORK)
    supervisor = fleet.start("-p", "1", lease=30)
    job = await fleet.put("stuck")
    [first] = await fleet.marked("began")
    done = await fleet.becomes(job, seconds=20)
    assert (done.attempt, done.interruptions) == (2, 1)
    assert fleet.marks("began")[1]["pid"] != first["pid"]
    assert "did not stop: it took longer than its timeout" in supervisor.log
    assert "died (exit code 70)" in supervisor.log


async def test_a_killed_supervisor(fleet):
    """Its children do not stay behind without it: they leave, and what they held comes back uncharged."""
    fleet.program(WORK)
    supervisor = fleet.start("-p", "2", "--shutdown-timeout", "0.5", lease=60)
    await until(lambda: supervisor.log.count("takes jobs") == 2, 20)
    job = await fleet.put("wait")
    await fleet.marked("began")
    children = supervisor.children
    supervisor.signal(signal.SIGKILL)
    await supervisor.ended()
    await until(lambda: not any(_lives(pid) for pid in children), 10)
    record = await fleet.record(job)
    assert (record.state, record.attempt, record.interruptions) == (State.QUEUED, 0, 0)


async def test_a_supervisor_killed_under_load(fleet):
    """Nothing is lost and nothing is done twice: what its children had not begun, or not ended, another fleet does."""
    fleet.program(WORK)
    first = fleet.start("-p", "2", "--shutdown-timeout", "0.5", lease=60)
    await until(lambda: first.log.count("takes jobs") == 2, 20)
    waits = await fleet.put_many("wait", 20)
    quick = await fleet.put_many("quick", 1_000)
    await fleet.marked("ran", 50)
    children = first.children
    first.signal(signal.SIGKILL)
    await first.ended()
    await until(lambda: not any(_lives(pid) for pid in children), 20)
    records = [await fleet.record(job) for job in [*waits, *quick]]
    assert {record.state for record in records} <= {State.QUEUED, State.SUCCEEDED}
    assert not any(record.interruptions for record in records)
    fleet.open("go")
    second = fleet.start("-p", "2", "--burst", lease=60)
    assert await second.ended() == 0
    await fleet.all_become([*waits, *quick], seconds=1)
    assert sorted(each["job"] for each in fleet.marks("ran")) == sorted(quick)
    assert sorted(job for job, _ in await fleet.effects()) == sorted(waits)


@on_sqlite
async def test_a_supervisor_killed_before_its_child_has_begun(fleet):
    """A child that is still importing its program when its supervisor dies does not live on as an orphan."""
    fleet.program("import sys\nif '-p' not in sys.argv:\n    mark('child')\n    time.sleep(0.5)")
    supervisor = fleet.start("-p", "1")
    [child] = await fleet.marked("child")
    supervisor.signal(signal.SIGKILL)
    await supervisor.ended()
    await until(lambda: not _lives(child["pid"]), 10)


def _lives(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"
