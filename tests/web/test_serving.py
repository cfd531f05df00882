"""The small server of a worker's port takes nothing but plain, short, timely requests."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import UsageError
from holdfast.kernel.clock import monotonic
from holdfast.web import serving
from holdfast.web.serving import Server, address


async def app(scope, receive, send):
    if scope["path"] == "/fails":
        raise RuntimeError("no")
    if scope["path"] == "/hangs":
        await asyncio.sleep(60)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": scope["path"].encode() + scope["query_string"]})


@pytest.fixture
async def port(monkeypatch):
    monkeypatch.setattr(serving, "_READING", 0.3)
    monkeypatch.setattr(serving, "_ANSWERING", 0.3)
    async with Server(app, "127.0.0.1", 0) as server:
        yield server.port


async def say(port, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(text)
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()


def get(path="/live", *fields, method="GET"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *fields, "", ""]).encode()


async def test_a_plain_request(port):
    answer = await say(port, get("/live?a=1"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in answer
    assert answer.endswith(b"\r\n\r\n/livea=1")
    assert (await say(port, get(method="HEAD"))).endswith(
        b"content-length: 5\r\nconnection: close\r\nx-content-type-options: nosniff\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get(method="POST"), 405),
        (get("/a", "Content-Length: 5"), 400),
        (get("/a", "Transfer-Encoding: chunked"), 400),
        (get("/a", "Content-Length: 0", "Content-Length: 5"), 400),
        (get("/a", "Transfer-Encoding : chunked"), 400),
        (get("/a", "X: 1", " folded: 2"), 400),
        (get("/a", "X: \x00"), 400),
        (get("/a", "X: 1\nGET /b HTTP/1.1"), 400),
        (b"GET /a HTTP/2.0\r\n\r\n", 400),
        (b"GET http://other/a HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (get("/a", *(f"X{number}: 1" for number in range(80))), 431),
        (get("/" + "a" * 9_000), 431),
        (get("/fails"), 500),
        (get("/hangs"), 503),
        (b"GET /a HTTP/1.1\r\nX: ", 408),
    ],
)
async def test_what_is_not_plain_is_refused(port, request_, status):
    answer = await say(port, request_)
    assert answer.split(b" ", 2)[1] == str(status).encode(), answer
    assert b"Traceback" not in answer


async def test_only_one_request_of_a_connection_is_answered(port):
    answer = await say(port, get("/a") + get("/b"))
    assert answer.count(b"HTTP/1.1 200") == 1


async def test_slow_clients_are_let_go_and_others_served(port):
    slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
    for _, writer in slow:
        writer.write(b"GET /")
    began = monotonic()
    while not (await asyncio.gather(say(port, get()), return_exceptions=True))[0:1][0]:
        assert monotonic() - began < 3
        await asyncio.sleep(0.05)
    for _, writer in slow:
        writer.close()


async def test_a_port_that_is_taken_is_told(port):
    with pytest.raises(UsageError, match=f"127.0.0.1:{port}"):
        await Server(app, "127.0.0.1", port).start()


def test_addresses():
    assert address("127.0.0.1:8000") == ("127.0.0.1", 8000)
    assert address(":8000") == ("127.0.0.1", 8000)
    assert address("0.0.0.0:8000") == ("0.0.0.0", 8000)
    assert address("[::1]:8000") == ("::1", 8000)
    for wrong in ("8000", "x:y", "127.0.0.1:70000"):
        with pytest.raises(UsageError, match="An address is written"):
            address(wrong)
