"""What the other side says of its quota: a guarded client rests when nothing is left, before it is told to."""

from __future__ import annotations

import pytest
from http_kit import httpx, make_guard

from holdfast.guards import Backoff, Fault, Limiter, RateLimited, classify
from holdfast.guards.http import GuardedTransport, SyncGuardedTransport

NOTHING = {"RateLimit": '"default";r=0;t=30'}


def make_limited(**options):
    return make_guard(limiter=Limiter(rate=100, burst=50, per="user:{user}", wait=5), **options)


def answering(status=200, headers=NOTHING):
    sent = []

    def handler(request):
        sent.append(request)
        return httpx.Response(status, headers=headers, text="well")

    return httpx.MockTransport(handler), sent


@pytest.mark.parametrize("status", [200, 302, 404, 403, 500])
async def test_whatever_the_answer_is_nothing_more_is_sent_until_there_is_more(status):
    inner, sent = answering(status)
    guard = make_limited(retry=None)
    async with httpx.AsyncClient(transport=GuardedTransport(guard, inner)) as client:
        found = await client.get("https://api.example/", extensions={"guard_key": "ada"})
        assert (found.status_code, found.text) == (status, "well")
        with pytest.raises(RateLimited) as refusal:
            await client.get("https://api.example/", extensions={"guard_key": "ada"})
        assert 29 < refusal.value.retry_after <= 36
        await client.get("https://api.example/", extensions={"guard_key": "bob"})  # another's quota
    assert len(sent) == 2


def test_in_threads_as_well():
    inner, sent = answering()
    with httpx.Client(transport=SyncGuardedTransport(make_limited(), inner)) as client:
        client.get("https://api.example/")
        with pytest.raises(RateLimited):
            client.get("https://api.example/")
    assert len(sent) == 1


async def test_while_something_is_left_nobody_rests():
    inner, sent = answering(headers={"RateLimit": '"default";r=1;t=30', "X-RateLimit-Remaining": "7"})
    async with httpx.AsyncClient(transport=GuardedTransport(make_limited(), inner)) as client:
        for _ in range(5):
            await client.get("https://api.example/")
    assert len(sent) == 5


async def test_a_429_without_retry_after_is_repeated_when_there_is_more():
    inner, sent = answering(429)
    guard = make_limited(retry=Backoff(attempts=3, first=0.01, ceiling=10))
    async with httpx.AsyncClient(transport=GuardedTransport(guard, inner)) as client:
        assert (await client.get("https://api.example/")).status_code == 429
    assert len(sent) == 1  # 30 seconds are more than its ceiling
    assert guard.limiter.allowance().retry_after > 29


def test_a_503_is_no_throttling_by_its_quota_alone():
    """It counts for the breaker, as before."""
    error = httpx.HTTPStatusError("503", request=None, response=httpx.Response(503, headers=NOTHING))
    assert classify(error) is Fault.UNKNOWN
