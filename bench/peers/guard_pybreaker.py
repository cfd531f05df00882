"""pybreaker: a breaker. Its own async call needs Tornado; its block goes around an await as well."""

from __future__ import annotations

import pybreaker

from bench.guards.overhead import Call, measurer


def broken(work: Call) -> Call:
    breaker = pybreaker.CircuitBreaker(fail_max=5, reset_timeout=30)

    async def call() -> object:
        with breaker.calling():
            return await work()

    return call


measure = measurer(breaker=broken)
