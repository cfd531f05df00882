"""Locks: held by one, renewed while they are held, and lost in the open."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard

from holdfast.kernel.errors import LockHeld, LockLost, UsageError


async def test_one_holder_at_a_time(hf):
    async with hf.lock("report") as lease:
        assert lease.token > 0
        with pytest.raises(LockHeld, match="'report' is held by another"):
            async with hf.lock("report"):
                pass
    async with hf.lock("report") as again:
        assert again.token > lease.token


async def test_waiting_for_it(hf):
    order = []

    async def hold(name):
        async with hf.lock("report", wait=10):
            order.append(name)
            await asyncio.sleep(0.05)
            order.append(name)

    await asyncio.gather(*(hold(n) for n in range(4)))
    assert order[0::2] == order[1::2]


async def test_it_is_renewed_while_it_is_held(hf):
    async with hf.lock("report", lease=0.3) as lease:
        await asyncio.sleep(0.8)
        assert (await hf.store.leases.get("report")).token == lease.token


async def test_whose_lock_is_stolen_is_stopped(hf):
    with pytest.raises(LockLost, match="was lost"):
        async with hf.lock("report", lease=0.3):
            await hf.store.leases.steal("report", actor="ada", reason="stuck")
            await asyncio.sleep(30)


async def steal(hf):
    await hf.store.leases.steal("report", actor="ada", reason="stuck")


async def test_after_a_lost_lock_its_task_is_as_before(hf):
    with pytest.raises(LockLost):
        async with hf.lock("report", lease=0.3):
            await steal(hf)
            await asyncio.sleep(30)
    assert asyncio.current_task().cancelling() == 0


async def test_a_lock_that_was_lost_unseen_is_told_at_the_end(hf):
    with pytest.raises(LockLost):
        async with hf.lock("report"):
            await steal(hf)


async def test_a_cancellation_that_meets_a_lost_lock_stays_one(hf):
    inside = asyncio.Event()

    async def work():
        async with hf.lock("report"):
            await steal(hf)
            inside.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_that_meets_the_locks_own_cancel_stays_one(hf):
    lost = asyncio.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30) as limit:
            async with hf.lock("report", lease=0.3):
                await steal(hf)
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    lost.set()
                    limit.reschedule(0)
                    await asyncio.sleep(30)
    assert lost.is_set()


async def test_who_works_under_a_lock_of_a_silent_store_is_stopped_in_time(hf, monkeypatch):
    async def silent(*_args, **_options):
        await asyncio.Event().wait()

    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(LockLost):
        async with hf.lock("report", lease=2):
            monkeypatch.setattr(hf.store.leases, "renew", silent)
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                assert loop.time() - began < 2
                raise


async def test_a_silent_store_does_not_keep_its_holder(hf, monkeypatch):
    async def silent(*_args, **_options):
        await asyncio.Event().wait()

    monkeypatch.setattr(hf.store.leases, "release", silent)
    monkeypatch.setattr("holdfast.fleet.locks._GOODBYE", 0.3)
    with heard("lock.not_released") as notes:
        async with hf.lock("report", lease=0.2):
            pass  # it ended under the lock: what happens afterwards is not its failure
    assert len(notes) == 1


async def test_an_error_inside_is_the_callers(hf):
    with pytest.raises(ZeroDivisionError):
        async with hf.lock("report"):
            raise ZeroDivisionError
    assert await hf.store.leases.get("report") is None


@pytest.mark.parametrize("options", [{"lease": 0}, {"lease": "x"}, {"wait": -1}, {"lease": float("nan")}])
async def test_bad_options(hf, options):
    with pytest.raises(UsageError):
        hf.lock("report", **options)


async def test_one_object_is_for_one_block_at_a_time(hf):
    lock = hf.lock("report")
    async with lock:
        with pytest.raises(UsageError, match=r"is in use\. Call hf.lock\('report'\) for each block"):
            async with lock:
                pass
    async with lock as again:
        assert again.token > 0
