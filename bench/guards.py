"""What a guard costs: a call with all parts on beside the bare call. `python -m bench.guards`"""

from __future__ import annotations

import asyncio
import statistics
import time

from holdfast.guards import Backoff, Breaker, Bulkhead, Guard, Limiter

CALLS, ROUNDS = 2_000, 31


async def never_waits():
    return 1


async def waits_once():
    await asyncio.sleep(0)


def full_guard():
    return Guard(
        "bench",
        timeout=5,
        deadline=20,
        retry=Backoff(attempts=3),
        breaker=Breaker(slow=1.0),
        limiter=Limiter(rate=1e6, burst=1e6, floor=1),
        bulkhead=Bulkhead(10, waiting=50),
        fallback=lambda: None,
    )


async def microseconds(call):
    """The median of several rounds, for one call."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            await call()
        rounds.append((time.perf_counter() - began) / CALLS * 1e6)
    return statistics.median(rounds)


async def main():
    guard = full_guard()
    for function in (never_waits, waits_once):
        bare = await microseconds(function)
        guarded = await microseconds(lambda function=function: guard.call(function))
        print(
            f"{function.__name__}: bare {bare:.2f} µs, guarded {guarded:.2f} µs, {guarded - bare:.2f} µs more"
        )


if __name__ == "__main__":
    asyncio.run(main())
