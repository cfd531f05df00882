"""Locks: held by one, renewed while they are held, and lost in the open."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel.errors import LeaseLost, LockHeld, UsageError


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
    with pytest.raises(LeaseLost, match="was lost"):
        async with hf.lock("report", lease=0.3):
            await hf.store.leases.steal("report", actor="ada", reason="stuck")
            await asyncio.sleep(30)


async def test_an_error_inside_is_the_callers(hf):
    with pytest.raises(ZeroDivisionError):
        async with hf.lock("report"):
            raise ZeroDivisionError
    assert await hf.store.leases.get("report") is None


@pytest.mark.parametrize("options", [{"lease": 0}, {"lease": "x"}, {"wait": -1}, {"lease": float("nan")}])
async def test_bad_options(hf, options):
    with pytest.raises(UsageError):
        hf.lock("report", **options)
