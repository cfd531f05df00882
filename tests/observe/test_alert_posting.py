"""Posting to a webhook that answers in bytes of its own choice, slowly, for ever, or not in HTTP."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import pytest
from alert_kit import SECRET

from holdfast import Retry
from holdfast.observe import Alert, AlertSettings
from holdfast.observe.alerts.webhook import AlertNotTaken, post

ALERT = Alert(id="a", kind="login", cause="user:7", state="opened", number=1, opened_at=1.0, at=1.0)


@asynccontextmanager
async def answering(*pieces, each=0.0):
    """A server that reads one request, sends these bytes with a rest before each, and hangs up."""
    asked, serving = [], []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")
            )
            asked.append((head, await reader.readexactly(length)))
            for piece in pieces:
                await asyncio.sleep(each)
                writer.write(piece)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/in?team=ops", asked
    finally:
        server.close()
        await asyncio.wait_for(asyncio.gather(*serving), 10)


def to(url, timeout=5.0):
    return AlertSettings(webhook=url, secret=SECRET, timeout=timeout)


async def test_an_answer_that_trickles_has_an_end():
    """Each byte comes well within the timeout, and all of them would take ten times as long."""
    answer = [b"HTTP/1.1 204 No Content\r\n\r\n"[each : each + 1] for each in range(26)]
    async with answering(*answer, each=0.2) as (url, asked):
        began = time.monotonic()
        with pytest.raises(AlertNotTaken, match=r"did not answer within 0\.5 s"):
            await post(to(url, 0.5), ALERT, "d1")
        assert time.monotonic() - began < 5
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"], 200),
        ([b"HTTP/1.0 299 \n\n"], 299),
        ([b"HTTP/1.1 204\r\n\r\n"], 204),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n"], 202),
        ([b"HTT", b"P/1.1 20", b"0 OK\r", b"\n\r\n"], 200),
    ],
)  # fmt: skip
async def test_what_is_taken(pieces, status):
    async with answering(*pieces) as (url, asked):
        assert await post(to(url), ALERT, "d1") == status
        [(head, body)] = asked
        assert head.startswith(b"POST /in?team=ops HTTP/1.1\r\nHost: 127.0.0.1:")
        assert b"user:7" in body


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"\r\n"],
        [b"SSH-2.0-OpenSSH\r\n\r\n"],
        [b"HTTP/1.1 OK\r\n\r\n"],
        [b"HTTP/2 200\r\n\r\n"],
        [b"HTTP/1.1 301 Moved\r\nLocation: /in\r\n\r\n"],
        [b"HTTP/1.1 500 No\r\n\r\n"],
        [b"HTTP/1.1 200 " + b"x" * 200_000],
        [b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"y" * 10_000 + b"\r\n"] * 20],
    ],
    ids=["nothing", "an empty line", "ssh", "no status", "http2", "moved", "an error", "a long line", "many headers"],
)  # fmt: skip
async def test_what_is_not_taken_is_tried_again(pieces):
    async with answering(*pieces) as (url, _):
        with pytest.raises(AlertNotTaken):
            await post(to(url), ALERT, "d1")


async def test_a_busy_webhook_says_when():
    async with answering(b"HTTP/1.1 503 Busy\r\nRETRY-AFTER: 7\r\n\r\n") as (url, _):
        with pytest.raises(Retry) as raised:
            await post(to(url), ALERT, "d1")
        assert raised.value.outcome.after == 7


async def test_nobody_there():
    async with answering() as (url, _):
        pass
    with pytest.raises(AlertNotTaken, match="did not answer"):
        await post(to(url), ALERT, "d1")
