"""A small HTTP server for the port of a worker: GET and HEAD of short answers, and nothing else. Every wait and every size has a limit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from holdfast.kernel.clock import patience
from holdfast.kernel.errors import UsageError
from holdfast.kernel.telemetry import note
from holdfast.web.asgi import App, Message

_HEAD = 8 * 1024  # bytes of the request line and the headers
_FIELDS = 64  # headers
_CONNECTIONS = 64  # at a time; who comes then is turned away
_READING, _ANSWERING, _WRITING = 5.0, 10.0, 5.0  # seconds
_LINE = re.compile(rb"([A-Z]{1,20}) (/[!-~]{0,2000}) HTTP/1\.[01]", re.ASCII)
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}):[ \t]*([\t -~\x80-\xff]*)")
_BODY = (b"content-length", b"transfer-encoding", b"expect", b"upgrade")
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
            431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable"}  # fmt: skip


class Refused(Exception):
    """This request is answered by a status alone."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Server:
    """`async with Server(app, "127.0.0.1", 8000):` serves an ASGI app. Each connection is for one request."""

    def __init__(self, app: App, host: str, port: int) -> None:
        self._app, self._host, self.port = app, host, port
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self.port, limit=_HEAD)
        except OSError as error:
            raise UsageError(
                f"Nothing can be served at {self._host}:{self.port}: {error.strerror or error}. Choose another port with --probe."
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]
        note("port.opened", address=self._host, port=self.port)

    async def stop(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            server.close()
            for writer in list(self._open):
                writer.transport.abort()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= _CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()  # nobody is there any more, or nobody reads
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer, is_head = _Answer(), False
        try:
            method, target, fields = await _read(reader)
            is_head = method == "HEAD"
            await self._ask(method, target, fields, answer)
        except Refused as refused:
            answer = _Answer(refused.status)
        except Exception as error:  # noqa: BLE001  the app is the program's
            note("port.failed", error=repr(error))
            answer = _Answer(500)
        writer.write(answer.head())
        if not is_head:
            writer.write(bytes(answer.body))
        async with patience(_WRITING):
            await writer.drain()

    async def _ask(
        self, method: str, target: bytes, fields: Sequence[tuple[bytes, bytes]], answer: _Answer
    ) -> None:
        path, _, query = target.partition(b"?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path.decode("ascii"), "raw_path": path, "query_string": query, "root_path": "",
            "headers": list(fields), "client": None, "server": (self._host, self.port),
        }  # fmt: skip

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        try:
            async with patience(_ANSWERING):
                await self._app(scope, receive, answer.take)
        except TimeoutError:
            raise Refused(503) from None


async def _read(reader: asyncio.StreamReader) -> tuple[str, bytes, list[tuple[bytes, bytes]]]:
    """Method, target and headers. Whatever is not plain is refused: nobody has to guess where a request ends."""
    try:
        async with patience(_READING):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refused(431) from None
    except TimeoutError:
        raise Refused(408) from None
    first, *lines = head[:-4].split(b"\r\n")
    if (asked := _LINE.fullmatch(first)) is None:
        raise Refused(400)
    if len(lines) > _FIELDS:
        raise Refused(431)
    fields = []
    for line in lines:
        if (field := _FIELD.fullmatch(line)) is None or field[1].lower() in _BODY:
            raise Refused(400)
        fields.append((field[1].lower(), field[2].strip()))
    method = asked[1].decode()
    if method not in ("GET", "HEAD"):
        raise Refused(405)
    return method, asked[2], fields


class _Answer:
    """What the app sends, whole."""

    def __init__(self, status: int = 500) -> None:
        self.status, self.body = status, bytearray()
        self._fields: list[tuple[bytes, bytes]] = [(b"content-type", b"text/plain; charset=utf-8")]
        if status >= 400:
            self.body += f"{status} {_REASONS.get(status, '')}\n".encode()

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._fields = message["status"], list(message.get("headers", ()))
            self.body.clear()
        else:
            self.body += message.get("body", b"")

    def head(self) -> bytes:
        fields = [
            (name, value)
            for name, value in self._fields
            if name.lower() not in (b"content-length", b"connection")
        ]
        fields += [(b"content-length", b"%d" % len(self.body)), (b"connection", b"close")]
        fields += [(b"x-content-type-options", b"nosniff")]
        lines = [f"HTTP/1.1 {self.status} {_REASONS.get(self.status, '')}".encode()]
        return b"\r\n".join([*lines, *(name + b": " + value for name, value in fields), b"", b""])


def address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8000`, `[::1]:8000`, or `:8000`, which is on loopback, too."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    number = -1
    with suppress(ValueError):
        number = int(port)
    if not colon or not 0 <= number <= 65_535:
        raise UsageError(f"An address is written 127.0.0.1:8000; {text!r} is not.")
    return host, number
