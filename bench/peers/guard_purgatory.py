"""purgatory: a breaker, as its documentation uses it."""

from __future__ import annotations

from purgatory import AsyncCircuitBreakerFactory

from bench.guards.overhead import Call, measurer


def broken(work: Call) -> Call:
    return AsyncCircuitBreakerFactory(default_threshold=5, default_ttl=30)("bench")(work)


measure = measurer(breaker=broken)
