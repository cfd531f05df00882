"""Who else wants a turn: a tenant with a backlog, a lock that an operator takes away. Row 46 and tenants."""

from __future__ import annotations

import time

from waiting import until

from holdfast.store.states import State

WORK = """
@hf.task(name="work")
async def work(job: Job) -> None:
    await asyncio.sleep(0.01)

@hf.task(name="report", lock="report", retry=QUICK)
async def report(job: Job) -> None:
    mark("began", token=job.token)
    try:
        await gate("go")
    except asyncio.CancelledError:
        mark("stopped", token=job.token)
        raise
    async with job.commit() as tx:
        await effect(tx, job)
"""


async def test_a_backlog_of_one_tenant_does_not_hold_up_another(fleet):
    """A tenant's 3,000 jobs delay another's by about one claim; before and after, the lone tenant gets everything."""
    fleet.program(WORK)
    await fleet.put_many("work", 3000, options={"tenant": "large"})
    await fleet.started("-c", "10")
    await _left(fleet, below=2800)
    began = time.monotonic()
    few = await fleet.put("work", options={"tenant": "small"})
    done = await fleet.becomes(few)
    waited = time.monotonic() - began
    left = await _count(fleet)
    assert left > 1000, f"{left} of the large tenant's jobs are left after {waited:.2f} s"
    assert done.started_at - done.enqueued_at < 2
    await _left(fleet, below=1, seconds=60)


async def _count(fleet):
    return sum(each.number for each in await fleet.hf.queues.count() if each.state is State.QUEUED)


async def _left(fleet, *, below, seconds=30):
    async def few():
        return await _count(fleet) < below

    await until(few, seconds)


async def test_a_lock_is_stolen(fleet):
    """Row 46: who loses its lock is stopped within a renewal and runs again later; the audit says who did it and why."""
    fleet.program(WORK)
    await fleet.started()
    job = await fleet.put("report")
    [first] = await fleet.marked("began")
    assert await fleet.hf.store.leases.steal("report", actor="ada", reason="it hangs")
    await fleet.marked("stopped", token=first["token"], seconds=5)
    fleet.open("go")
    done = await fleet.becomes(job)
    assert (done.attempt, done.interruptions) == (1, 0)  # losing a lock charges no attempt
    assert await fleet.effects() == [(job, done.token)]
    assert done.token > first["token"]
    [entry] = await fleet.hf.store.audit.find(subject="lease:report")
    assert (entry.actor, entry.action) == ("ada", "lease.stolen")
