"""Threads for the plain functions of steps and effects: while a call waits for one, neither its clock nor its intent begins."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Backoff, Job
from holdfast.kernel import threads
from holdfast.store.states import State
from holdfast.testing import drain

ONCE = Backoff(attempts=1)


@pytest.fixture
def calls():
    return []


@pytest.fixture
async def one_thread(monkeypatch):
    """For all that one task calls; the loop has no more than that either."""
    monkeypatch.setattr(threads, "CALLS_BESIDE", 1, raising=False)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))


async def test_every_slot_has_a_thread_for_its_call(hf, calls):
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))  # as on a small machine

    def send(number: int) -> int:
        calls.append(number)
        time.sleep(0.4)
        return number

    @hf.task(retry=ONCE)
    async def mail(job: Job, number: int) -> int:
        return await job.effect("mail", send, number, policy="at_most_once", timeout=3)

    handles = [await mail.enqueue(number) for number in range(16)]
    started = time.monotonic()
    async with hf.worker(queues={"default": 16}):
        assert [await handle.result(20) for handle in handles] == list(range(16))
    assert (
        time.monotonic() - started < 3
    )  # 0.4 s and something; one after the other, it would be 3.2 s on two threads
    assert sorted(calls) == list(range(16))


@pytest.mark.usefixtures("one_thread")
async def test_who_waits_for_a_thread_has_not_begun(hf, calls):
    begun = []

    def send(number: int) -> None:
        calls.append(number)
        time.sleep(0.3)

    @hf.task(retry=ONCE)
    async def mail(job: Job) -> None:
        async def look() -> None:
            await asyncio.sleep(0.15)
            begun.extend(each.name for each in await hf.store.steps.load(job.id, 0))

        effects = (job.effect(f"mail:{n}", send, n, policy="at_most_once", timeout=0.55) for n in range(3))
        await asyncio.gather(look(), *effects)

    await mail.enqueue()
    async with hf.worker(queues={"default": 1}):
        await asyncio.sleep(0.2)
        async with asyncio.timeout(10):
            while (await hf.store.jobs.find(limit=5))[0].state in (State.QUEUED, State.RUNNING):
                await asyncio.sleep(0.05)
    [record] = await hf.store.jobs.find(limit=5)
    assert (record.state, record.reason) == (State.SUCCEEDED, None)
    assert begun == ["mail:0"]
    assert sorted(calls) == [0, 1, 2]


@pytest.mark.usefixtures("one_thread")
async def test_a_step_that_waits_for_a_thread_is_not_late(hf):
    def pack(number: int) -> int:
        time.sleep(0.2)
        return number

    @hf.task(retry=ONCE)
    async def ship(job: Job) -> list[int]:
        return await asyncio.gather(*(job.step(f"pack:{n}", pack, n, timeout=0.35) for n in range(4)))

    handle = await ship.enqueue()
    async with hf.worker(queues={"default": 1}):
        assert await handle.result(10) == [0, 1, 2, 3]


@pytest.mark.usefixtures("one_thread")
async def test_a_thread_is_given_back_when_nothing_was_begun(hf, calls, monkeypatch):
    write, failures = hf.store.steps.write, [ValueError("no intent")]

    async def fail_once(*args):
        if failures:
            raise failures.pop()
        return await write(*args)

    monkeypatch.setattr(hf.store.steps, "write", fail_once)

    @hf.task(retry=Backoff(attempts=2, first=0, ceiling=0))
    async def mail(job: Job) -> None:
        await job.effect("mail", calls.append, 1, policy="at_most_once")

    handle = await mail.enqueue()
    async with hf.worker(queues={"default": 1}):
        await handle.result(10)
    assert calls == [1]


async def test_a_call_on_the_tasks_own_thread_begins_when_that_is_free(hf, calls):
    def send() -> int:
        calls.append(1)
        time.sleep(0.4 if len(calls) == 1 else 0)
        return len(calls)

    @hf.task(retry=ONCE)
    def mail(job: Job) -> int:
        again = Backoff(attempts=2, first=0, ceiling=0)
        return job.blocking.effect("mail", send, policy="at_least_once", timeout=0.1, retry=again)

    await mail.enqueue()
    [ran] = await drain(hf)
    assert (ran.state, ran.result) == (State.SUCCEEDED, 2)
