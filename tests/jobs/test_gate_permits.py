"""The quota that a gate takes belongs to the run that it lets begin, whether or not that calls the guard."""

import asyncio

import pytest

from holdfast import Backoff, Holdfast
from holdfast.guards import Bulkhead, Guard, Limiter, RateLimited
from holdfast.guards.reservations import carrying
from holdfast.kernel.clock import monotonic

RATE, BURST = 10, 2
UP = 3.0  # seconds for which workers have been up before: a limiter that nobody asks is another than one in use


def most_above(times, rate, burst):
    """How many runs more than rate · T + burst there were in the fullest window."""
    times = sorted(times)
    return max(
        last - first + 1 - rate * (times[last] - times[first]) - burst
        for first in range(len(times))
        for last in range(first, len(times))
    )


@pytest.fixture
def begun():
    return []


def declared(hf, begun, calls, **parts):
    guard = hf.guard("api", limiter=Limiter(rate=RATE, burst=BURST), **parts)

    async def answer():
        return None

    @hf.task(name="ask", guard=guard, retry=Backoff(attempts=2, first=0.01, ceiling=0.02))
    async def ask() -> None:
        begun.append(monotonic())
        for _ in range(calls):
            await guard.call(answer)

    return ask


@pytest.mark.parametrize("calls", [0, 1])
async def test_runs_keep_to_the_rate_whether_or_not_they_call(hf, begun, calls):
    ask = declared(hf, begun, calls)
    async with hf.worker():
        await asyncio.sleep(UP)
        for handle in await ask.enqueue_many([{}] * 20):
            await handle.result(30)
    assert most_above(begun, RATE, BURST) <= 0.01
    assert max(begun) - min(begun) < 6  # about 1.8 s on an idle machine


@pytest.mark.parametrize("calls", [0, 1])
async def test_so_do_those_of_several_processes(url, begun, calls):
    """Each with a fleet's guard of its own, on one database."""
    async with Holdfast(url) as one, Holdfast(url) as other:
        ask, _ = declared(one, begun, calls), declared(other, begun, calls)
        async with one.worker(), other.worker():
            await asyncio.sleep(UP)
            for handle in await ask.enqueue_many([{}] * 30):
                await handle.result(30)
    assert most_above(begun, RATE, BURST) <= 0.01


async def test_a_guard_of_one_process_keeps_its_rate_too(hf, begun):
    guard = Guard("mine", limiter=Limiter(rate=RATE, burst=BURST))

    @hf.task(guard=guard)
    async def ask() -> None:
        begun.append(monotonic())

    async with hf.worker():
        for handle in await ask.enqueue_many([{}] * 15):
            await handle.result(30)
    assert most_above(begun, RATE, BURST) <= 0.1  # to the moment of the gate it is exact


async def test_a_run_that_fails_without_a_call_has_spent_its_quota(hf):
    guard = Guard("mine", limiter=Limiter(rate=0.001, burst=3))

    @hf.task(guard=guard, retry=Backoff(attempts=1))
    async def fail() -> None:
        raise ValueError("no")

    async with hf.worker():
        for handle in await fail.enqueue_many([{}] * 2):
            with pytest.raises(Exception, match="no"):
                await handle.result(10)
    assert guard.limiter.allowance().remaining == pytest.approx(1, abs=0.1)


async def test_a_run_that_does_not_begin_gives_its_quota_back(hf):
    guard, lease = Guard("mine", limiter=Limiter(rate=0.001, burst=3)), None

    @hf.task(guard=guard, lock="one")
    async def locked() -> None: ...

    lease = await hf.store.leases.acquire("one", owner="somebody", ttl=30)
    assert lease is not None
    async with hf.worker():
        handle = await locked.enqueue()
        while (await handle.record()).held is None:
            await asyncio.sleep(0.02)
    assert guard.limiter.allowance().remaining == pytest.approx(3, abs=0.1)


# --- a reservation that its run has spent ---


def test_what_a_run_has_spent_is_good_for_one_call_and_never_given_back():
    limiter = Limiter(rate=0.001, burst=2)
    reservation = limiter.reserve()
    reservation.keep()
    with carrying(reservation):
        assert limiter.try_take()
        assert limiter.try_take()  # of its own
        assert not limiter.try_take()
    reservation.give_back()
    assert not limiter.try_take()


def test_without_a_call_it_is_not_given_back_either():
    limiter = Limiter(rate=0.001, burst=1)
    reservation = limiter.reserve()
    reservation.keep()
    with carrying(reservation):
        pass
    assert limiter.allowance().remaining == pytest.approx(0, abs=0.01)


async def test_a_call_that_was_not_made_leaves_it_for_the_next_of_its_run():
    """A refusal behind the limiter is no call: what it brought along is the run's, not another's."""
    guard = Guard("mine", limiter=Limiter(rate=0.001, burst=1, wait=0), bulkhead=Bulkhead(1))

    async def answer():
        return "answer"

    reservation = guard.limiter.reserve()
    reservation.keep()
    with carrying(reservation):
        assert guard.bulkhead.try_acquire()
        with pytest.raises(Exception, match="bulkhead"):
            await guard.call(answer)
        guard.bulkhead.release()
        assert await guard.call(answer) == "answer"
        with pytest.raises(RateLimited):
            await guard.call(answer)
    assert guard.limiter.allowance().remaining == pytest.approx(0, abs=0.01)
