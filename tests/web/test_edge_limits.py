"""Limits at the edge: requests in a time, and bytes, parts and time of bodies."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from edge import client

from holdfast import Holdfast
from holdfast.kernel.errors import UsageError
from holdfast.web import BodyLimits, Problems, RateLimit, RateLimits
from holdfast.web.limits.addresses import Addresses


async def echo(scope, receive, send):
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d bytes" % size})


# --- rates ---


async def test_the_one_above_the_limit_is_refused(hf):
    app = RateLimits(echo, hf, [RateLimit("api", requests=5, seconds=60)])
    async with client(app) as http:
        answers = [await http.get("/") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    refused = answers[-1]
    assert refused.json()["code"] == "RATE_LIMIT_EXCEEDED"
    assert 1 <= int(refused.headers["retry-after"]) <= 13
    assert refused.headers["ratelimit-policy"] == '"api";q=5;w=60'
    assert '"api";r=4' in answers[0].headers["ratelimit"]
    assert '"api";r=0' in refused.headers["ratelimit"]


async def test_nobody_is_kept_out_by_a_redis_that_was_just_started(tmp_path, own_valkey):
    """What it may have forgotten counts as not used: the limit is the same, and the first requests are answered."""
    async with Holdfast(f"sqlite:///{tmp_path / 'a.db'}", guards=own_valkey.url) as hf:
        app = RateLimits(echo, hf, [RateLimit("login", requests=5, seconds=300)])
        async with client(app) as http:
            answers = [(await http.get("/")).status_code for _ in range(6)]
    assert answers == [200] * 5 + [429]


async def test_each_address_has_its_own_rate(hf):
    app = RateLimits(echo, hf, [RateLimit("api", requests=1)], proxies=["127.0.0.0/8"])
    async with client(app) as http:
        for address in ("198.51.100.1", "198.51.100.2", "2001:db8:1::1", "2001:db8:2::1"):
            answer = await http.get("/", headers={"X-Forwarded-For": address})
            assert answer.status_code == 200, address
        same = await http.get("/", headers={"X-Forwarded-For": "2001:db8:1::2"})
    assert same.status_code == 429, "one household has 64 bits of addresses"


async def test_an_address_that_nobody_vouches_for_is_not_believed(hf):
    app = RateLimits(echo, hf, [RateLimit("api", requests=1)])
    async with client(app) as http:
        assert (await http.get("/", headers={"X-Forwarded-For": "198.51.100.1"})).status_code == 200
        assert (await http.get("/", headers={"X-Forwarded-For": "198.51.100.2"})).status_code == 429


async def test_persons_are_counted_when_they_are_known(hf):
    limits = [
        RateLimit("person", requests=2, by="principal", routes=["POST /orders"]),
    ]
    app = RateLimits(echo, hf, limits)
    async with client(app) as http:
        for _ in range(3):
            assert (await http.post("/orders")).status_code == 200
        ada = {"Authorization": "Bearer ada"}
        assert [(await http.post("/orders", headers=ada)).status_code for _ in range(3)] == [200, 200, 429]
        assert (await http.get("/orders", headers=ada)).status_code == 200


async def test_sockets_are_counted_too(hf):
    opened, sent = [], []

    async def socket(scope, receive, send):
        opened.append(scope["path"])

    async def send(message):
        sent.append(message)

    app = RateLimits(socket, hf, [RateLimit("live", requests=2, seconds=600, routes=["GET /live/{id}"])])
    for path in ("/live/1", "/live/2", "/live/3", "/other"):
        scope = {"type": "websocket", "headers": [], "client": ("192.0.2.1", 1), "path": path}
        await app(scope, None, send)
    assert opened == ["/live/1", "/live/2", "/other"]
    assert sent == [{"type": "websocket.close", "code": 1013, "reason": "Too many requests"}]


async def test_processes_share_a_limit(url):
    one, two = Holdfast(url), Holdfast(url)
    apps = [RateLimits(echo, each, [RateLimit("api", requests=10, seconds=600)]) for each in (one, two)]
    async with one, two, client(apps[0]) as first, client(apps[1]) as second:
        answers = [await http.get("/") for _ in range(10) for http in (first, second)]
    assert sum(answer.status_code == 200 for answer in answers) <= 10


@pytest.mark.parametrize(
    ("peer", "told", "found"),
    [
        ("198.51.100.9", "203.0.113.1", "198.51.100.9"),
        ("10.0.0.1", "203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", "203.0.113.7, 203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", "203.0.113.1, 10.0.0.2", "203.0.113.1"),
        ("10.0.0.1", "garbage", "10.0.0.1"),
        ("10.0.0.1", "garbage, 203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", "203.0.113.1:4711", "203.0.113.1"),
        ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::/64"),
        ("::ffff:10.0.0.1", "203.0.113.1", "203.0.113.1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("fe80::1%eth0", None, "fe80::/64"),
    ],
)
def test_who_the_client_is(peer, told, found):
    headers = [] if told is None else [(b"x-forwarded-for", told.encode())]
    assert Addresses(["10.0.0.0/8"]).key({"client": (peer, 1), "headers": headers}) == found


def test_a_socket_without_an_address_is_local():
    assert Addresses().key({"client": None, "headers": []}) == "local"


def test_a_wrong_network_is_refused():
    with pytest.raises(UsageError, match="A proxy is an address or a network"):
        Addresses(["10.0.0.0/33"])


# --- bodies ---


async def _stream(*chunks, pause=0.0):
    for chunk in chunks:
        await asyncio.sleep(pause)
        yield chunk


async def test_a_body_within_its_limit_passes():
    async with client(BodyLimits(echo, total=100)) as http:
        assert (await http.post("/", content=b"x" * 100)).text == "100 bytes"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_body_above_its_limit_is_refused(streamed):
    content = _stream(b"x" * 60, b"x" * 60) if streamed else b"x" * 120
    async with client(BodyLimits(echo, total=100)) as http:
        answer = await http.post("/", content=content)
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert "at most 100 bytes" in answer.json()["detail"]


async def test_a_length_of_thousands_of_digits_is_too_large():
    async with client(BodyLimits(echo, total=100)) as http:
        answer = await http.post("/", content=_stream(b"x"), headers={"content-length": "9" * 5000})
    assert answer.status_code == 413


async def test_a_route_may_take_more():
    app = BodyLimits(echo, total=10, larger={"POST /uploads/{id}": 1000})
    async with client(app) as http:
        assert (await http.post("/uploads/7", content=b"x" * 1000)).status_code == 200
        assert (await http.post("/other", content=b"x" * 11)).status_code == 413


async def test_parts_are_counted_before_anything_parses_them():
    async with client(BodyLimits(echo, parts=3, part=100)) as http:
        few = await http.post("/", files=[("f", (f"{n}", b"x")) for n in range(3)])
        many = await http.post("/", files=[("f", (f"{n}", b"x")) for n in range(4)])
        large = await http.post("/", files=[("f", ("a", b"x" * 101))])
    assert [few.status_code, many.status_code, large.status_code] == [200, 413, 413]


async def test_a_body_that_trickles_is_refused(manual_clock):
    async def trickling(scope, receive, send):
        chunks = [b"x"] * 5

        async def slowly():
            if not chunks:
                await asyncio.get_running_loop().create_future()
            return {"type": "http.request", "body": chunks.pop(), "more_body": True}

        await BodyLimits(echo, time=10)(scope, slowly, send)

    async with client(trickling) as http:
        waiting = asyncio.create_task(http.post("/"))
        for _ in range(20):
            await asyncio.sleep(0)
        manual_clock.advance(11)
        answer = await waiting
    assert answer.status_code == 408


async def test_large_headers_are_refused():
    async with client(BodyLimits(echo, headers=1000)) as http:
        assert (await http.get("/", headers={"x": "y" * 1000})).status_code == 431


async def test_an_answer_of_the_app_after_the_refusal_is_left_out():
    async def stubborn(scope, receive, send):
        try:
            while (await receive()).get("more_body"):
                pass
        except Exception:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async with client(BodyLimits(stubborn, total=1)) as http:
        assert (await http.post("/", content=_stream(b"xx", b"xx"))).status_code == 413


async def test_an_error_becomes_a_problem_that_tells_nothing_of_the_inside():
    async def broken(scope, receive, send):
        raise RuntimeError("secret")

    async with client(Problems(broken)) as http:
        answer = await http.get("/")
    assert answer.status_code == 500
    assert answer.json()["code"] == "INTERNAL_ERROR"
    assert "secret" not in answer.text
    assert isinstance(answer, httpx.Response)
