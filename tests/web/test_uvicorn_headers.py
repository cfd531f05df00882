"""Clients that are slow with their headers, or have too many of them, against uvicorn with our limits, for both of its parsers."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import uvicorn
import websockets
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.kernel.errors import UsageError
from holdfast.web.uvicorn_headers import HeaderLimits, header_limits

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
LIMIT = 0.5


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.send", "text": "heard"})
        await send({"type": "websocket.close"})
        return
    if scope["path"] == "/early":
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(params=[H11Protocol, HttpToolsProtocol], ids=["h11", "httptools"])
async def port(request):
    """Of a server that waits half a second for headers, and takes 4,096 bytes of them."""
    protocol = header_limits(time=LIMIT, size=4096, protocol=request.param)
    config = uvicorn.Config(
        app, http=protocol, port=0, lifespan="off", log_level="critical", timeout_keep_alive=30
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def trickled(port, *parts, before=b"", pause=LIMIT / 4):
    """What the server says to these bytes, one after the other, until it hangs up; `before` is answered first."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(30):
            if before:
                writer.write(before)
                await reader.readuntil(b"\r\n\r\nbody")
            answer = asyncio.create_task(reader.read())
            for part in parts:
                if not answer.done():
                    writer.write(part)
                    await asyncio.wait([answer], timeout=pause)
            return await answer
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_headers_that_trickle_are_ended_and_others_are_served(port):
    slow = [asyncio.create_task(trickled(port, *head())) for _ in range(100)]
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"http://127.0.0.1:{port}/", content=b"body")).content == b"body"
    answers = await asyncio.gather(*slow)
    said = {answer.partition(b"\r\n")[0] for answer in answers}
    # Who is still sending when the server closes may lose what it has said.
    assert b"HTTP/1.1 408 Request Timeout" in said
    assert said <= {b"HTTP/1.1 408 Request Timeout", b""}


def head():
    """Headers that take longer than the limit, however few they are."""
    return [b"POST / HTTP/1.1\r\n", *[b"X-A: b\r\n"] * 40]


async def test_who_says_nothing_is_not_waited_for(port):
    assert await trickled(port) == b""


async def test_a_second_request_on_a_connection_has_the_same_time(port):
    said = await trickled(port, *head(), before=HEAD + b"body")
    assert said.startswith(b"HTTP/1.1 408 ") or said == b""  # which who is still sending may lose


async def test_a_connection_may_rest_between_requests(port):
    async with httpx.AsyncClient() as http:
        for _ in range(2):
            assert (await http.post(f"http://127.0.0.1:{port}/", content=b"body")).content == b"body"
            await asyncio.sleep(2 * LIMIT)  # longer than headers may take
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(HEAD + b"body")
        await reader.readuntil(b"\r\n\r\nbody")
        await asyncio.sleep(2 * LIMIT)
    writer.close()


async def test_a_body_may_take_longer_than_headers(port):
    async def slow():
        for part in (b"bo", b"dy"):
            await asyncio.sleep(1.5 * LIMIT)
            yield part

    async with httpx.AsyncClient() as http:
        answer = await http.post(f"http://127.0.0.1:{port}/", content=slow(), headers={"Content-Length": "4"})
    assert answer.content == b"body"


async def test_too_many_headers_are_refused_before_they_are_complete(port):
    part = b"X-A: " + b"b" * 1000 + b"\r\n"
    answer = await trickled(port, b"POST / HTTP/1.1\r\nHost: x\r\n", *[part] * 6, pause=LIMIT / 100)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""  # which who is still sending may lose
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"http://127.0.0.1:{port}/", content=b"body")).content == b"body"


async def test_a_websocket_stays_open(port):
    async with websockets.connect(f"ws://127.0.0.1:{port}/") as socket:
        await asyncio.sleep(2 * LIMIT)
        await socket.send("hello")
        assert await socket.recv() == "heard"


def test_limits_that_make_no_sense_are_refused():
    for options in ({"time": 0}, {"size": 10}):
        with pytest.raises(UsageError):
            header_limits(**options)
    assert HeaderLimits.header_time == 20


async def test_the_rest_of_a_refused_body_is_no_headers(port):
    """It was answered before all of it had come: the client reads that answer, and the connection goes on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
    for _ in range(100):
        writer.write(b"x" * 1000)
        await writer.drain()
    writer.write(HEAD + b"body")
    assert b"body" in await reader.readuntil(b"\r\n\r\nbody")
    writer.close()


async def test_the_rest_of_a_refused_body_does_not_come_for_ever(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    answer = asyncio.create_task(reader.read())
    async with asyncio.timeout(30):
        while not answer.done():
            writer.write(b"x")
            await asyncio.wait([answer], timeout=LIMIT / 4)
    assert answer.exception() is not None or answer.result() == b""
    writer.close()
