"""The fallback: its result says that it is degraded."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.guards import BreakerOpen, Bulkhead, Degraded, Fallback, Fault, Guard
from holdfast.kernel.errors import UsageError


async def down():
    raise ConnectionError("down")


async def fine():
    return "fresh"


async def wrong():
    raise ValueError("a bug")


async def test_a_call_that_goes_well_is_its_own_result():
    assert await Guard("x", fallback=lambda error: "old").call(fine) == "fresh"


async def test_the_result_says_that_it_is_degraded_and_why():
    result = await Guard("x", fallback=lambda error: "old").call(down)
    assert isinstance(result, Degraded)
    assert (result.value, result.degraded, str(result.error)) == ("old", True, "down")
    assert result != "old"


async def test_it_may_be_async_and_need_not_want_the_error():
    async def look_up():
        await asyncio.sleep(0)
        return "cached"

    assert (await Guard("x", fallback=look_up).call(down)).value == "cached"
    assert (await Guard("x", fallback=lambda: "plain").call(down)).value == "plain"
    assert (await Guard("x", fallback=str).call(down)).value == "down"


async def test_a_mistake_of_ours_is_not_papered_over():
    with pytest.raises(ValueError, match="a bug"):
        await Guard("x", fallback=lambda error: "old").call(wrong)


async def test_on_says_which_faults_it_is_for():
    guard = Guard("x", fallback=Fallback(lambda error: "old", on=[Fault.PERMANENT]))
    assert (await guard.call(wrong)).value == "old"
    with pytest.raises(ConnectionError):
        await guard.call(down)


async def test_a_refusal_always_falls_back():
    bulkhead = Bulkhead(1)
    guard = Guard("x", bulkhead=bulkhead, fallback=Fallback(lambda error: type(error).__name__, on=[]))
    async with bulkhead:
        assert (await guard.call(fine)).value == "BulkheadFull"


async def test_who_is_cancelled_gets_no_fallback():
    async def cancelled():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await Guard("x", fallback=lambda error: "old").call(cancelled)


async def test_a_fallback_that_fails_tells_both():
    def fails(error):
        raise BreakerOpen("the cache as well")

    with pytest.raises(BreakerOpen) as raised:
        await Guard("x", fallback=fails).call(down)
    assert isinstance(raised.value.__context__, ConnectionError)


def test_from_a_thread():
    def down_sync():
        raise ConnectionError("down")

    assert Guard("x", fallback=lambda error: "old").call_sync(down_sync).value == "old"


@pytest.mark.parametrize("wrong_one", ["old", [], lambda error, more: None])
def test_a_bad_fallback_is_refused(wrong_one):
    with pytest.raises(UsageError, match="fallback"):
        Guard("x", fallback=wrong_one)


def test_a_bad_set_of_faults_is_refused():
    with pytest.raises(UsageError, match="on is a set of faults"):
        Fallback(str, on=["never"])


def test_an_async_fallback_cannot_wait_in_a_thread():
    async def look_up():
        await asyncio.sleep(0)

    def down_sync():
        raise ConnectionError("down")

    with pytest.raises(UsageError, match="Something here is async"):
        Guard("x", fallback=look_up).call_sync(down_sync)
