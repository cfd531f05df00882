"""Cancelled at any moment, a guard gives back all that it took."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from virtual import most_above, virtually

from holdfast.guards import Backoff, Breaker, Bulkhead, Guard, Limiter, State, time_left
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import HoldfastError


def make_guard(**options):
    parts = {
        "timeout": 2,
        "deadline": 8,
        "retry": Backoff(attempts=3, first=1, ceiling=2),
        "breaker": Breaker(failures=3, cooldown=3, permits=2, lease=4),
        "limiter": Limiter(rate=5, burst=3, wait=3, floor=1, ceiling=10),
        "bulkhead": Bulkhead(2, waiting=3),
    }
    return Guard("x", **parts | options)


def test_cancelled_at_every_moment_of_a_call():
    """A call that waits at the limiter, in the line, in the attempt and between attempts; cut off at each 50 ms."""

    async def main(moment):
        guard = make_guard(limiter=Limiter(rate=1, burst=1), bulkhead=Bulkhead(1, waiting=1))

        async def works():
            await asyncio.sleep(0.3)
            raise ConnectionError

        await guard.limiter.take()
        async with guard.bulkhead:
            task = asyncio.ensure_future(guard.call(works))
            await asyncio.sleep(min(moment, 1.5))
        await asyncio.sleep(max(0.0, moment - 1.5))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or isinstance(task.exception(), ConnectionError)
        return guard.bulkhead.free, guard.bulkhead.line, guard.breaker.record().calls <= 3, time_left()

    for tick in range(100):
        assert virtually(lambda at=tick * 0.05: main(at)) == (1, 0, True, None)


@pytest.mark.parametrize("seed", range(120))
def test_many_calls_that_are_cancelled_by_chance(seed):
    """I25 to I28: open admits none, half-open at most its permits; rate and deadline are kept; permits are conserved."""
    chance = random.Random(seed)

    async def main():
        guard, inside, calls = make_guard(), Counter(), []
        breaker, bulkhead = guard.breaker, guard.bulkhead
        sick = False

        async def service(until):
            state = breaker._switch.state
            assert state is not State.OPEN
            assert monotonic() <= until
            inside[state] += 1
            calls.append((monotonic(), 1.0))
            assert inside[State.HALF_OPEN] <= 2
            assert sum(inside.values()) <= 2
            try:
                await asyncio.sleep(chance.random() * 3)
                if sick and chance.random() < 0.9:
                    raise ConnectionError
            finally:
                inside[state] -= 1

        async def client():
            for _ in range(5):
                await asyncio.sleep(chance.random() * 2)
                await asyncio.wait([asyncio.ensure_future(guard.call(service, monotonic() + 8))])

        clients = [asyncio.ensure_future(client()) for _ in range(6)]
        for _ in range(20):
            await asyncio.sleep(chance.random())
            sick = chance.random() < 0.6
            others = [task for task in asyncio.all_tasks() if task not in {*clients, asyncio.current_task()}]
            for task in chance.sample(others, min(len(others), 2)):
                task.cancel()
        sick = False
        await asyncio.gather(*clients)
        assert most_above(calls, rate=10) <= 3 + 1e-6
        assert (bulkhead.free, bulkhead.line, sum(inside.values())) == (2, 0, 0)
        for _ in range(20):  # well again: it is closed within a minute
            await asyncio.sleep(3)
            try:
                await guard.call(asyncio.sleep, 0)
            except HoldfastError:
                continue
        assert breaker.state is State.CLOSED
        assert monotonic() < 300

    virtually(main, seed + 1)


def test_a_call_that_the_collector_ends_gives_everything_back():
    guard = make_guard()

    async def main():
        task = asyncio.ensure_future(guard.call(asyncio.sleep, 60))
        await asyncio.sleep(0)
        assert guard.bulkhead.in_flight == 1
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(main())
    loop.close()
    task._log_destroy_pending = False
    task.get_coro().close()
    assert guard.bulkhead.free == 2
