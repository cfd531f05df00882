"""Under the manual clock what waits ends by `advance`, and nothing else waits."""

from __future__ import annotations

import asyncio

import apsw
import pytest
from clock_kit import ONCE, THRICE, Service

from holdfast import Backoff, Holdfast, Job, NotFound, Retry, Snooze
from holdfast.kernel.errors import (
    StoreError,
)
from holdfast.store.states import State
from holdfast.testing import drain, fresh

pytest_plugins = ["holdfast_pytest"]


# --- steps and effects ---


@pytest.mark.parametrize("kind", ["step", "at_most_once", "at_least_once", "keyed"])
async def test_steps_and_effects_are_recorded(hf, clock, kind):
    service = Service(clock)

    @hf.task
    async def work(job: Job) -> int:
        if kind == "step":
            return await job.step("it", service.call, 1)
        return await job.effect("it", service.call, 1, policy=kind)

    @hf.task
    def plain(job: Job) -> int:
        if kind == "step":
            return job.blocking.step("it", service.call_sync, 1)
        return job.blocking.effect("it", service.call_sync, 1, policy=kind)

    await work.enqueue()
    await plain.enqueue()
    assert [(each.state, each.result) for each in await drain(hf)] == [(State.SUCCEEDED, 2)] * 2


async def test_a_recorded_step_is_not_repeated_when_its_job_is_tried_again(hf, clock):
    service = Service(clock)

    @hf.task(retry=THRICE)
    async def work(job: Job) -> int:
        value = await job.step("once", service.call, 1)
        if job.attempt == 1:
            raise Retry(after=30)
        return value

    await work.enqueue()
    assert [each.state for each in await drain(hf)] == [State.QUEUED]
    clock.advance(30)
    assert [each.result for each in await drain(hf)] == [2]
    assert len(service.calls) == 1


@pytest.mark.parametrize("kind", ["step", "effect"])
async def test_the_retry_of_a_step_waits_for_the_clock(hf, clock, kind):
    service = Service(clock, failures=2)

    @hf.task
    async def work(job: Job) -> int:
        if kind == "step":
            return await job.step("flaky", service.call, 1, retry=THRICE)
        return await job.effect("flaky", service.call, 1, policy="at_least_once", retry=THRICE)

    await work.enqueue()
    draining = asyncio.create_task(drain(hf))
    for calls in (1, 2):
        [wait] = await clock.until_waiting()
        assert 0 < wait.seconds <= 12
        assert wait.where.startswith("test_under_the_clock.py:")
        assert wait.where.endswith(" in work")
        assert len(service.calls) == calls
        clock.advance(wait.seconds)
    assert [each.result for each in await draining] == [2]


async def test_the_retry_of_a_plain_step_waits_for_the_clock(hf, clock):
    service = Service(clock, failures=2)

    @hf.task
    def work(job: Job) -> int:
        return job.blocking.step("flaky", service.call_sync, 1, retry=THRICE)

    await work.enqueue()
    assert [each.result for each in await clock.run(drain(hf))] == [2]
    assert 0 < clock.monotonic() <= 20


async def test_timeouts_end_by_the_clock(hf, clock):
    service = Service(clock)

    @hf.task(timeout=30, retry=ONCE)
    async def whole() -> None:
        await service.hang()

    @hf.task(retry=ONCE)
    async def part(job: Job, kind: str) -> None:
        if kind == "step":
            await job.step("slow", service.hang, timeout=20)
        else:
            await job.effect("slow", service.hang, policy="at_least_once", timeout=20)

    for task, args, seconds in ((whole, (), 30), (part, ("step",), 20), (part, ("effect",), 20)):
        await task.enqueue(*args)
        draining = asyncio.create_task(drain(hf))
        await clock.until_waiting()
        clock.advance(seconds - 1)
        await clock.until_waiting()
        clock.advance(1)
        [ran] = await draining
        assert ran.state is State.DEAD
        assert f"it took longer than its timeout of {seconds} s" in ran.error


