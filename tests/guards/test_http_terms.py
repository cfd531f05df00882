"""Retry-After, keys, costs and fallbacks of guarded requests, and what is refused before anything is sent."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from http_kit import guarded, httpx, make_guard, refusal_of
from http_server import answer

from holdfast.guards import Breaker, Limiter, RateLimited, State
from holdfast.guards.http import GuardedTransport
from holdfast.kernel.errors import UsageError

# --- Retry-After ---


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("told", "low", "high"),
    [
        ("5", 5, 6),
        (lambda: formatdate(time.time() + 7, usegmt=True), 5, 8.5),
        ("-1", 0, 0.01),
        ("soon", 0, 0.01),
    ],
)
async def test_retry_after_is_waited_for(server, status, told, low, high):
    told = told() if callable(told) else told
    server.will(answer(status, headers=[("Retry-After", told)]), answer())
    async with guarded(server) as kit:
        assert (await kit.get("/")).status_code == 200
    [wait] = kit.waits
    assert low <= wait <= high


async def test_nobody_waits_for_a_pause_that_is_too_long(server):
    server.will(answer(429, b"in 30 years", headers=[("Retry-After", str(10**9))]))
    limiter = Limiter(rate=100, wait=1)
    async with guarded(server, make_guard(limiter=limiter)) as kit:
        found = await kit.get("/")
        assert (found.status_code, found.content, kit.waits) == (429, b"in 30 years", [])
        assert 299 < limiter.record().paused_for <= 360
        assert isinstance(await refusal_of(kit), RateLimited)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("told", "pause"), [("5", 5), ("-1", 0), ("garbage", 0)])
async def test_the_limiter_hears_of_it(server, told, pause):
    server.will(answer(429, headers=[("Retry-After", told)]))
    limiter = Limiter(rate=100, wait=1)
    async with guarded(server, make_guard(limiter=limiter, retry=None)) as kit:
        assert (await kit.get("/")).status_code == 429
    assert pause * 0.9 <= limiter.record().paused_for <= pause * 1.2 + 0.1


@pytest.mark.parametrize(("headers", "state"), [([("Retry-After", "1")], State.CLOSED), ([], State.OPEN)])
async def test_who_asks_for_a_pause_is_not_broken(server, headers, state):
    server.will(answer(503, headers=headers))
    async with guarded(server, make_guard(breaker=Breaker(failures=1), retry=None)) as kit:
        await kit.get("/")
    assert kit.guard.breaker.state is state


# --- keys and costs ---


async def test_a_key_and_a_cost_by_extension(server):
    limiter = Limiter(rate=0.01, burst=3, wait=0, per="user:{user_id}")
    async with guarded(server, make_guard(limiter=limiter)) as kit:
        await kit.get("/", extensions={"guard_key": "ada", "guard_cost": 3})
        await kit.get("/", extensions={"guard_key": {"user_id": "bob"}, "guard_cost": 2})
        assert isinstance(await refusal_of(kit, extensions={"guard_key": "ada"}), RateLimited)
        await kit.get("/", extensions={"guard_key": "bob"})
        assert isinstance(await refusal_of(kit, extensions={"guard_key": "bob"}), RateLimited)


async def test_a_key_and_a_cost_by_function(server):
    limiter = Limiter(rate=0.01, burst=3, wait=0, per="user:{user_id}")
    options = {"key": lambda request: request.headers["user"], "cost": lambda request: len(request.content)}
    async with guarded(server, make_guard(limiter=limiter), **options) as kit:
        await kit.put("/", content=b"abc", headers={"user": "ada"})
        await kit.put("/", content=b"ab", headers={"user": "bob"})
        with pytest.raises(RateLimited):
            await kit.put("/", content=b"a", headers={"user": "ada"})
        await kit.put("/", content=b"a", headers={"user": "bob"})


# --- fallbacks ---


async def test_a_fallback_answers_and_says_so(server):
    server.will(answer(500, b"x" * 100))
    guard = make_guard(fallback=lambda error: httpx.Response(200, text="from the cache"))
    async with guarded(server, guard) as kit:
        found = await kit.get("/")
        assert kit.busy == []
    assert found.text == "from the cache"
    assert found.extensions["guard_degraded"].response.status_code == 500


async def test_a_fallback_may_take_the_answer_itself(server):
    server.will(answer(500, b"because" * 100_000))
    async with guarded(server, make_guard(fallback=lambda error: error.response)) as kit:
        assert (await kit.get("/")).content == b"because" * 100_000


async def test_a_fallback_must_answer_with_a_response(server):
    server.will(answer(500, b"x" * 100))
    async with guarded(server, make_guard(fallback=lambda: "from the cache")) as kit:
        with pytest.raises(UsageError, match="a Response"):
            await kit.get("/")


async def test_a_fallback_that_fails_leaves_nothing_open(server):
    def broken(error):
        raise KeyError("cache")

    server.will(answer(500, b"x" * 100))
    async with guarded(server, make_guard(fallback=broken)) as kit:
        with pytest.raises(KeyError):
            await kit.get("/")


# --- mistakes ---


def test_what_a_transport_takes_is_checked():
    with pytest.raises(UsageError, match="guard is a Guard"):
        GuardedTransport("api")
    with pytest.raises(UsageError, match='"body" or its "headers"'):
        GuardedTransport(make_guard(), until="end")
    with pytest.raises(UsageError, match="key of a transport"):
        GuardedTransport(make_guard(), key="ada")


async def test_a_request_that_says_nonsense_is_not_sent(server):
    async with guarded(server) as kit:
        with pytest.raises(UsageError, match="headers"):
            await kit.get("/", extensions={"guard_until": "end"})
    assert server.asked == []
