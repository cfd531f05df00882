"""aiolimiter: a limiter."""

from __future__ import annotations

from aiolimiter import AsyncLimiter

from bench.guards.overhead import Call, measurer


def limited(work: Call) -> Call:
    limiter = AsyncLimiter(1_000_000, 1)

    async def call() -> object:
        async with limiter:
            return await work()

    return call


measure = measurer(limiter=limited)
