"""A thousand calls behind limiters of one each 0.3 seconds, by the manual clock: no machine is too busy for it."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest

from holdfast import Holdfast, Job
from holdfast.guards import Limiter
from holdfast.testing import ManualClock, fresh

ARTISTS, POSTS = 50, 5  # of each
INTERVAL = 0.3  # seconds between two calls of an artist
STEP = 0.02  # seconds that the clock is turned by
pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(("burst", "most"), [(1, 1.4), (2, 1.2)])
async def test_posts_come_as_fast_as_their_limiter_lets_them(burst, most):
    """`most` times the ideal: a burst of one pays with a tenth of its rate for being shared, and the clock's steps count."""
    hf, calls = Holdfast("sqlite:///not-opened.db"), defaultdict(list)
    guard = hf.guard("site", limiter=Limiter(rate=1 / INTERVAL, burst=burst, per="artist:{artist}"))

    async def call(artist: int) -> None:
        calls[artist].append(clock.monotonic())

    @hf.task(name="publish")
    async def publish(job: Job, artist: int, post: int) -> None:
        await job.step("submit", call, artist, guard=guard.keyed(artist))
        await job.effect("publish", call, artist, policy="at_most_once", guard=guard.keyed(artist))

    with ManualClock() as clock:
        async with fresh(hf):
            posts = [{"artist": number % ARTISTS, "post": number} for number in range(ARTISTS * POSTS)]
            await publish.enqueue_many(posts)
            began = clock.monotonic()
            async with hf.worker(queues={"default": 50}):
                while sum(map(len, calls.values())) < 2 * len(posts):
                    await all_is_done_for_now(calls)
                    clock.advance(STEP)
    took = max(map(max, calls.values())) - began
    assert {len(each) for each in calls.values()} == {2 * POSTS}
    assert took <= most * (2 * POSTS - 1) * INTERVAL, f"{took} s"


async def all_is_done_for_now(calls: dict[int, list[float]]) -> None:
    """No call has come for a moment of real time: what is left waits for the clock."""
    quiet, before = 0, -1
    while quiet < 3:
        await asyncio.sleep(0.01)
        now = sum(map(len, calls.values()))
        quiet, before = (quiet + 1 if now == before else 0), now