async def test_an_effect_that_is_not_found_settles_by_the_clock(hf, clock):
    calls = []

    async def publish() -> str:
        calls.append(clock.monotonic())
        if len(calls) == 1:
            raise TimeoutError
        return "published"

    async def find() -> type[NotFound]:
        return NotFound

    @hf.task
    async def work(job: Job) -> str:
        return await job.effect("publish", publish, policy="at_most_once", reconcile=find, settle=40)

    await work.enqueue()
    assert [each.state for each in await drain(hf)] == [State.QUEUED]
    clock.advance(30)
    assert await drain(hf) == []
    clock.advance(15)
    assert [each.result for each in await drain(hf)] == ["published"]
    assert calls == [0.0, 45.0]


async def test_heartbeats_commits_and_snoozes(hf, clock):
    @hf.task
    async def work(job: Job) -> int:
        await job.heartbeat(progress=0.5)
        if clock.monotonic() < 60:
            raise Snooze(60)
        async with job.commit(result=1):
            pass

    await work.enqueue()
    assert [(each.state, each.attempt) for each in await drain(hf)] == [(State.QUEUED, 1)]
    clock.advance(60)
    assert [each.state for each in await drain(hf)] == [State.SUCCEEDED]


# --- a clock that nobody moves ---


async def test_a_drain_says_that_nobody_moves_the_clock(hf, clock, monkeypatch):
    monkeypatch.setattr("holdfast.testing.watching.STILL", 0.1)
    service = Service(clock, failures=1)

    @hf.task(retry=THRICE, name="work")
    async def work(job: Job) -> int:
        return await job.step("flaky", service.call, 1, retry=Backoff(attempts=2, first=10, ceiling=10))

    handle = await work.enqueue()
    with pytest.raises(
        AssertionError,
        match=r"'work' waits for the clock at test_under_the_clock.py:\d+ in work, for \d+.*s.*clock\.run",
    ):
        await drain(hf)
    assert await handle.status() is State.QUEUED


async def test_a_thread_that_waits_is_named_and_ended(hf, clock, monkeypatch):
    monkeypatch.setattr("holdfast.testing.watching.STILL", 0.1)
    guard = hf.guard("api", retry=THRICE)
    service = Service(clock, failures=9)

    @hf.task(name="plain")
    def plain() -> None:
        guard.call_sync(service.call_sync)

    await plain.enqueue()
    with pytest.raises(
        AssertionError, match=r"'plain' waits for the clock at test_under_the_clock.py:\d+ in plain"
    ):
        await drain(hf)
    assert clock.waiting == []


async def test_a_function_that_hangs_within_its_timeout_is_named(hf, clock, monkeypatch):
    monkeypatch.setattr("holdfast.testing.watching.HUNG", 0.1)
    service = Service(clock)

    @hf.task(timeout=30, name="hangs")
    async def hangs() -> None:
        await service.hang()

    await hangs.enqueue()
    with pytest.raises(
        AssertionError, match=r"'hangs' has not ended .* its timeout ends at task 'hangs', for 30 s"
    ):
        await drain(hf)


# --- what is outside takes real time ---


async def test_a_file_that_another_has_locked_is_not_waited_for_without_end(
    manual_clock, tmp_path, monkeypatch
):
    monkeypatch.setattr("holdfast.store.sqlite.writer.LOCK_WAIT", 0.1)
    path = tmp_path / "jobs.db"
    async with fresh(Holdfast("sqlite:///never-made.db"), f"sqlite:///{path}") as hf:

        @hf.task
        async def work() -> None: ...

        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked|busy"):
            await work.enqueue()
        other.execute("ROLLBACK")
        other.close()
        await work.enqueue()


async def test_a_transaction_on_an_effect_that_takes_time_does_not_stop_the_clock(hf, clock):
    @hf.task
    async def work(job: Job) -> None:
        async with job.commit():
            await hf.guard("slow", retry=THRICE).call(service.call)

    service = Service(clock, failures=1)
    await work.enqueue()
    [ran] = await clock.run(drain(hf))
    assert ran.state in (State.SUCCEEDED, State.QUEUED)  # on SQLite a transaction is cut off after 5 s
