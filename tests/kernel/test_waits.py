"""Awaiting a coroutine and hearing when it first waits."""

import asyncio
import threading
from contextvars import ContextVar, copy_context

import pytest

from holdfast.kernel import waits
from holdfast.kernel.clock import pause
from holdfast.kernel.errors import TimedOut
from holdfast.kernel.loops import new_flag
from holdfast.kernel.waits import Limited, Telling, is_clean
from holdfast.kernel.world import inhabit
from holdfast.testing.clock import ManualClock

colour = ContextVar("colour", default="none")


async def heard(work):
    told = []
    value = await Telling(work, lambda: told.append(asyncio.current_task()))
    assert told in ([], [asyncio.current_task()])
    return value, len(told)


async def test_what_never_waits_is_not_told():
    async def inner():
        return 1

    async def work():
        return await inner() + 1

    assert await heard(work()) == (2, 0)


async def test_the_first_wait_is_told_once():
    async def work():
        for _ in range(3):
            await asyncio.sleep(0)
        return await asyncio.wait_for(asyncio.sleep(0.001, "late"), 10)

    assert await heard(work()) == ("late", 1)


@pytest.mark.parametrize("pauses", [0, 1, 3])
async def test_what_it_raises_is_raised(pauses):
    async def work():
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise LookupError("nowhere")

    with pytest.raises(LookupError, match="nowhere"):
        await Telling(work(), lambda: None)


@pytest.mark.parametrize("pauses", [0, 1])
async def test_a_cancellation_reaches_it_and_it_may_go_on(pauses):
    async def work():
        for _ in range(pauses):
            await asyncio.sleep(0)
        deaf.append(True)
        caught = 0
        while caught < 3:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                caught += 1
        deaf.clear()
        await asyncio.sleep(0)
        return caught

    deaf = []

    async def main():
        return await Telling(work(), lambda: None)

    task = asyncio.ensure_future(main())
    while not task.done():
        await asyncio.sleep(0)
        if deaf:
            task.cancel()
    assert await task == 3


async def test_a_cancellation_that_it_lets_through_ends_it():
    ended = []

    async def work():
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    async def main():
        await Telling(work(), lambda: None)

    task = asyncio.ensure_future(main())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


async def test_time_limits_within_it_hold():
    async def work():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.sleep(3600)
        return asyncio.current_task().cancelling()

    assert await Telling(work(), lambda: None) == 0


def test_a_context_is_clean_until_a_variable_has_another_value():
    def look():
        before = copy_context()
        assert is_clean(before)
        token = colour.set("red")
        assert not is_clean(before)
        colour.reset(token)
        assert is_clean(before)

    copy_context().run(look)


def test_values_that_cannot_be_compared_are_not_the_same():
    class Vague:
        def __eq__(self, other):
            raise ValueError("the truth value is ambiguous")

        __hash__ = None

    def look():
        colour.set(Vague())
        before = copy_context()
        assert is_clean(before)
        colour.set(Vague())
        assert not is_clean(before)

    copy_context().run(look)


async def test_what_never_waits_needs_no_timer(monkeypatch):
    async def work():
        return 5

    monkeypatch.setattr(waits, "timeout", None)
    assert await Limited(work(), 1) == 5


async def test_what_waits_too_long_is_cut_off():
    with pytest.raises(TimedOut, match=r"No answer within 0\.001 s"):
        await Limited(asyncio.sleep(60), 0.001)


async def test_what_waits_not_too_long_is_as_without():
    async def work():
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return 5

    assert await Limited(work(), 60) == 5


@pytest.mark.parametrize("pauses", [0, 1, 2])
async def test_an_error_of_the_work_is_its_own_even_if_it_is_a_timeout(pauses):
    async def work():
        for _ in range(pauses):
            await asyncio.sleep(0)
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own") as raised:
        await Limited(work(), 60)
    assert type(raised.value) is TimeoutError


async def test_who_cancels_it_gets_a_cancellation():
    task = asyncio.ensure_future(_limited_sleep())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _limited_sleep():
    await Limited(asyncio.sleep(60), 60)


def test_a_thread_stands_still_until_its_time_is_over_or_it_is_told():
    flag = new_flag()
    assert not pause(0.001, flag)
    assert not pause(-1)
    flag.set()
    assert pause(None, flag)


def test_a_thread_stands_still_by_the_clock_that_a_test_moves():
    with inhabit(ManualClock()) as clock:
        flag, woken = new_flag(), []
        thread = threading.Thread(target=copy_context().run, args=(lambda: woken.append(pause(5)),))
        thread.start()
        for _ in range(10_000):
            clock.advance(1)
            thread.join(0.001)
            if woken:
                break
        assert woken == [False]
        flag.set()
        assert pause(5, flag)
