"""Requests through a guard, against a real server: what is sent again, what is not, and what the caller gets at the end."""

from __future__ import annotations

import socket

import pytest
from http_kit import guarded, httpx, make_guard, refusal_of
from http_server import answer, hang, hang_up

from holdfast.guards import (
    Backoff,
    Breaker,
    BreakerOpen,
    Bulkhead,
    BulkheadFull,
    DeadlinePassed,
    Limiter,
    RateLimited,
    State,
    TimedOut,
    deadline,
)
from holdfast.guards.http import GuardedTransport


async def test_an_answer_is_the_answer(server):
    async with guarded(server) as kit:
        found = await kit.get("/there", headers={"X-Own": "1"})
    assert (found.status_code, found.text, found.request.url.path) == (200, "well", "/there")
    assert server.asked[0].headers["x-own"] == "1"


# --- what is sent again ---


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_what_may_pass_is_tried_again(server, status):
    server.will(answer(status), answer())
    async with guarded(server) as kit:
        assert (await kit.get("/")).status_code == 200
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [301, 400, 401, 404, 409, 422])
async def test_an_answer_is_not_asked_for_again(server, status):
    server.will(answer(status, b"no"))
    async with guarded(server, make_guard(breaker=Breaker(failures=1))) as kit:
        found = await kit.get("/")
    assert (found.status_code, found.content, len(server.asked)) == (status, b"no", 1)
    assert kit.guard.breaker.state is State.CLOSED


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"])
@pytest.mark.parametrize("trouble", [answer(500, b""), hang_up])
async def test_what_changes_nothing_when_repeated_is_repeated(server, method, trouble):
    server.will(trouble, answer(body=b""))
    async with guarded(server) as kit:
        assert (await kit.request(method, "/")).status_code == 200
    assert [each.method for each in server.asked] == [method] * 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("status", [408, 500, 503])
async def test_what_may_have_been_done_is_not_done_again(server, method, status):
    server.will(answer(status, b"perhaps"), answer())
    async with guarded(server) as kit:
        found = await kit.request(method, "/", content=b"order")
    assert (found.status_code, found.content, len(server.asked)) == (status, b"perhaps", 1)


async def test_a_post_that_was_cut_off_is_not_done_again(server):
    server.will(hang_up, answer())
    async with guarded(server) as kit:
        with pytest.raises(httpx.RemoteProtocolError):
            await kit.post("/", content=b"order")
    assert len(server.asked) == 1


@pytest.mark.parametrize("refusal", [answer(429), answer(503, headers=[("Retry-After", "1")])])
async def test_a_post_that_was_not_done_is_done_again(server, refusal):
    server.will(refusal, answer())
    async with guarded(server) as kit:
        assert (await kit.post("/", content=b"order")).status_code == 200
    assert [each.body for each in server.asked] == [b"order"] * 2


@pytest.mark.parametrize("trouble", [answer(500), hang_up])
async def test_a_post_with_a_key_is_repeated_as_it_was(server, trouble):
    server.will(trouble, answer())
    async with guarded(server) as kit:
        found = await kit.post("/", json={"order": 7}, headers={"idempotency-key": "k7"})
    assert found.status_code == 200
    assert [(each.body, each.headers["idempotency-key"]) for each in server.asked] == [
        (b'{"order":7}', "k7")
    ] * 2


async def test_what_was_never_sent_is_sent_whatever_it_is(notes):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    class Nowhere:
        url = f"http://127.0.0.1:{port}"

    async with guarded(Nowhere) as kit:
        with pytest.raises(httpx.ConnectError) as raised:
            await kit.post("/", content=b"order")
    assert [fields["fault"] for name, fields in notes if name == "guard.retried"] == ["transient"] * 2
    assert raised.value.request.method == "POST"


async def test_a_pool_without_a_free_connection_has_sent_nothing(server, notes):
    inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1))
    transport = GuardedTransport(make_guard(retry=Backoff(attempts=2, first=0.01, ceiling=1)), inner)
    async with (
        httpx.AsyncClient(
            transport=transport, base_url=server.url, timeout=httpx.Timeout(5, pool=0.05)
        ) as client,
        client.stream("GET", "/"),
    ):
        with pytest.raises(httpx.PoolTimeout):
            await client.post("/", content=b"order")
    assert [fields["fault"] for name, fields in notes if name == "guard.retried"] == ["transient"]
    assert len(server.asked) == 1


