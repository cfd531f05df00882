"""`rate=` in tests: drain keeps to it under a manual clock; inline and the real clock do not know it."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.store.states import Held
from holdfast.testing import drain, fresh, inline

pytest_plugins = ["holdfast_pytest"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, holdfast_url):
    return holdfast_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def timed(manual_clock, url):
    async with fresh(Holdfast("sqlite:///never-made.db"), url) as opened:
        yield opened


@pytest.fixture
async def real(url):
    async with fresh(Holdfast("sqlite:///never-made.db"), url) as opened:
        yield opened


def declared(hf, rate):
    @hf.task(name="send", rate=rate)
    async def send(user: int = 0) -> int:
        return user

    return send


async def test_drain_runs_as_many_as_the_clock_allows(timed, manual_clock):
    send = declared(timed, 10 / 60)
    await send.enqueue_many([{}] * 3)
    first = await drain(timed)
    assert len(first) == 1
    assert [(job.held, job.guard) for job in first.held] == [(Held.GUARD, "rate:send")] * 2
    assert len(await drain(timed)) == 0
    manual_clock.advance(6)
    assert len(await drain(timed)) == 1
    manual_clock.advance(60)
    assert len(await drain(timed)) == 1
    assert (await drain(timed)).held == []


async def test_each_key_has_its_own(timed):
    send = declared(timed, ("user:{user}", 1))
    await send.enqueue_many([{"user": user} for user in (1, 1, 2, 3)])
    ran = await drain(timed)
    assert sorted(each.result for each in ran) == [1, 2, 3]
    assert [job.guard for job in ran.held] == ["rate:send/user:1"]


async def test_on_the_real_clock_nobody_waits(real):
    send = declared(real, 1 / 60)
    await send.enqueue_many([{}] * 3)
    assert len(await drain(real)) == 3


async def test_inline_knows_no_rate(timed):
    send = declared(timed, 1 / 60)
    with inline(timed) as ran:
        for _ in range(3):
            await send.enqueue()
    assert len(ran) == 3
