"""A step's guard whose limiter says `wait=0`: its quota comes from the fleet a moment after it is asked for, and nobody starves."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from holdfast import Holdfast, Job
from holdfast.guards import Limiter
from holdfast.kernel.clock import monotonic

RATE, KEYS, JOBS = 1 / 0.6, 3, 4  # a second of each key, and jobs of each with two calls


def program(url, times):
    hf = Holdfast(url)
    guard = hf.guard("site", limiter=Limiter(rate=RATE, burst=2, per="user:{user}", wait=0.0))

    async def call(user: int) -> None:
        times.append((monotonic(), user))

    @hf.task(name="post")
    async def post(job: Job, user: int) -> None:
        await job.step("submit", call, user, guard=guard.keyed(user))
        await job.effect("publish", call, user, policy="at_most_once", guard=guard.keyed(user))

    return hf, post


@pytest.mark.parametrize("processes", [1, 2])
async def test_jobs_of_many_keys_are_done_at_about_the_rate_of_each(url, processes):
    times = []
    async with AsyncExitStack() as stack:
        found = [program(url, times) for _ in range(processes)]
        for hf, _ in found:
            await stack.enter_async_context(hf)
        post = found[0][1]
        handles = [await post.enqueue(user) for _ in range(JOBS) for user in range(KEYS)]
        for hf, _ in found:
            await stack.enter_async_context(hf.worker({"default": 10}))
        for handle in handles:
            await handle.result(40)
    took, ideal = max(times)[0] - min(times)[0], (2 * JOBS - 2) / RATE
    assert took < 2.5 * ideal
    for user in range(KEYS):
        calls = sorted(at for at, whose in times if whose == user)
        assert len(calls) == 2 * JOBS
        assert all(third - first > 0.8 / RATE for first, third in zip(calls, calls[2:], strict=False)), calls
