"""limits: a limiter, which says no instead of waiting. A fixed window is the fastest that it has."""

from __future__ import annotations

from limits import RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import FixedWindowRateLimiter

from bench.guards.overhead import Call, measurer


def limited(work: Call) -> Call:
    limiter, rate = FixedWindowRateLimiter(MemoryStorage()), RateLimitItemPerSecond(1_000_000)

    async def call() -> object:
        if not await limiter.hit(rate, "bench"):
            raise RuntimeError("refused")
        return await work()

    return call


measure = measurer(limiter=limited)
