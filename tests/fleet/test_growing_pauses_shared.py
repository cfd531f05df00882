"""`Limiter(pause=Backoff(…))` of a fleet: one count for all processes, which survives their restarts."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest
from waiting import until

from holdfast import Backoff, Holdfast
from holdfast.guards import Limiter
from holdfast.kernel.clock import monotonic

FIRST = 0.6  # seconds


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def place(request, tmp_path):
    """Where the work is stored, and where guards meet when that is another place."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url"), None
    redis = request.getfixturevalue("own_valkey").url if request.param == "redis" else None
    return f"sqlite:///{tmp_path / 'jobs.db'}", redis


class TooMany(Exception):
    status_code = 429


class Api:
    """What they call. It does not say for how long it is too much."""

    def __init__(self):
        self.is_well, self.times = False, []

    async def ask(self):
        self.times.append(monotonic())
        await asyncio.sleep(0.02)
        if not self.is_well:
            raise TooMany

    def groups(self):
        """When calls came together."""
        found = []
        for time in self.times:
            if not found or time - found[-1][-1] > FIRST / 2:
                found.append([])
            found[-1].append(time)
        return found


async def node(stack, place):
    hf = Holdfast(place[0], guards=place[1])
    guard = hf.guard(
        "api",
        limiter=Limiter(rate=50, pause=Backoff(first=FIRST, ceiling=4 * FIRST), pause_jitter=0, wait=20),
    )
    await stack.enter_async_context(hf)
    return guard


async def call(guard, api):
    try:
        await guard.call(api.ask)
    except TooMany:
        return False
    return True


async def test_they_count_together_and_a_restart_goes_on(place):
    api = Api()
    async with AsyncExitStack() as stack:
        guards = [await node(stack, place) for _ in range(3)]
        api.is_well = True
        assert all(await asyncio.gather(*(call(guard, api) for guard in guards)))
        await asyncio.sleep(FIRST)
        api.is_well, api.times = False, []
        assert not any(await asyncio.gather(*(call(guard, api) for guard in guards)))
        assert not await call(guards[0], api)
        count, groups = guards[0].limiter.record().in_row, api.groups()
        assert count == len(groups) < 4, "those that were under way together are one"
        for number, (before, after) in enumerate(pairwise(groups)):
            assert after[0] - before[-1] >= FIRST * 2**number
    api.times = api.times[-1:]
    async with AsyncExitStack() as stack:
        fresh = await node(stack, place)
        assert not await call(fresh, api)
        record = fresh.limiter.record()
        assert (record.in_row, record.paused_for > FIRST) == (count + 1, True)
        assert api.times[1] - api.times[0] >= 2 * FIRST, "the pause was known before the first call"
        api.is_well = True
        assert await call(fresh, api)
        assert fresh.limiter.record().in_row == 0
        other = await node(stack, place)
        await until(lambda: _forgotten(fresh, place))
        api.is_well = False
        assert not await call(other, api)
        assert other.limiter.record().in_row == 1, "an answer begins it anew for all"


async def _forgotten(guard, place):
    """The fleet has heard of the answer."""
    await asyncio.sleep(0.3)
    return guard.limiter.record().in_row == 0
