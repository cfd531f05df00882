"""hyx: each of its parts, and all of them around each other."""

from __future__ import annotations

from hyx.bulkhead import bulkhead
from hyx.circuitbreaker import consecutive_breaker
from hyx.fallback import fallback
from hyx.ratelimit import tokenbucket
from hyx.retry import retry
from hyx.timeout import timeout

from bench.guards.overhead import Call, measurer


async def instead(*_: object, **__: object) -> None:
    return None


def retried(work: Call) -> Call:
    return retry(on=Exception, attempts=3)(work)


def broken(work: Call) -> Call:
    return consecutive_breaker()(work)


def limited(work: Call) -> Call:
    return tokenbucket(1_000_000, 1)(work)


def everything(work: Call) -> Call:
    attempt = tokenbucket(1_000_000, 1)(bulkhead(10, 60)(timeout(5)(work)))
    return fallback(instead)(timeout(20)(retried(broken(attempt))))


measure = measurer(retry=retried, breaker=broken, limiter=limited, all=everything)
