"""The deadline on its way from one service to the next: a header, and what httpx itself waits for."""

from __future__ import annotations

import pytest
from http_kit import guarded, httpx, make_guard
from http_server import answer

from holdfast.guards import DEADLINE_HEADER, Guard, deadline, deadline_from, time_left
from holdfast.guards.http import GuardedTransport

HEADER = DEADLINE_HEADER.lower()


async def test_a_request_tells_how_much_time_is_left(server):
    async with guarded(server) as kit:
        with deadline(3):
            await kit.get("/")
        await kit.get("/")
    assert 2.5 < float(server.asked[0].headers[HEADER]) <= 3
    assert 4.5 < float(server.asked[1].headers[HEADER]) <= 5  # that of an attempt


async def test_each_attempt_tells_what_is_left_then(server):
    import time

    server.will(answer(500), answer(500), answer())
    async with guarded(
        server, make_guard(timeout=None, deadline=9), meanwhile=lambda kit: time.sleep(0.1)
    ) as kit:
        await kit.get("/")
    told = [float(each.headers[HEADER]) for each in server.asked]
    assert told[0] - told[1] >= 0.1
    assert told[1] - told[2] >= 0.1


async def test_who_has_no_deadline_tells_none(server):
    async with guarded(server, make_guard(timeout=None, deadline=None)) as kit:
        await kit.get("/")
    assert HEADER not in server.asked[0].headers


async def test_it_can_be_kept_to_oneself(server):
    async with guarded(server, tell_deadline=False) as kit:
        await kit.get("/")
        await kit.get("/", headers={DEADLINE_HEADER: "7"})
    assert [each.headers.get(HEADER) for each in server.asked] == [None, "7"]


async def test_what_the_caller_says_himself_stays(server):
    async with guarded(server) as kit:
        request = kit.build_request("GET", "/", headers={DEADLINE_HEADER: "7"})
        await kit.send(request)
    assert server.asked[0].headers[HEADER] == "7"


async def test_the_callers_request_is_left_as_it_was(server):
    async with guarded(server) as kit:
        found = await kit.get("/")
    assert DEADLINE_HEADER not in found.request.headers
    assert found.request.extensions["timeout"]["read"] == 5


@pytest.mark.parametrize(
    ("own", "left", "least", "most"), [(5, 2, 1.9, 2), (1, 2, 1, 1), (None, 2, 1.9, 2), (5, 0, 0.001, 0.001)]
)
async def test_httpx_waits_no_longer_than_is_left(own, left, least, most):
    seen = {}

    def handler(request):
        seen.update(request.extensions["timeout"])
        return httpx.Response(200)

    transport = GuardedTransport(Guard("api"), httpx.MockTransport(handler))
    with deadline(left) if left else deadline(1e-9):
        try:
            async with httpx.AsyncClient(transport=transport, timeout=own) as client:
                await client.get("http://x/")
        except httpx.TimeoutException:
            assert left == 0  # it is refused
            return
    assert all(least <= seen[name] <= most for name in ("connect", "read", "write", "pool"))


async def test_without_a_deadline_httpx_waits_as_it_was_told():
    seen = {}

    def handler(request):
        seen.update(request.extensions["timeout"])
        return httpx.Response(200)

    transport = GuardedTransport(Guard("api"), httpx.MockTransport(handler))
    async with httpx.AsyncClient(transport=transport, timeout=httpx.Timeout(7, read=None)) as client:
        await client.get("http://x/")
    assert seen == {"connect": 7, "read": None, "write": 7, "pool": 7}


# --- the receiving side ---


@pytest.mark.parametrize(
    "headers",
    [
        {"Holdfast-Deadline": "3"},
        {"HOLDFAST-DEADLINE": "3.000"},
        httpx.Headers({"holdfast-deadline": "3"}),
        [(b"host", b"x"), (b"holdfast-deadline", b"3")],
        [(b"holdfast-deadline", b"9"), (b"holdfast-deadline", b"3"), (b"holdfast-deadline", b"no")],
    ],
)
def test_a_service_keeps_to_the_deadline_of_its_caller(headers):
    with deadline_from(headers):
        assert 2.9 < time_left() <= 3
    assert time_left() is None


@pytest.mark.parametrize("value", ["", "-1", "soon", "1e3", "nan", "inf", "9" * 30, "1,2"])
def test_what_cannot_be_read_changes_nothing(value, notes):
    with deadline_from({DEADLINE_HEADER: value}):
        assert time_left() is None
    assert [name for name, _ in notes] == ["deadline.ignored"]
    with deadline(5), deadline_from({DEADLINE_HEADER: value}):
        assert time_left() > 4


def test_without_the_header_it_changes_nothing(notes):
    with deadline(5), deadline_from({"Host": "x"}):
        assert 4 < time_left() <= 5
    assert notes == []


@pytest.mark.parametrize(
    ("value", "longest", "left"), [("999999999", 86_400, 86_400), ("50", 10, 10), ("5", 10, 5)]
)
def test_nobody_may_ask_for_more_than_there_is(value, longest, left):
    with deadline_from({DEADLINE_HEADER: value}, longest=longest):
        assert left - 0.5 < time_left() <= left


def test_a_deadline_is_never_made_later():
    with deadline(2), deadline_from({DEADLINE_HEADER: "60"}):
        assert time_left() <= 2


async def test_from_one_service_to_the_next(server):
    async with guarded(server, make_guard(timeout=None, deadline=None)) as kit:
        with deadline_from([(b"holdfast-deadline", b"4.5")]):
            await kit.get("/")
    assert 4 < float(server.asked[0].headers[HEADER]) <= 4.5
