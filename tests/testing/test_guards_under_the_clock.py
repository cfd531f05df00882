"""Guards and locks under the manual clock: what waits ends by `advance`."""

from __future__ import annotations

import asyncio

import pytest
from clock_kit import THRICE, Refused, Service

from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, Bulkhead, Limiter
from holdfast.kernel.errors import (
    BreakerOpen,
    BulkheadFull,
    DeadlinePassed,
    LockHeld,
    LockLost,
    TimedOut,
)
from holdfast.store.breakers import BreakerState
from holdfast.store.states import State
from holdfast.testing import ManualClock, drain, fresh
from tools.waiting import until

pytest_plugins = ["holdfast_pytest"]


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


async def test_calls_side_by_side_wait_for_the_clock(hf, clock):
    guard, service = hf.guard("api", limiter=Limiter(rate=10, burst=4)), Service(clock)
    calls = [guard.call(service.call) for _ in range(24)]
    await clock.run(asyncio.gather(*calls))
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
    waits = await clock.until_waiting(2)
    assert [wait.seconds for wait in waits] == [20, 20], waits
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


async def test_a_test_on_the_same_database_meets_no_guard_of_the_one_before(url):
    program = Holdfast("sqlite:///never-made.db")
    broken = program.guard("broken", breaker=Breaker(failures=1, cooldown=600))
    held = program.guard("held", breaker=Breaker())
    slow = program.guard("slow", limiter=Limiter(rate=1 / 60, burst=1))

    async def fail():
        raise ConnectionError

    for _ in range(2):
        with ManualClock() as clock:
            async with fresh(program, url):
                assert broken.breaker.state == held.breaker.state == "closed"
                assert await slow.call(asyncio.sleep, 0, "done") == "done"
                assert clock.monotonic() == 0
                with pytest.raises(ConnectionError):
                    await broken.call(fail)
                await program.store.guards.hold("held", BreakerState.OPEN, actor="ada")
                clock.advance(3)
                await asyncio.sleep(0.1)


class TooMany(Exception):
    status_code = 429


async def refuse():
    raise TooMany


async def test_a_look_sees_a_pause_that_has_just_begun(hf, clock):
    limiter = Limiter(rate=10, pause=Backoff(first=300, ceiling=2400), longest_pause=2400, pause_jitter=0)
    guard = hf.guard("api", limiter=limiter)
    left = []

    async def is_stored():
        [found] = await hf.store.guards.find()
        return found.paused > 0

    for _ in range(3):
        with pytest.raises(TooMany):
            await clock.run(guard.call(refuse))
        left.append(round((await hf.guards.look("api")).paused_until - await hf.now()))
        await until(is_stored)  # what is stored later counts from then
        clock.advance(left[-1] + 1)
        assert (await hf.guards.look("api")).paused_until is None
    assert left == [300, 600, 1200]
