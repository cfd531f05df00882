"""The tests of a small shop, as its author would write them from the page on testing: hours of waiting in seconds."""

from __future__ import annotations

import asyncio

import clock_shop
import pytest
from clock_shop import World, audit, bank, call_back, pay, price, print_label, remind, sell, turnover

from holdfast.kernel.errors import BreakerOpen, LockHeld
from holdfast.store.states import State
from holdfast.testing import drain, fresh, inline

pytest_plugins = ["holdfast_pytest"]


@pytest.fixture
async def hf(manual_clock, url):
    async with fresh(clock_shop.hf, url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def world(monkeypatch):
    monkeypatch.setattr(clock_shop, "world", World())
    return clock_shop.world


def names(ran):
    return [each.task.rpartition(".")[2] for each in ran]


# --- paying: effects, the guard before the bank ---


async def test_a_payment_is_made_and_told(hf, world):
    await pay.enqueue(1, 900)
    ran = await drain(hf)
    assert ran[0].result == "receipt 1"
    assert world.mails == ["thanks for 900"]
    assert await turnover.get("all") == {"cents": 900}


async def test_a_bank_that_refuses_for_a_moment_is_asked_again(hf, clock, world):
    world.bank.failures = [ConnectionRefusedError(), ConnectionRefusedError()]
    await pay.enqueue(1, 900)
    [paid, *_] = await clock.run(drain(hf))
    assert (paid.result, world.bank.calls) == ("receipt 1", 3)
    assert 0 < clock.monotonic() <= 6  # the guard's two waits, and nothing of the job's own


async def test_a_drain_that_must_wait_says_where(hf, world, monkeypatch):
    monkeypatch.setattr("holdfast.testing.watching.STILL", 0.2)
    world.bank.failures = [TimeoutError("no answer"), TimeoutError("no answer"), TimeoutError("no answer")]
    await pay.enqueue(1, 900)
    with pytest.raises(
        AssertionError, match=r"'clock_shop.pay' waits for the clock at clock_shop.py:\d+ in charge"
    ):
        await drain(hf)


async def test_a_lost_answer_is_looked_up(hf, clock, world):
    world.bank.failures = [TimeoutError("no answer")] * 3
    await pay.enqueue(1, 900)
    [paid, *_] = await clock.run(drain(hf))
    assert (paid.state, paid.result) == (State.SUCCEEDED, "receipt 1")


async def test_what_was_not_found_settles_before_it_is_tried_again(hf, clock, world):
    world.bank.failures = [ConnectionResetError("gone")] * 3
    await pay.enqueue(1, 900)
    [first] = await clock.run(drain(hf))
    assert (first.state, world.bank.booked) == (State.QUEUED, {})
    clock.advance(30)
    assert await drain(hf) == []
    clock.advance(60)
    assert (await drain(hf))[0].result == "receipt 1"
    assert world.bank.booked == {1: 900}


async def test_the_bank_is_called_ten_times_a_second(hf, clock, world):
    for order in range(30):
        await pay.enqueue(order, 100)
    await audit.enqueue()
    ran = await clock.run(drain(hf))
    assert names(ran).count("pay") == 30
    assert {each.state for each in ran} == {State.SUCCEEDED}
    assert world.bank.calls == 42
    assert 3.5 <= clock.monotonic() <= 20


async def test_the_breaker_opens_and_finds_out_by_the_clock(hf, clock, world):
    world.bank.failures = [ConnectionError("down")] * 6
    for _ in range(2):
        with pytest.raises((ConnectionError, BreakerOpen)):
            await clock.run(clock_shop.charge(1, 100))
    with pytest.raises(BreakerOpen):
        await clock_shop.charge(1, 100)
    clock.advance(60)
    for order in range(3):
        await clock.run(clock_shop.charge(order, 100))
    assert bank.breaker.state.value == "closed"


async def test_no_test_meets_the_breaker_of_the_one_before(hf):
    assert bank.breaker.state.value == "closed"
    assert await clock_shop.charge(1, 100) == "receipt 1"


# --- labels: plain steps, timeouts, deaths ---


async def test_a_label_is_printed_at_the_third_try(hf, clock, world):
    await print_label.enqueue(1)
    [ran] = await clock.run(drain(hf))
    assert (ran.result, world.labels) == (3, 3)


async def test_a_label_that_takes_too_long_is_dead_and_told(hf, clock, world, monkeypatch):
    monkeypatch.setattr(clock_shop, "printed", lambda: 1 / 0)
    await print_label.enqueue(1)
    assert [each.state for each in await clock.run(drain(hf))] == [State.QUEUED]
    clock.advance(30)
    assert [each.state for each in await clock.run(drain(hf))] == [State.DEAD]
    assert world.mails == ["a label is missing"]


async def test_a_timeout_ends_by_the_clock(hf, clock, monkeypatch):
    monkeypatch.setattr(clock_shop, "printed", _hangs)
    await print_label.enqueue(1)
    draining = asyncio.create_task(drain(hf))
    await clock.until_waiting()
    clock.advance(20)
    [ran] = await draining
    assert "it took longer than its timeout of 20 s" in ran.error


async def _hangs():
    await asyncio.Event().wait()


# --- later: delays, expiry, snoozes, schedules ---


async def test_a_reminder_comes_in_time_or_not_at_all(hf, clock, world):
    await remind.options(delay=1800).enqueue(1)
    late = await remind.enqueue(2)
    clock.advance(3601)
    await drain(hf)
    assert await late.status() is State.CANCELLED
    assert world.mails in ([], ["remind 1"])


async def test_a_call_back_is_put_off(hf, clock, world):
    await call_back.enqueue()
    assert [each.state for each in await drain(hf)] == [State.QUEUED]
    assert await drain(hf) == []
    world.mails.append("news")
    clock.advance(900)
    assert [each.state for each in await drain(hf)] == [State.SUCCEEDED]


async def test_a_report_each_morning(hf, clock, world):
    clock.advance(3 * 86_400)
    assert names(await drain(hf)) == ["report"] * 3
    assert len(world.mails) == 3


# --- sagas ---


async def test_a_sale_waits_for_its_payment_and_for_the_packers(hf, clock, world):
    run = await sell.start(7, "lamp", id="sale:7")
    await drain(hf)
    assert (await run.status(), world.shelf) == ("waiting", ["desk"])
    await pay.enqueue(7, 900)
    await drain(hf)
    assert await run.status() == "waiting"
    clock.advance(3 * 3600)
    await clock.run(drain(hf))
    assert await run.status() == "done"
    assert await run.result(0) == "parcel 7"


async def test_a_sale_that_is_not_paid_is_undone(hf, clock, world):
    run = await sell.start(7, "lamp", id="sale:7")
    await drain(hf)
    clock.advance(86_400)
    await clock.run(drain(hf))
    assert await run.status() == "undone"
    assert sorted(world.shelf) == ["desk", "lamp"]


# --- the cache and locks ---


async def test_a_price_gets_stale_and_is_made_new_behind_its_readers(hf, clock, world):
    assert await price("lamp") == 100
    world.price = 120
    clock.advance(200)
    assert (await price("lamp"), world.priced) == (100, 1)
    clock.advance(200)
    assert await price("lamp") == 100  # stale: served at once, and loaded behind
    while world.priced < 2:
        await asyncio.sleep(0.001)
    clock.advance(1)
    assert await _told_anew("lamp", 120)
    clock.advance(7200)
    world.price = 130
    assert await price("lamp") == 130


async def _told_anew(item, cents):
    for _ in range(1_000):
        if await price(item) == cents:
            return True
        await asyncio.sleep(0.005)
    return False


async def test_one_takes_stock_at_a_time(hf, clock):
    async def take_stock():
        async with hf.lock("stock", lease=60, wait=30) as lease:
            return lease.token

    async with hf.lock("stock", lease=60) as first:
        second = asyncio.create_task(take_stock())
        await clock.until_waiting()
        clock.advance(31)
        with pytest.raises(LockHeld):
            await second
        third = asyncio.create_task(take_stock())
        await clock.until_waiting()
    assert await third > first.token


# --- workers, inline ---


async def test_a_worker_in_the_test_goes_by_the_clock(hf, clock, world):
    async with hf.worker():
        handle = await pay.enqueue(1, 900)
        assert await handle.result(timeout=60) == "receipt 1"
        later = await remind.options(delay=1800).enqueue(1)
        clock.advance(1800)
        assert await later.result(timeout=60) is None


async def test_a_result_that_does_not_come_ends_by_the_clock(hf, clock):
    handle = await pay.enqueue(1, 900)
    waiting = asyncio.create_task(handle.result(timeout=60))
    await clock.until_waiting()
    clock.advance(60)
    with pytest.raises(TimeoutError, match="is queued after 60 s"):
        await waiting


async def test_inline_waits_for_the_clock_as_well(hf, clock, world):
    world.bank.failures = [ConnectionRefusedError()]
    with inline(hf) as ran:
        await clock.run(pay.enqueue(1, 900))
    assert [(name, each.state) for name, each in zip(names(ran), ran, strict=True)][-1] == (
        "pay",
        State.SUCCEEDED,
    )
    assert "on:mail:thank" in [each.task for each in ran]
