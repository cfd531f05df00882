"""Guards from plain functions in many threads at once."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from holdfast.guards import (
    Backoff,
    Breaker,
    BreakerOpen,
    Budget,
    Bulkhead,
    BulkheadFull,
    DeadlinePassed,
    Guard,
    Limiter,
    RateLimited,
    State,
    deadline,
    time_left,
)
from holdfast.kernel.errors import UsageError
from holdfast.kernel.threads import LoopThreads, Stopped
from holdfast.kernel.world import inhabit
from holdfast.testing.clock import ManualClock


def in_threads(count, work):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: copy_context().run(work), range(count)))


def test_a_call_with_all_parts():
    guard = Guard(
        "x",
        timeout=5,
        deadline=20,
        retry=Backoff(attempts=3, first=0),
        breaker=Breaker(),
        limiter=Limiter(rate=1000),
        bulkhead=Bulkhead(2, waiting=5),
    )
    answers = [ConnectionError, ConnectionError, "fine"]

    def service(word, *, mark):
        answer = answers.pop(0)
        if answer is ConnectionError:
            raise answer
        assert 0 < time_left() <= 5
        return f"{answer} {word}{mark}"

    assert guard.call_sync(service, "day", mark="!") == "fine day!"
    assert guard.breaker.record().failures == 2


def test_waits_are_by_the_clock_of_the_kernel():
    with inhabit(ManualClock()) as clock:
        guard, done = Guard("x", limiter=Limiter(rate=0.01, burst=1, wait=1000)), []
        guard.call_sync(done.append, 1)
        thread = threading.Thread(target=copy_context().run, args=(guard.call_sync, done.append, 2))
        thread.start()
        thread.join(0.01)
        assert done == [1]
        clock.advance(100)
        thread.join(10)
        assert done == [1, 2]


def test_permits_are_conserved_among_threads_and_tasks():
    bulkhead, inside, most = Bulkhead(3, waiting=200), 0, 0
    lock = threading.Lock()

    def enter():
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)

    def leave():
        nonlocal inside
        with lock:
            inside -= 1

    def thread():
        for _ in range(50):
            with bulkhead:
                enter()
                leave()

    async def task():
        for _ in range(50):
            async with bulkhead:
                enter()
                await asyncio.sleep(0)
                leave()

    async def tasks():
        await asyncio.gather(*(task() for _ in range(4)))

    in_threads(6, lambda: (thread(), asyncio.run(tasks())))
    assert (bulkhead.free, bulkhead.line) == (3, 0)
    assert most <= 3


def test_a_thread_waits_no_longer_than_it_may():
    bulkhead = Bulkhead(1, waiting=1, wait=0.002)
    with bulkhead, pytest.raises(BulkheadFull, match="gave no permit within"):
        bulkhead.acquire_sync()
    assert (bulkhead.free, bulkhead.line) == (1, 0)


def test_half_open_admits_its_permits_among_threads():
    with inhabit(ManualClock()) as clock:
        breaker = Breaker(failures=1, cooldown=10, permits=3)
        with pytest.raises(ConnectionError), breaker:
            raise ConnectionError
        clock.advance(20)
        barrier = threading.Barrier(12)

        def asks():
            barrier.wait()
            try:
                return breaker.admit()
            except BreakerOpen:
                return None

        permits = [each for each in in_threads(12, asks) if each]
        assert len(permits) == 3
        in_threads(1, lambda: [each.record() for each in permits])
        assert breaker.state is State.CLOSED


def test_a_limiter_admits_its_burst_among_threads():
    with inhabit(ManualClock()):
        limiter = Limiter(rate=1, burst=50)
        barrier = threading.Barrier(8)

        def takes():
            barrier.wait()
            return sum(limiter.try_take() for _ in range(100))

        assert sum(in_threads(8, takes)) == 50


def test_each_result_is_counted_once_among_threads():
    with inhabit(ManualClock()):
        breaker, budget = Breaker(minimum=1_000_000), Budget(retries=100, ratio=0.0)

        def calls():
            spent = 0
            for _ in range(200):
                with breaker:
                    spent += budget.spend()
            return spent

        assert sum(in_threads(8, calls)) == 100
        assert breaker.record().calls == 1600


def test_blocks_of_threads():
    with inhabit(ManualClock()) as clock:
        guard = Guard("x", deadline=5, breaker=Breaker(failures=1), bulkhead=Bulkhead(1))
        with guard:
            assert (time_left(), guard.bulkhead.in_flight) == (5, 1)
        with pytest.raises(ConnectionError), guard:
            raise ConnectionError
        with pytest.raises(BreakerOpen), guard:
            pass
        assert guard.bulkhead.free == 1
        with deadline(1):
            clock.advance(2)
            with pytest.raises(DeadlinePassed), Guard("y"):
                pass
        with Limiter(rate=1):
            pass


def test_an_async_function_is_refused():
    async def fetch(): ...

    with pytest.raises(UsageError, match="is an async function"):
        Guard("x").call_sync(fetch)


def test_a_thread_that_would_wait_too_long_is_refused():
    limiter = Limiter(rate=0.01, burst=1, wait=0)
    limiter.take_sync()
    with pytest.raises(RateLimited):
        limiter.take_sync()


async def test_a_thread_that_is_stopped_in_its_call_or_in_the_line_gives_everything_back():
    guard = Guard("x", breaker=Breaker(failures=1), bulkhead=Bulkhead(1, waiting=1))
    begun, stopped = threading.Event(), []

    def works():
        begun.set()
        while True:
            threading.Event().wait(0.001)

    def job():
        try:
            guard.call_sync(works)
        except Stopped:
            stopped.append(threading.current_thread())
            raise

    first = asyncio.ensure_future(LoopThreads().call(job))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    second = asyncio.ensure_future(LoopThreads().call(lambda: guard.call_sync(works)))
    while not guard.bulkhead.line:
        await asyncio.sleep(0.001)
    first.cancel()
    await asyncio.wait([first])
    assert len(stopped) == 1
    while guard.bulkhead.line:
        await asyncio.sleep(0.001)
    second.cancel()
    await asyncio.wait([second])
    assert (guard.bulkhead.free, guard.bulkhead.line) == (1, 0)
    assert guard.breaker.state is State.CLOSED
