"""Awaiting a coroutine and hearing when it first waits."""

import asyncio
from contextvars import ContextVar, copy_context

import pytest

from holdfast.kernel.waits import Telling, is_clean

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
