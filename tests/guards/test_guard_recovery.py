"""A provider that throttles, then fails, then is well again: the guard hardly calls it meanwhile, and is soon well too."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest
from virtual import virtually

from holdfast.guards import Backoff, Breaker, Budget, Bulkhead, Guard, Limiter, Refused
from holdfast.kernel.clock import monotonic, now

LOAD = 10  # calls a second that are asked for
THROTTLES, FAILS, WELL = 20.0, 150.0, 330.0  # when each begins


class TooMany(Exception):
    status_code = 429

    def __init__(self, text):
        super().__init__("429")
        self.headers = {"Retry-After": text}


def make_guard(**options):
    return Guard(
        "provider",
        timeout=2,
        deadline=10,
        retry=Backoff(attempts=3, first=0.2, ceiling=5),
        budget=Budget(retries=20, ratio=0.1),
        breaker=Breaker(failure_ratio=0.5, minimum=10, window=20, cooldown=20, permits=3),
        limiter=Limiter(rate=20, burst=20, floor=0.2, ceiling=50, wait=1, longest_pause=20),
        bulkhead=Bulkhead(20, waiting=20),
        **options,
    )


@pytest.mark.parametrize("seed", ["0", "1", "2"])
@pytest.mark.parametrize("asked", [None, "5", "date", "1000000000", "-1", "garbage"])
def test_it_recovers_within_a_minute(seed, asked):
    called, done, guard = [], [], make_guard()

    async def provider():
        called.append(monotonic())
        await asyncio.sleep(0.05)
        if asked is not None and THROTTLES <= monotonic() < FAILS:
            raise TooMany(formatdate(now() + 5, usegmt=True) if asked == "date" else asked)
        if FAILS <= monotonic() < WELL:
            raise ConnectionError

    async def client():
        try:
            await guard.call(provider)
        except (Refused, TooMany, ConnectionError):
            return
        done.append(monotonic())

    async def main():
        clients = []
        while monotonic() < WELL + 90:
            clients.append(asyncio.ensure_future(client()))
            await asyncio.sleep(1 / LOAD)
        await asyncio.gather(*clients)

    def share(start, end):
        return sum(start <= each < end for each in done) / (LOAD * (end - start))

    virtually(main, seed)
    assert guard.bulkhead.free == 20
    assert share(0, THROTTLES) > 0.95
    # While it throttles: at the floor, or a few after each pause.
    if asked is not None:
        assert sum(THROTTLES + 5 <= each < FAILS for each in called) < LOAD * (FAILS - THROTTLES) / 5
    # While it fails, once the breaker has noticed (if the limiter leaves it anything to notice): three probes for each
    # cool-down of at least 16 seconds.
    assert sum(FAILS + 30 <= each < WELL for each in called) <= 3 * ((WELL - FAILS - 30) / 16 + 1)
    assert share(WELL + 60, WELL + 90) > 0.95
    assert asked is not None or guard.breaker.generation > 10
