"""Slots: jobs that never wait share a task, and nothing else."""

import asyncio
import time
from contextvars import ContextVar
from itertools import pairwise

import pytest

from holdfast import Backoff
from holdfast.kernel.context import context

colour = ContextVar("colour", default="none")


async def run_all(hf, handles, **slots):
    async with hf.worker(slots or {"default": 10}):
        return [await handle.result(10) for handle in handles]


async def test_what_a_job_leaves_in_a_context_variable_is_not_found_by_the_next(hf):
    @hf.task
    async def paint(name: str) -> list[str]:
        found = colour.get()
        colour.set(name)
        return [found, context().job_id or ""]

    handles = await paint.enqueue_many([{"name": str(number)} for number in range(30)])
    found = await run_all(hf, handles)
    assert {before for before, _ in found} == {"none"}
    assert [job_id for _, job_id in found] == [handle.id for handle in handles]


async def test_a_job_that_cancels_its_own_task_does_not_cancel_the_next(hf):
    @hf.task
    async def cancels() -> None:
        asyncio.current_task().cancel()

    @hf.task
    async def naps(number: int) -> int:
        await asyncio.sleep(0)
        return number

    first = [await cancels.enqueue() for _ in range(3)]
    handles = await naps.enqueue_many([{"number": number} for number in range(20)])
    assert await run_all(hf, [*first, *handles]) == [None] * 3 + list(range(20))


async def test_jobs_that_wait_run_beside_each_other_each_in_a_task_of_its_own(hf):
    tasks, all_here = set(), asyncio.Event()

    @hf.task
    async def meets() -> None:
        tasks.add(asyncio.current_task())
        if len(tasks) == 10:
            all_here.set()
        await all_here.wait()

    @hf.task
    async def quick() -> None: ...

    handles = []
    for _ in range(10):
        handles += [await quick.enqueue(), await meets.enqueue()]
    await run_all(hf, handles, default=20)
    assert len(tasks) == 10


async def test_a_task_that_has_waited_serves_no_other_job(hf):
    served = []

    @hf.task
    async def waits_first() -> None:
        await asyncio.sleep(0)
        served.append(asyncio.current_task())

    await run_all(hf, await waits_first.enqueue_many([{}] * 20), default=1)
    assert len(set(served)) == 20


async def test_a_crowd_that_never_waits_leaves_others_their_turn(hf):
    turns = []

    @hf.task
    async def blocks() -> None:
        time.sleep(0.002)

    async def tick():
        while True:
            turns.append(time.monotonic())
            await asyncio.sleep(0)

    handles = await blocks.enqueue_many([{}] * 100)
    ticking = asyncio.ensure_future(tick())
    await run_all(hf, handles, default=100)
    ticking.cancel()
    longest = max(later - sooner for sooner, later in pairwise(turns))
    assert longest < 0.1  # all of them together take twice as long


@pytest.mark.parametrize("blocks", [0.0, 0.3])
async def test_a_time_limit_counts_from_the_first_line(hf, blocks):
    @hf.task(timeout=0.2, retry=Backoff(attempts=1))
    async def late() -> None:
        time.sleep(blocks)
        await asyncio.sleep(3600)

    handle = await late.enqueue()
    began = time.monotonic()
    async with hf.worker({"default": 1}):
        with pytest.raises(Exception, match="timeout"):
            await handle.result(10)
    assert time.monotonic() - began < 5
