"""The body of a request, received whole before its key is asked for: in memory when small, else in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

from holdfast.web.asgi import Message, Receive

IN_MEMORY = 1024 * 1024
_CHUNK = 64 * 1024


class TooLarge(Exception):
    """There is more of it than is taken."""


class Gone(Exception):
    """The client has hung up before it had sent everything."""


class Body:
    """Written once, then read from its beginning as often as somebody asks."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self.size = 0

    @classmethod
    async def of(cls, receive: Receive, *, most: int) -> Body:
        body = cls()
        try:
            await body._fill(receive, most)
        except BaseException:
            body.close()
            raise
        return body

    async def _fill(self, receive: Receive, most: int) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            chunk = message.get("body", b"")
            self.size += len(chunk)
            if self.size > most:
                raise TooLarge
            self._write(chunk)
            more = message.get("more_body", False)

    def _write(self, chunk: bytes) -> None:
        if self._file is None and self.size > IN_MEMORY:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
            self._file.write(self._memory)
            self._memory.clear()
        if self._file is None:
            self._memory += chunk
        else:
            self._file.write(chunk)

    def whole(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        position = 0
        while chunk := self._read(position):
            position += len(chunk)
            yield chunk

    def _read(self, position: int) -> bytes:
        if self._file is None:
            return bytes(self._memory[position:])
        self._file.seek(position)
        return self._file.read(_CHUNK)

    def receiver(self, after: Receive) -> Receive:
        """What the app receives: the body anew, and then whatever the server says, such as that the client has left."""
        position, is_over = 0, False

        async def receive() -> Message:
            nonlocal position, is_over
            if is_over:
                return await after()
            chunk = self._read(position)
            position += len(chunk)
            is_over = position >= self.size
            return {"type": "http.request", "body": chunk, "more_body": not is_over}

        return receive

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
