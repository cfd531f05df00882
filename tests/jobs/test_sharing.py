"""Slots, keys and turns: what runs beside what, and in which order."""

from __future__ import annotations

import asyncio
import time

from waiting import heard, until

from holdfast import Holdfast, Job
from holdfast.jobs.run import Stop
from holdfast.store.states import State


async def test_a_held_lock_puts_off_uncharged(hf):
    running, most = 0, 0

    @hf.task(lock="user:{user}")
    async def alone(user: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    async with hf.worker({"default": 10}):
        handles = await alone.enqueue_many([{"user": "ada"}] * 3)
        for handle in handles:
            await handle.result(20)
    assert most == 1
    assert {(await handle.record()).attempt for handle in handles} == {1}


async def test_a_stolen_lock_stops_its_holder(hf):
    started = asyncio.Event()
    runs = []

    @hf.task(lock="report")
    async def report(job: Job) -> str:
        runs.append(job.token)
        started.set()
        if len(runs) == 1:
            await asyncio.sleep(60)
        return "done"

    async with hf.worker(lease=1.0):
        handle = await report.enqueue()
        await started.wait()
        assert await hf.store.leases.steal("report", actor="ada", reason="stuck")
        assert await handle.result(20) == "done"
    assert len(runs) == 2
    assert (await handle.record()).attempt == 1


async def test_jobs_taken_ahead_are_given_back_when_they_cannot_begin(hf):
    @hf.task
    async def work() -> None:
        await asyncio.Event().wait()

    handles = await work.enqueue_many([{}] * 40)
    service = hf.worker({"default": 4}, grace=0)
    await service.start()
    worker = service.worker
    worker._pace["default"].took(0.0001)  # as after thousands of quick ones: a look takes many ahead
    worker.look()
    await until(lambda: len(worker.runs) == 4)  # those that could not begin soon have gone back
    await until(lambda: worker._pace["default"].ahead == 0)

    async def all_are_back():
        states = [await handle.record() for handle in handles]
        return sum(record.state == "queued" and record.attempt == 0 for record in states) == 36

    await until(all_are_back)
    await service.stop()


async def test_priority_and_pause(hf):
    order = []

    @hf.task
    async def note(n: int) -> None:
        order.append(n)

    await hf.queues.pause("default", by="ada")
    async with hf.worker({"default": 1}):
        for priority in (0, 5, -5):
            await note.options(priority=priority).enqueue(priority)
        await asyncio.sleep(0.2)
        assert order == []
        await hf.queues.resume("default", by="ada")
        await until(lambda: order == [5, 0, -5])


async def test_ordered_jobs_run_one_at_a_time_in_order(hf):
    order, running = [], 0

    @hf.task
    async def step(n: int) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0.01)
        order.append(n)
        running -= 1

    async with hf.worker({"default": 10}):
        for n in range(5):
            await step.options(ordered="user:42").enqueue(n)
        await until(lambda: order == [0, 1, 2, 3, 4])


async def test_concurrency_is_bounded_for_each_key(hf):
    running, most = {"a": 0, "b": 0}, {"a": 0, "b": 0}

    @hf.task(concurrency=("tenant:{tenant}", 2))
    async def work(tenant: str) -> None:
        running[tenant] += 1
        most[tenant] = max(most[tenant], running[tenant])
        await asyncio.sleep(0.03)
        running[tenant] -= 1

    async with hf.worker({"default": 20}):
        handles = await work.enqueue_many([{"tenant": name} for name in "ab" * 6])
        for handle in handles:
            await handle.result(20)
    assert most == {"a": 2, "b": 2}


async def test_a_blocked_loop_is_told_with_its_task(hf):
    @hf.task(name="bad.sleep")
    async def bad() -> None:
        time.sleep(1.8)

    with heard("loop.blocked") as notes:
        async with hf.worker(lease=2.0):
            handle = await bad.enqueue()
            await handle.result(10)
    assert notes[0]["task"] == "bad.sleep"
    assert (await handle.record()).attempt == 1  # the lease was renewed meanwhile


async def test_a_key_that_is_busy_for_long_holds_up_nothing_else(postgres_url):
    """Someone has completed a job of the key in a transaction that stays open."""
    async with Holdfast(postgres_url) as hf:
        completed, go, ends = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @hf.task(concurrency=("one", 2))
        async def slow(job: Job) -> None:
            async with hf.transaction() as tx:
                await job.complete(tx=tx)
                completed.set()
                await go.wait()

        @hf.task(concurrency=("one", 2))
        async def quick() -> None:
            await completed.wait()
            ends.set()

        @hf.task
        async def plain() -> str:
            return "done"

        handles = [await slow.enqueue(), await quick.enqueue()]  # both, before one holds the key
        async with hf.worker({"default": 5}):
            await ends.wait()
            for _ in range(5):
                assert await (await plain.enqueue()).result(2) == "done"
            assert await handles[1].status() is State.RUNNING
            go.set()
            for handle in handles:
                await handle.result(20)


async def test_a_run_that_is_stopped_while_it_gets_its_lock_gives_it_back(hf, monkeypatch):
    asked, answer, acquire = asyncio.Event(), asyncio.Event(), hf.store.leases.acquire

    async def late(*args, **options):
        lease = await acquire(*args, **options)
        if not asked.is_set() and "report" in args:
            asked.set()
            await answer.wait()
        return lease

    monkeypatch.setattr(hf.store.leases, "acquire", late)

    @hf.task(lock="report")
    async def report() -> str:
        return "done"

    async with hf.worker(lease=60) as service:
        handle = await report.enqueue()
        await asked.wait()
        [run] = service.worker.runs.values()
        run.halt(Stop.DRAIN)
        await asyncio.sleep(0)
        answer.set()
        assert await handle.result(20) == "done"
