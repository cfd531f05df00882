"""Workers that die: after the claim, in the body, after the commit. Rows 1, 2 and 4."""

from __future__ import annotations

import asyncio
import random
import signal

from holdfast.store.states import State

SHIP = """
@hf.task(name="ship", retry=QUICK)
async def ship(job: Job) -> None:
    mark("began", job=job.id, attempt=job.attempt)
    async with job.commit() as tx:
        await effect(tx, job, "first")
        await asyncio.sleep(0.02)
        await effect(tx, job, "second")
"""


async def test_killed_after_the_claim(fleet):
    """Row 1: another worker runs the job when the lease has ended, not before, and that is attempt 2."""
    fleet.program(SHIP)
    first = fleet.start(HOLDFAST_CRASH="claim.taken")
    job = await fleet.put("ship")
    assert await first.ended() == -signal.SIGKILL
    held = await fleet.record(job)
    assert (held.state, held.attempt) == (State.RUNNING, 1)
    await fleet.started()
    done = await fleet.becomes(job)
    assert (done.attempt, done.interruptions) == (2, 1)
    assert done.started_at >= held.lease_until
    assert [each["attempt"] for each in fleet.marks("began")] == [2]
    assert len(await fleet.effects()) == 2


async def test_killed_in_the_body_again_and_again(fleet):
    """Row 2: whenever a worker is killed, each job's rows are there once and whole, or not at all."""
    fleet.program(SHIP)
    jobs = await fleet.put_many("ship", 30)
    chance = random.Random(7)
    for kills in range(1, 4):
        worker = fleet.start("-c", "4")
        await fleet.marked("began", pid=worker.pid)
        await asyncio.sleep(chance.uniform(0.0, 0.05))  # a moment of chance, not a wait for something
        worker.signal(signal.SIGKILL)
        assert await worker.ended() == -signal.SIGKILL, kills
        rows = await fleet.effects()
        assert all(rows.count(each) == 2 for each in rows)
    await fleet.started("-c", "4")
    await fleet.all_become(jobs)
    rows = await fleet.effects()
    assert len(rows) == 60
    assert {job for job, _ in rows} == set(jobs)


async def test_killed_after_the_commit(fleet):
    """Row 4: what was committed is done, once; nothing runs again, though nobody was told."""
    fleet.program(SHIP)
    first = fleet.start(HOLDFAST_CRASH="transaction.after_commit")
    job = await fleet.put("ship")
    assert await first.ended() == -signal.SIGKILL
    done = await fleet.record(job)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
    await fleet.started()
    other = await fleet.put("ship")
    await fleet.becomes(other)
    assert len(fleet.marks("began", job=job)) == 1
    assert len(await fleet.effects("first")) == len(await fleet.effects("second")) == 2
