"""The bulkhead: permits, the line, and what becomes of both when someone is cut off."""

from __future__ import annotations

import asyncio

import pytest
from virtual import virtually

from holdfast.guards import Bulkhead, BulkheadFull
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_than_its_permits_are_inside():
    bulkhead, most = Bulkhead(3, waiting=100), 0

    async def call():
        nonlocal most
        async with bulkhead:
            most = max(most, bulkhead.in_flight)
            await asyncio.sleep(0)

    await asyncio.gather(*(call() for _ in range(20)))
    assert (most, bulkhead.free, bulkhead.line) == (3, 3, 0)


async def test_who_comes_when_the_waiting_room_is_full_is_refused_at_once():
    bulkhead = Bulkhead(1, waiting=1, name="db")
    await bulkhead.acquire()
    waits = asyncio.ensure_future(bulkhead.acquire())
    await settle()
    with pytest.raises(BulkheadFull, match=r"'db' is full: 1 calls are under way and 1 wait \(at most 1\)"):
        await bulkhead.acquire()
    bulkhead.release()
    await waits
    bulkhead.release()
    assert bulkhead.free == 1


async def test_without_a_waiting_room_nobody_waits():
    bulkhead = Bulkhead(1)
    async with bulkhead:
        with pytest.raises(BulkheadFull):
            await bulkhead.acquire()
        assert not bulkhead.try_acquire()
    assert bulkhead.try_acquire()


async def test_first_come_first_served_and_nobody_steps_in_between():
    bulkhead, order = Bulkhead(1, waiting=10), []
    await bulkhead.acquire()

    async def call(number):
        async with bulkhead:
            order.append(number)

    tasks = [asyncio.ensure_future(call(number)) for number in range(5)]
    await settle()
    bulkhead.release()
    assert not bulkhead.try_acquire()  # it is the first one's already
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_who_is_cancelled_in_the_line_leaves_it():
    bulkhead = Bulkhead(1, waiting=2)
    await bulkhead.acquire()
    first, second = (asyncio.ensure_future(bulkhead.acquire()) for _ in range(2))
    await settle()
    first.cancel()
    await asyncio.wait([first])
    bulkhead.release()
    await second
    assert (bulkhead.in_flight, bulkhead.line) == (1, 0)


async def test_who_is_cancelled_when_he_was_just_given_a_permit_passes_it_on():
    bulkhead = Bulkhead(1, waiting=2)
    await bulkhead.acquire()
    first, second = (asyncio.ensure_future(bulkhead.acquire()) for _ in range(2))
    await settle()
    bulkhead.release()  # to the first, who has not run yet
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    bulkhead.release()
    assert bulkhead.free == 1


def test_nobody_waits_longer_than_he_may():
    async def main():
        bulkhead = Bulkhead(1, waiting=5, wait=2)
        await bulkhead.acquire()
        with pytest.raises(BulkheadFull, match="gave no permit within 2 s"):
            await bulkhead.acquire()
        assert (monotonic(), bulkhead.line) == (2, 0)
        bulkhead.release()
        assert bulkhead.free == 1

    virtually(main)


async def test_a_waiter_whose_loop_is_gone_does_not_keep_the_permit():
    bulkhead = Bulkhead(1, waiting=5)
    await bulkhead.acquire()

    def wait_elsewhere():
        loop = asyncio.new_event_loop()
        task = loop.create_task(bulkhead.acquire())
        loop.run_until_complete(asyncio.sleep(0))
        task._log_destroy_pending = False
        loop.close()
        return task

    gone = await asyncio.to_thread(wait_elsewhere)
    assert bulkhead.line == 1
    bulkhead.release()
    del gone  # the collector ends it, and it has nothing to give back
    assert bulkhead.free == 1


async def test_an_error_inside_gives_the_permit_back():
    bulkhead = Bulkhead(1)
    for error in (ValueError, asyncio.CancelledError):
        with pytest.raises(error):
            async with bulkhead:
                raise error
    assert bulkhead.free == 1


def test_a_permit_that_is_released_twice_is_a_mistake():
    with pytest.raises(AssertionError, match="released twice"):
        Bulkhead(1).release()


@pytest.mark.parametrize(
    ("permits", "options", "words"),
    [
        (0, {}, "permits must be from 1"),
        (2.5, {}, "permits must be a whole number"),
        (1, {"waiting": -1}, "waiting must be from 0"),
        (1, {"wait": -1}, "wait must be from"),
        (1, {"name": ""}, "must not be empty"),
    ],
)
def test_a_bad_option_is_refused_with_its_value(permits, options, words):
    with pytest.raises(UsageError, match=words):
        Bulkhead(permits, **options)


async def test_sync_waiting_on_a_loop_is_refused():
    bulkhead = Bulkhead(1, waiting=1)
    with bulkhead, pytest.raises(UsageError, match="would block the event loop"):
        bulkhead.acquire_sync()
    bulkhead.take_name("db")
    assert repr(bulkhead) == "<Bulkhead 'db' 0/1 and 0 waiting>"
