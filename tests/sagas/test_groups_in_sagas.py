"""Groups that a saga's own code makes of its steps and waits, with what Python has: they rest and fail as those of `saga.gather` do."""

from __future__ import annotations

import asyncio

from saga_kit import do, done, settled, undo

from holdfast import Undo
from holdfast.store.saga_records import SagaState


async def test_a_wait_in_a_task_group_rests(hf):
    """It would be a failure of the job: charged, tried again each minute, and dead after a day."""

    @hf.saga("trip")
    async def trip(saga):
        async with asyncio.TaskGroup() as outer:
            outer.create_task(saga.signal("paid"))
            async with asyncio.TaskGroup() as inner:
                inner.create_task(saga.signal("packed"))
        return "gone"

    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.error) == (SagaState.WAITING, None)
    assert "waits for signal" in record.waits
    job = await hf.jobs.get(record.job_id)
    assert (job.attempt, job.errors) == (0, ())
    await run.signal("paid")
    await run.signal("packed")
    await settled(hf, run)
    await settled(hf, run)
    assert await run.result(5) == "gone"


async def too_late():
    try:
        await asyncio.sleep(60)
    finally:
        raise ValueError("no cars")


async def test_what_fails_in_a_task_group_beside_a_wait_undoes(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        async with asyncio.TaskGroup() as group:
            group.create_task(too_late())
            group.create_task(saga.signal("paid"))

    record = await settled(hf, await trip.start(id="t"))
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "undo hotel"])
    assert "no cars" in record.error
