"""A virus scanner: clamd by INSTREAM, or the built-in checker, which says that it is none."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from admissions.outside.errors import Passing, Refused

_CHUNK = 64 * 1024
_LONGEST = 10_000  # bytes of an answer
_END = b"\x00\x00\x00\x00"
BUILT_IN = "built-in checker (no virus scanner)"
# The test file of the antivirus makers, in two parts so that no scanner takes this source for it.
_TEST_FILE = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + b"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
_SUSPECT = (b"/JavaScript", b"/Launch", b"/EmbeddedFile")  # parts of a PDF that a document does not need


@dataclass(frozen=True)
class Scan:
    """`found` is what was found; nothing: it is clean."""

    scanner: str
    found: str = ""


class Scanner(Protocol):
    async def scan(self, content: AsyncIterator[bytes]) -> Scan: ...


class Clamd:
    """`host:port`, or the path of its socket."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def scan(self, content: AsyncIterator[bytes]) -> Scan:
        try:
            line = await self._line()
        except OSError as error:
            raise Passing(f"clamd cannot be reached: {error}") from None
        with line:
            # It may answer that the file is too large, and hang up while we are sending: what it said is there to be read.
            with suppress(ConnectionError):
                await _sent(line, content)
            try:
                answer = await _heard(line)
            except OSError as error:
                raise Passing(f"clamd has hung up: {error}") from None
        return _read(answer.rstrip(b"\0").decode("utf-8", "replace"))

    async def _line(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        if self._address.startswith("/"):
            return await _connected(socket.AF_UNIX, self._address)
        host, _, port = self._address.rpartition(":")
        [found, *_] = await loop.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        return await _connected(found[0], found[4])


async def _connected(family: int, place: Any) -> socket.socket:
    line = socket.socket(family)
    line.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(line, place)
    except BaseException:
        line.close()
        raise
    return line


async def _sent(line: socket.socket, content: AsyncIterator[bytes]) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(line, b"zINSTREAM\0")
    async for piece in content:
        for begin in range(0, len(piece), _CHUNK):
            part = piece[begin : begin + _CHUNK]
            await loop.sock_sendall(line, struct.pack("!I", len(part)) + part)
    await loop.sock_sendall(line, _END)


async def _heard(line: socket.socket) -> bytes:
    loop, answer = asyncio.get_running_loop(), b""
    while not answer.endswith(b"\0") and len(answer) < _LONGEST:
        part = await loop.sock_recv(line, 4096)
        if not part:
            raise ConnectionResetError("it said nothing to the end")
        answer += part
    return answer


def _read(answer: str) -> Scan:
    name = "clamd"
    if answer.endswith(" FOUND"):
        return Scan(name, answer.removeprefix("stream: ").removesuffix(" FOUND"))
    if answer.endswith("OK"):
        return Scan(name)
    if "size limit exceeded" in answer:
        raise Refused(f"The file is larger than clamd takes: {answer}")
    raise Passing(f"clamd answers {answer!r}")


class BuiltIn:
    """Finds the test file of the antivirus makers, and PDFs with scripts. For trying out."""

    async def scan(self, content: AsyncIterator[bytes]) -> Scan:
        whole = b"".join([piece async for piece in content])
        if _TEST_FILE in whole:
            return Scan(BUILT_IN, "Eicar-Test-Signature")
        for part in _SUSPECT:
            if whole.startswith(b"%PDF") and part in whole:
                return Scan(BUILT_IN, f"PDF with {part.decode().lstrip('/')}")
        return Scan(BUILT_IN)


class Switched:
    """The one that is configured; the built-in one while the configured one is switched off. Each result says which it was."""

    def __init__(self, usual: Scanner, is_on: Callable[[], Awaitable[bool]]) -> None:
        self._usual, self._is_on = usual, is_on

    async def scan(self, content: AsyncIterator[bytes]) -> Scan:
        return await (self._usual if await self._is_on() else BuiltIn()).scan(content)


def scanner_of(address: str | None) -> Scanner:
    return BuiltIn() if address is None else Clamd(address)
