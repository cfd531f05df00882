"""Holdfast's guard: with one part, and with all of them."""

from __future__ import annotations

from functools import partial

from bench.guards.overhead import Call, measurer
from holdfast.guards import Backoff, Breaker, Bulkhead, Guard, Limiter


def retry(work: Call) -> Call:
    return partial(Guard("bench", retry=Backoff(attempts=3)).call, work)


def breaker(work: Call) -> Call:
    return partial(Guard("bench", breaker=Breaker(slow=1.0)).call, work)


def limiter(work: Call) -> Call:
    return partial(Guard("bench", limiter=Limiter(rate=1e6, burst=1e6)).call, work)


def everything(work: Call) -> Call:
    guard = Guard(
        "bench",
        timeout=5,
        deadline=20,
        retry=Backoff(attempts=3),
        breaker=Breaker(slow=1.0),
        limiter=Limiter(rate=1e6, burst=1e6, floor=1),
        bulkhead=Bulkhead(10, waiting=50),
        fallback=lambda: None,
    )
    return partial(guard.call, work)


measure = measurer(retry=retry, breaker=breaker, limiter=limiter, all=everything)