async def test_a_stream_can_be_sent_only_once(server):
    async def parts():
        yield b"or"
        yield b"der"

    server.will(answer(429, b"later"), answer())
    async with guarded(server) as kit:
        found = await kit.put("/", content=parts())
    assert (found.status_code, found.content, len(server.asked)) == (429, b"later", 1)
    assert server.asked[0].body == b"order"


async def test_a_guard_that_repeats_nothing_unknown_does_not(server):
    server.will(answer(500), answer())
    async with guarded(server, make_guard(repeatable=False)) as kit:
        assert (await kit.get("/")).status_code == 500


async def test_a_request_knows_best_whether_it_may_be_repeated(server):
    server.will(answer(500), answer())
    async with guarded(server) as kit:
        assert (await kit.post("/search", extensions={"guard_repeatable": True})).status_code == 200
        server.will(answer(500), answer())
        assert (await kit.get("/", extensions={"guard_repeatable": False})).status_code == 500


# --- what the caller gets at the end ---


async def test_the_last_answer_is_the_callers(server):
    server.will(answer(500, b"first"), answer(502, b"second"), answer(503, b"third"))
    async with guarded(server) as kit:
        found = await kit.get("/")
    assert (found.status_code, found.content) == (503, b"third")
    with pytest.raises(httpx.HTTPStatusError):
        found.raise_for_status()


async def test_the_last_error_is_the_callers_and_httpxs_own(server):
    server.will(answer(500), hang_up)
    async with guarded(server) as kit:
        with pytest.raises(httpx.RemoteProtocolError) as raised:
            await kit.get("/")
    assert type(raised.value) is httpx.RemoteProtocolError
    assert len(server.asked) == 3


async def test_an_answer_after_which_there_may_be_no_other_is_still_whole(server):
    """It was read before the wait, then the breaker opened."""
    server.will(answer(500, b"the reason"))
    async with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300))) as kit:
        found = await kit.get("/")
    assert (found.status_code, found.content, len(server.asked)) == (500, b"the reason", 1)


async def test_of_a_long_answer_the_status_is_left(server):
    server.will(answer(500, b"x" * 1_000_000))
    async with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300))) as kit:
        found = await kit.send(kit.build_request("GET", "/"), stream=True)
        assert found.status_code == 500
        with pytest.raises(httpx.ReadError, match="not kept"):
            await found.aread()


async def test_an_open_breaker_refuses_in_both_languages(server):
    server.will(answer(500))
    async with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300), retry=None)) as kit:
        await kit.get("/")
        found = await refusal_of(kit)
    assert isinstance(found, BreakerOpen)
    assert 200 < found.retry_after < 400
    assert len(server.asked) == 1


async def test_a_limiter_refuses_in_both_languages(server):
    async with guarded(server, make_guard(limiter=Limiter(rate=0.1, burst=1, wait=1))) as kit:
        await kit.get("/")
        found = await refusal_of(kit)
    assert isinstance(found, RateLimited)
    assert 9 < found.retry_after <= 10
    assert len(server.asked) == 1


async def test_a_bulkhead_refuses_in_both_languages(server):
    async with guarded(server, make_guard(bulkhead=Bulkhead(1))) as kit, kit.stream("GET", "/"):
        assert isinstance(await refusal_of(kit), BulkheadFull)
    assert len(server.asked) == 1


async def test_a_deadline_that_has_passed_refuses_in_both_languages(server):
    async with guarded(server) as kit:
        with deadline(0):
            found = await refusal_of(kit)
    assert isinstance(found, DeadlinePassed)
    assert isinstance(found, httpx.TimeoutException)
    assert server.asked == []


async def test_an_attempt_that_takes_too_long_is_cut_off_and_repeated(server):
    server.will(hang, answer())
    async with guarded(server, make_guard(timeout=0.1)) as kit:
        assert (await kit.get("/")).status_code == 200


async def test_who_gets_no_answer_in_time_is_told_in_both_languages(server):
    server.will(hang)
    async with guarded(server, make_guard(timeout=0.1)) as kit:
        with pytest.raises(httpx.TimeoutException) as raised:
            await kit.post("/")
    assert isinstance(raised.value, TimedOut)
    assert len(server.asked) == 1
