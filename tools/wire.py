"""A wire between client and server that can be cut at the worst moment, slowed down, or go silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Wire:
    """Passes bytes both ways. Armed, it lets the next request through, keeps the answer back and hangs up."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._armed: list[bytes] = []
        self._refused: list[bytes] = []
        self._swallowed: list[bytes] = []
        self._after = b""
        self._writers: list[asyncio.StreamWriter] = []
        self.cuts = 0
        self.connections = 0
        self.delay = 0.0  # seconds by which every request arrives later
        self.last_cut = False  # nobody gets through after a cut
        self._dead = False
        self._flows = asyncio.Event()
        self._flows.set()
        self.url = ""

    def lose_answer_to(self, *words: bytes, after: bytes = b"") -> None:
        """Lose the answer to the next request that has these bytes; one request for each word.

        `after`: only on a connection over which this has gone before.
        """
        self._armed, self._after = list(words), after

    def lose_request(self, *words: bytes, after: bytes = b"") -> None:
        """Hang up instead of passing on the next request that has these bytes; one request for each word."""
        self._refused, self._after = list(words), after

    def swallow(self, *words: bytes) -> None:
        """From the next request on that has these bytes, nothing arrives by its connection, which stays open; one for each word."""
        self._swallowed = list(words)

    def hang_up(self) -> None:
        """End every connection, in the middle of whatever it carries."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def lead_to(self, url: str) -> None:
        """New connections go there; those that are there stay where they are."""
        self._parts = urlsplit(url)

    def fall_silent(self) -> None:
        """Nothing gets through, and nobody is told: no end of a connection either."""
        self._flows.clear()

    def flow(self) -> None:
        """What was held back arrives now."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._dead:
            writer.transport.abort()
            return
        await self._flows.wait()
        try:
            up_reader, up_writer = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        except OSError:  # the server is not there: so is nobody at this end
            writer.transport.abort()
            return
        self._writers += [writer, up_writer]
        cut = asyncio.Event()
        try:
            await asyncio.gather(
                self._up(reader, up_writer, cut), self._down(up_reader, writer, cut), return_exceptions=True
            )
        finally:
            writer.close()
            up_writer.close()

    async def _up(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        prepared = False
        behind = False  # whether what was waited for has gone over this connection
        while data := await reader.read(65536):
            behind = behind or (self._after != b"" and self._after in data)
            meant = behind or self._after == b""  # it is one of those to be cut
            if self._swallowed and self._swallowed[0] in data:
                self._swallowed.pop(0)
                self.cuts += 1
                while await reader.read(65536):
                    pass
                break
            if meant and self._refused and self._refused[0] in data:
                self._refused.pop(0)
                self.cuts += 1
                writer.transport.abort()
                return
            if prepared or (meant and self._armed and self._armed[0] in data):
                # A statement with parameters is sent first and executed by the request after it.
                prepared = not prepared and data[:1] == b"P"
                if not prepared and self._armed:  # it may have been disarmed in between
                    self._armed.pop(0)
                    self.cuts += 1
                    cut.set()
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        await self._flows.wait()
        writer.close()

    async def _down(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            if cut.is_set():  # the server has answered, so what it did is done; nobody hears of it
                self._dead = self.last_cut
                for each in self._writers if self._dead else [writer]:
                    each.transport.abort()
                return
            writer.write(data)
            await writer.drain()
        await self._flows.wait()
        writer.close()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Wire]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}{self._parts.path}"
        try:
            yield self
        finally:
            self._flows.set()
            server.close()
            self.hang_up()
            await asyncio.sleep(0)
