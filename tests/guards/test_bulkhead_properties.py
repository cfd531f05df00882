"""Whoever is cancelled whenever: permits are conserved, and nobody waits while one is free."""

from __future__ import annotations

import asyncio
import random

import pytest
from virtual import virtually

from holdfast.guards import Bulkhead, BulkheadFull


@pytest.mark.parametrize("seed", range(150))
def test_permits_are_conserved(seed):
    chance = random.Random(seed)
    permits, waiting = chance.randint(1, 4), chance.randint(0, 4)

    async def main():
        bulkhead, inside, most = Bulkhead(permits, waiting=waiting, wait=chance.choice([None, 0.5, 2])), 0, 0

        async def call():
            nonlocal inside, most
            await asyncio.sleep(chance.random() * 3)
            async with bulkhead:
                inside += 1
                most = max(most, inside)
                assert inside <= bulkhead.in_flight <= permits
                try:
                    await asyncio.sleep(chance.random())
                    if chance.random() < 0.2:
                        raise ValueError
                finally:
                    inside -= 1

        async def cancels(tasks):
            for _ in range(10):
                await asyncio.sleep(chance.random() / 2)
                chance.choice(tasks).cancel()
                assert bulkhead.line <= waiting
                assert not (bulkhead.free and bulkhead.line)

        tasks = [asyncio.ensure_future(call()) for _ in range(25)]
        await cancels(tasks)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(each) for each in outcomes} <= {
            type(None), ValueError, asyncio.CancelledError, BulkheadFull
        }  # fmt: skip
        assert (bulkhead.free, bulkhead.line, inside) == (permits, 0, 0)

    virtually(main, seed + 1)
