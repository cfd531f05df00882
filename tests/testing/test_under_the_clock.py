"""Under the manual clock what waits ends by `advance`, and nothing else waits."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Backoff, Holdfast, Job, NotFound, Retry, Snooze
from holdfast.guards import Breaker, Bulkhead, Limiter
from holdfast.kernel.errors import BreakerOpen, BulkheadFull, DeadlinePassed, LockHeld, LockLost, TimedOut
from holdfast.store.states import State
from holdfast.testing import ManualClock, drain, fresh

pytest_plugins = ["holdfast_pytest"]
THRICE, ONCE = Backoff(attempts=3, first=10, ceiling=10), Backoff(attempts=1)


class Refused(Exception):
    """By a stand-in for another service."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, holdfast_url):
    return holdfast_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def hf(manual_clock, url):
    async with fresh(Holdfast("sqlite:///never-made.db"), url) as opened:
        yield opened


@pytest.fixture
def clock(manual_clock):
    return manual_clock


class Service:
    """Fails as often as it is told, and remembers when it was called."""

    def __init__(self, clock: ManualClock, failures: int = 0) -> None:
        self.clock, self.failures, self.calls = clock, failures, []

    async def call(self, value: int = 0) -> int:
        self.calls.append(self.clock.monotonic())
        if len(self.calls) <= self.failures:
            raise Refused
        return value + 1

    def call_sync(self, value: int = 0) -> int:
        self.calls.append(self.clock.monotonic())
        if len(self.calls) <= self.failures:
            raise Refused
        return value + 1

    async def hang(self) -> None:
        self.calls.append(self.clock.monotonic())
        await asyncio.Event().wait()


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


# --- guards ---


async def test_a_full_bucket_lets_its_burst_through_at_once(hf, clock):
    guard, service = hf.guard("api", limiter=Limiter(rate=100, burst=20)), Service(clock)

    @hf.task
    async def work() -> int:
        return sum([await guard.call(service.call, 1) for _ in range(3)])

    @hf.task
    def plain() -> int:
        return sum([guard.call_sync(service.call_sync, 1) for _ in range(3)])

    await work.enqueue()
    await plain.enqueue()
    assert [each.result for each in await drain(hf)] == [6, 6]
    assert service.calls == [0.0] * 6


@pytest.mark.parametrize("is_plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize("key", [None, "ada"])
async def test_a_limiter_keeps_its_rate_by_the_clock(hf, clock, is_plain, key):
    guard, service = hf.guard("api", limiter=Limiter(rate=10, burst=4, per="{user}")), Service(clock)
    called = guard if key is None else guard.keyed(key)

    @hf.task
    async def work() -> None:
        for _ in range(24):
            await called.call(service.call)

    @hf.task
    def plain() -> None:
        for _ in range(24):
            called.call_sync(service.call_sync)

    await (plain if is_plain else work).enqueue()
    [ran] = await clock.run(drain(hf))
    assert ran.state is State.SUCCEEDED
    assert 1.9 <= clock.monotonic() < 8


async def test_the_parts_of_a_guard_go_by_the_clock(hf, clock):
    service = Service(clock, failures=3)
    retried = hf.guard("retried", retry=THRICE, timeout=5)
    slow = hf.guard("slow", timeout=5)
    late = hf.guard("late", deadline=7, retry=THRICE)
    broken = hf.guard("broken", breaker=Breaker(failures=1, cooldown=30))
    with pytest.raises(Refused):
        await clock.run(retried.call(service.call))
    assert len(service.calls) == 3
    for guard, seconds in ((slow, 5), (late, 7)):
        calling = asyncio.create_task(guard.call(service.hang))
        await clock.until_waiting()
        clock.advance(seconds)
        with pytest.raises(TimedOut):
            await calling
    service.calls.clear()
    with pytest.raises(Refused):
        await broken.call(service.call)
    with pytest.raises(BreakerOpen):
        await broken.call(service.call)
    clock.advance(60)  # about 30 are enough
    service.failures = 0
    assert await broken.call(service.call, 1) == 2
    with pytest.raises((DeadlinePassed, Refused)):
        service.calls.clear()
        service.failures = 3
        await clock.run(late.call(service.call))


async def test_who_waits_for_a_permit_gives_up_by_the_clock(hf, clock):
    guard = hf.guard("narrow", bulkhead=Bulkhead(1, waiting=5, wait=20))
    service = Service(clock)
    holding = asyncio.create_task(guard.call(service.hang))
    await asyncio.sleep(0.01)

    async def in_a_thread() -> None:
        await asyncio.to_thread(guard.call_sync, service.call_sync)

    waiting = [asyncio.create_task(guard.call(service.call)), asyncio.create_task(in_a_thread())]
    assert [wait.seconds for wait in await clock.until_waiting(2)] == [20, 20]
    clock.advance(20)
    for each in waiting:
        with pytest.raises(BulkheadFull):
            await each
    holding.cancel()


async def test_the_gate_before_a_task_opens_by_the_clock(hf, clock):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=30))
    service = Service(clock, failures=1)

    @hf.task(guard=guard, retry=THRICE)
    async def work() -> int:
        return await guard.call(service.call, 1)

    handle = await work.enqueue()
    async with hf.worker():
        while not service.calls:
            await asyncio.sleep(0.005)
        await _held(handle)
        clock.advance(45)
        await _reached(handle, clock, State.SUCCEEDED)
    assert len(service.calls) == 2


async def _held(handle):
    while (await handle.record()).held is None:
        await asyncio.sleep(0.005)


async def _reached(handle, clock, state):
    """Time goes on in seconds, as it does for a program that runs."""
    for _ in range(200):
        if await handle.status() is state:
            return
        clock.advance(1)
        await asyncio.sleep(0.02)
    raise AssertionError(f"{await handle.record()}")


# --- locks ---


async def test_a_lock_is_waited_for_and_kept_by_the_clock(hf, clock):
    async with hf.lock("report", lease=30):
        waiting = asyncio.create_task(_lock(hf, wait=20))
        await clock.until_waiting()
        clock.advance(20)
        with pytest.raises(LockHeld):
            await waiting
        waiting = asyncio.create_task(_lock(hf, wait=20))
        await clock.until_waiting()
    await waiting
    with pytest.raises(LockLost):
        async with hf.lock("report", lease=30):
            clock.advance(60)
            await asyncio.Event().wait()


async def _lock(hf, wait):
    async with hf.lock("report", wait=wait):
        pass


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
