"""Bodies and connections: who reads an answer, when a call is over, and that everything is given back."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest
from http_kit import guarded, httpx, make_guard
from http_server import answer, cut_body, hang, hang_up, slow_body

from holdfast.guards import Backoff, Breaker, Bulkhead, State, TimedOut
from holdfast.guards.http import GuardedTransport
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import HoldfastError

# --- answers are the caller's to read ---


async def test_nobody_reads_a_body_before_the_caller(server):
    server.will(slow_body(20, 0.05))
    async with guarded(server) as kit:
        began = monotonic()
        async with kit.stream("GET", "/") as found:
            assert monotonic() - began < 0.5, "somebody has read it"
            assert [part async for part in found.aiter_raw()] != [b"x" * 20]
            assert found.num_bytes_downloaded == 20


async def test_a_call_is_over_with_its_body(server):
    async with guarded(server, make_guard(bulkhead=Bulkhead(1))) as kit, kit.stream("GET", "/") as found:
        assert kit.guard.bulkhead.in_flight == 1
        await found.aread()
        assert kit.guard.bulkhead.in_flight == 0


async def test_who_closes_an_answer_early_has_had_it(server):
    server.will(answer(body=b"x" * 1_000_000))
    async with guarded(server, make_guard(breaker=Breaker(failures=1))) as kit:
        async with kit.stream("GET", "/") as found:
            async for _ in found.aiter_raw():
                break
            assert kit.guard.bulkhead.in_flight == 1
        assert kit.guard.bulkhead.in_flight == 0
        assert kit.guard.breaker.record().failures == 0
        assert kit.busy == []


async def test_a_call_may_be_over_with_its_headers(server):
    server.will(slow_body(8, 0.05))
    async with guarded(server, make_guard(deadline=0.2, timeout=None)) as kit:
        request = kit.build_request("GET", "/", extensions={"guard_until": "headers"})
        found = await kit.send(request, stream=True)
        assert kit.guard.bulkhead.in_flight == 0
        assert await found.aread() == b"x" * 8


async def test_between_two_parts_httpx_waits_as_long_as_the_request_says(server):
    """The deadline of the headers is no timeout for the body."""
    server.will(slow_body(3, 0.4))
    async with guarded(server, make_guard(deadline=0.2, timeout=None), until="headers") as kit:
        assert (await kit.get("/")).content == b"xxx"


async def test_an_answer_that_is_in_memory_is_over_at_once():
    guard = make_guard()
    transport = GuardedTransport(
        guard, httpx.MockTransport(lambda request: httpx.Response(200, text="hello"))
    )
    async with httpx.AsyncClient(transport=transport) as client:
        assert (await client.get("http://x/")).text == "hello"
    assert guard.bulkhead.in_flight == 0


# --- bodies that fail ---


async def test_a_body_that_breaks_off_is_a_failure_and_is_not_asked_for_again(server):
    server.will(cut_body, answer())
    async with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300))) as kit:
        with pytest.raises(httpx.RemoteProtocolError):
            await kit.get("/")
        assert kit.guard.breaker.state is State.OPEN
    assert len(server.asked) == 1


@pytest.mark.parametrize("times", [{"timeout": 0.3}, {"timeout": None, "deadline": 0.3}])
@pytest.mark.parametrize("status", [200, 404])
async def test_a_body_that_drips_is_cut_off_with_its_call(server, times, status):
    server.will(slow_body(100, 0.05, status))
    async with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300), **times)) as kit:
        began = monotonic()
        with pytest.raises(httpx.ReadTimeout) as raised:
            await kit.get("/")
        assert isinstance(raised.value, TimedOut)
        assert 0.25 < monotonic() - began < 2
        assert kit.guard.breaker.state is (State.OPEN if status == 200 else State.CLOSED)


async def test_a_body_that_stops_is_cut_off_when_the_time_is_over_and_not_later(server):
    """httpx would wait anew after each part."""

    async def stops(writer):
        writer.write(b"HTTP/1.1 200 Word\r\nContent-Length: 100\r\n\r\n0")
        await asyncio.sleep(0.7)
        writer.write(b"1")
        await asyncio.sleep(60)

    server.will(stops)
    async with guarded(server, make_guard(timeout=1)) as kit:
        began = monotonic()
        with pytest.raises(TimedOut):
            await kit.get("/")
        assert 0.9 < monotonic() - began < 1.4


async def test_a_caller_who_reads_slowly_does_not_make_the_other_side_slow(server):
    server.will(answer(body=b"x" * 300_000))
    breaker = Breaker(minimum=1, slow=0.3, slow_ratio=0.5)
    async with guarded(server, make_guard(breaker=breaker)) as kit:
        async with kit.stream("GET", "/") as found:
            async for _ in found.aiter_raw(100_000):
                await asyncio.sleep(0.15)
        assert (breaker.state, breaker.record().calls) == (State.CLOSED, 1)
        server.will(slow_body(10, 0.05))
        await kit.get("/")
        assert breaker.state is State.OPEN


# --- connections ---


async def test_an_answer_that_is_thrown_away_gives_its_connection_back_before_the_wait(server):
    server.will(answer(503, b"busy"), answer(503, b"x" * 60_000), answer())
    seen = []
    async with guarded(server, meanwhile=lambda kit: seen.append((len(kit.pool), len(kit.busy)))) as kit:
        assert (await kit.get("/")).status_code == 200
    assert seen == [(1, 0), (1, 0)]
    assert {each.connection for each in server.asked} == {1}


async def test_a_long_answer_that_is_thrown_away_is_not_read(server):
    server.will(answer(503, b"x" * 10_000_000), answer())
    seen = []
    async with guarded(server, meanwhile=lambda kit: seen.append(len(kit.busy))) as kit:
        assert (await kit.get("/")).status_code == 200
    assert (seen, server.connections) == ([0], 2)


@pytest.mark.parametrize("body", [slow_body(100, 0.05, 500), slow_body(2, 30, 500)])
async def test_an_answer_that_is_thrown_away_is_not_read_past_the_deadline(server, body):
    """It had a second for it, however little was left."""
    server.will(body)
    guard = make_guard(timeout=None, deadline=0.3, retry=Backoff(attempts=3, first=0, ceiling=10))
    async with guarded(server, guard) as kit:
        began = monotonic()
        with suppress(TimedOut):  # of the last attempt, on a busy machine
            found = await kit.send(kit.build_request("GET", "/"), stream=True)
            await found.aclose()
        assert monotonic() - began < 0.8
    assert len(server.asked) > 1


async def test_reading_what_is_thrown_away_is_a_part_of_the_wait(server):
    server.will(slow_body(4, 0.1, 500), answer())
    guard = make_guard(
        retry=Backoff(attempts=3, first=4, ceiling=10)
    )  # 2 seconds, with the chance of the middle
    async with guarded(server, guard) as kit:
        await kit.get("/")
    assert 1 < kit.waits[0] < 1.75


@pytest.mark.parametrize("trouble", [slow_body(100, 0.1, 503), cut_body])
async def test_an_answer_that_cannot_be_read_does_not_hold_up_the_next_attempt(server, trouble):
    server.will(trouble if trouble is not cut_body else cut_error, answer())
    async with guarded(server) as kit:
        began = monotonic()
        assert (await kit.get("/")).status_code == 200
        assert monotonic() - began < 3


async def cut_error(writer):
    writer.write(b"HTTP/1.1 503 Word\r\nContent-Length: 100\r\n\r\n0123456789")
    await writer.drain()
    return False


# --- cancelling ---


async def cancelled(kit, moment):
    task = asyncio.ensure_future(kit.get("/"))
    await asyncio.sleep(moment)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize(
    "trouble", [hang, slow_body(100, 0.05), slow_body(100, 0.05, 503), slow_body(100, 0.05, 404)]
)
async def test_who_is_cancelled_gives_everything_back(server, trouble):
    """While waiting for the headers, for the body, while an answer is thrown away, and while an error is read."""
    server.will(trouble)
    breaker = Breaker(failures=1, cooldown=0.01, permits=1)
    async with guarded(server, make_guard(bulkhead=Bulkhead(1), breaker=breaker)) as kit:
        await cancelled(kit, 0.2)
        assert kit.is_clean
        server.will(answer())
        await asyncio.sleep(0.05)
        assert (await kit.get("/")).status_code == 200
        assert breaker.state is State.CLOSED


async def test_a_probe_that_is_cancelled_in_its_body_gives_its_permit_back(server):
    breaker = Breaker(failures=1, cooldown=0.01, permits=2)
    async with guarded(server, make_guard(breaker=breaker, retry=None)) as kit:
        server.will(hang_up)
        with pytest.raises(httpx.RemoteProtocolError):
            await kit.get("/")
        await asyncio.sleep(0.05)
        server.will(slow_body(100, 0.05))
        await cancelled(kit, 0.2)
        assert breaker.state is State.HALF_OPEN
        server.will(answer())
        await asyncio.gather(kit.get("/"), kit.get("/"))
        assert breaker.state is State.CLOSED


@pytest.mark.parametrize("seed", range(3))
async def test_a_storm_leaves_nothing_behind(server, seed):
    """Everything that can go wrong, at once, and a third of the callers cancelled."""
    chance = random.Random(seed)
    kinds = [
        answer(), answer(500), answer(503, b"x" * 200_000), answer(429, headers=[("Retry-After", "garbage")]), hang_up,
        cut_body, cut_error, slow_body(5, 0.01), slow_body(50, 0.02), answer(404), hang,
    ]  # fmt: skip
    server.will(*(chance.choice(kinds) for _ in range(400)), answer())
    guard = make_guard(
        timeout=0.3,
        deadline=1,
        bulkhead=Bulkhead(8, waiting=200),
        breaker=Breaker(failures=8, cooldown=0.05, permits=2),
    )

    async def one(kit):
        method = chance.choice(["GET", "POST"])
        try:
            async with kit.stream(method, "/") as found:
                if chance.random() < 0.8:
                    await found.aread()
        except (httpx.TransportError, HoldfastError):
            pass

    async with guarded(server, guard, storms=True) as kit:
        tasks = [asyncio.ensure_future(one(kit)) for _ in range(120)]
        for task in chance.sample(tasks, 40):
            await asyncio.sleep(0.01)
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, asyncio.CancelledError)
        assert kit.has_permits


async def test_a_guard_within_a_guard(server):
    """Each gives its own permits back, also when the outer one does not wait for the body."""
    inner = make_guard()
    transport = GuardedTransport(inner)
    outer = make_guard()
    for until in ("headers", "body"):
        async with httpx.AsyncClient(transport=GuardedTransport(outer, transport, until=until)) as client:
            await client.get(server.url)
        assert (inner.bulkhead.in_flight, outer.bulkhead.in_flight) == (0, 0)
