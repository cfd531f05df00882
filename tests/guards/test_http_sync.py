"""Guarded requests of plain code in threads: the same rules, with httpx's own times instead of cutting off."""

from __future__ import annotations

import socket
from contextlib import contextmanager

import pytest
from http_kit import Hurried, Kit, httpx, make_guard
from http_server import answer, cut_body, hang, hang_up, slow_body

from holdfast.guards import Breaker, BreakerOpen, Bulkhead, BulkheadFull, State, TimedOut
from holdfast.guards.http import SyncGuardedTransport
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.world import inhabit


@contextmanager
def guarded(server, guard=None, *, meanwhile=None, **options):
    guard, inner = guard or make_guard(), httpx.HTTPTransport()
    world = Hurried(lambda: meanwhile(kit) if meanwhile else None)
    with (
        inhabit(world),
        httpx.Client(transport=SyncGuardedTransport(guard, inner, **options), base_url=server.url) as client,
    ):
        kit = Kit(guard, inner, client, world.waits)
        yield kit
        assert kit.is_clean, f"{guard.bulkhead}, {kit.pool}"


def test_it_is_tried_again_on_the_same_connection(server):
    server.will(answer(503, b"busy"), hang_up, answer())
    seen = []
    with guarded(server, meanwhile=lambda kit: seen.append(len(kit.busy))) as kit:
        assert kit.get("/").text == "well"
    assert [each.connection for each in server.asked] == [1, 1, 2]
    assert seen == [0, 0]


def test_retry_after_is_waited_for(server):
    server.will(answer(429, headers=[("Retry-After", "5")]), answer())
    with guarded(server) as kit:
        assert kit.post("/").status_code == 200
    assert kit.waits == [pytest.approx(5.5, abs=0.3)]


def test_the_last_answer_is_the_callers(server):
    server.will(answer(500, b"no"), answer(502, b"no, really"))
    with guarded(server) as kit:
        found = kit.get("/")
    assert (found.status_code, found.content, len(server.asked)) == (502, b"no, really", 3)


def test_a_post_is_not_repeated(server):
    server.will(answer(500), answer())
    with guarded(server) as kit:
        assert kit.post("/", content=b"order").status_code == 500


def test_a_stream_can_be_sent_only_once(server):
    server.will(answer(500), answer())
    with guarded(server) as kit:
        assert kit.put("/", content=iter([b"or", b"der"])).status_code == 500
    assert server.asked[0].body == b"order"


def test_connections_that_are_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    class Nowhere:
        url = f"http://127.0.0.1:{port}"

    with guarded(Nowhere) as kit, pytest.raises(httpx.ConnectError):
        kit.post("/")
    assert len(kit.waits) == 2


def test_an_answer_that_does_not_come(server):
    server.will(hang)
    with guarded(server, make_guard(timeout=0.2)) as kit:
        began = monotonic()
        with pytest.raises(httpx.ReadTimeout):
            kit.post("/")
        assert monotonic() - began < 2


def test_a_body_that_drips_is_left_when_the_time_is_over(server):
    server.will(slow_body(100, 0.05))
    with guarded(server, make_guard(timeout=0.3, breaker=Breaker(failures=1))) as kit:
        began = monotonic()
        with pytest.raises(httpx.ReadTimeout) as raised:
            kit.get("/")
        assert isinstance(raised.value, TimedOut)
        assert monotonic() - began < 2
        assert kit.guard.breaker.state is State.OPEN


def test_a_body_that_breaks_off_is_a_failure(server):
    server.will(cut_body)
    with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300))) as kit:
        with pytest.raises(httpx.RemoteProtocolError):
            kit.get("/")
        with pytest.raises(httpx.TransportError) as raised:
            kit.get("/")
    assert isinstance(raised.value, BreakerOpen)
    assert len(server.asked) == 1


def test_a_call_is_over_with_its_body(server):
    with guarded(server, make_guard(bulkhead=Bulkhead(1))) as kit, kit.stream("GET", "/") as found:
        with pytest.raises(BulkheadFull):
            kit.get("/")
        assert found.read() == b"well"
        assert kit.get("/").status_code == 200


def test_who_closes_an_answer_early_has_had_it(server):
    server.will(answer(body=b"x" * 1_000_000))
    with guarded(server) as kit, kit.stream("GET", "/"):
        assert kit.guard.bulkhead.in_flight == 1


def test_an_answer_after_which_there_may_be_no_other_is_still_whole(server):
    server.will(answer(500, b"the reason"))
    with guarded(server, make_guard(breaker=Breaker(failures=1, cooldown=300))) as kit:
        assert kit.get("/").content == b"the reason"
    server.will(answer(500, b"x" * 200_000))
    guard = make_guard(breaker=Breaker(failures=1, cooldown=300))
    with guarded(server, guard) as kit, pytest.raises(httpx.ReadError, match="not kept"):
        kit.get("/")


@pytest.mark.parametrize("deadline", [None, 30])
def test_an_answer_that_is_thrown_away_is_not_waited_for(server, deadline):
    """As long as the client waits for a reading, it did."""
    server.will(slow_body(2, 30, 500), answer())
    with guarded(server, make_guard(timeout=None, deadline=deadline)) as kit:
        began = monotonic()
        assert kit.get("/", timeout=4).status_code == 200
    assert monotonic() - began < 2.5


def test_a_fallback_answers(server):
    server.will(answer(500, b"x" * 100))
    with guarded(server, make_guard(fallback=lambda: httpx.Response(200, text="from the cache"))) as kit:
        assert kit.get("/").text == "from the cache"
        assert kit.busy == []


async def test_it_does_not_stop_an_event_loop(server):
    with guarded(server) as kit, pytest.raises(UsageError, match="async client"):
        kit.get("/")
