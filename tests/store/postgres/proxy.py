"""A wire between client and server that can be cut at the worst moment."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Wire:
    """Passes bytes both ways. Armed, it lets the next request through, keeps the answer back and hangs up."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._armed: list[bytes] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.cuts = 0
        self.last_cut = False  # nobody gets through after a cut
        self._dead = False
        self.url = ""

    def lose_answer_to(self, *words: bytes) -> None:
        """Lose the answer to the next request that has these bytes; one request for each word."""
        self._armed = list(words)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._dead:
            writer.transport.abort()
            return
        up_reader, up_writer = await asyncio.open_connection(self._parts.hostname, self._parts.port)
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
        while data := await reader.read(65536):
            if prepared or (self._armed and self._armed[0] in data):
                # A statement with parameters is sent first and executed by the request after it.
                prepared = not prepared and data[:1] == b"P"
                if not prepared:
                    self._armed.pop(0)
                    self.cuts += 1
                    cut.set()
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _down(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            if cut.is_set():  # the server has answered, so what it did is done; nobody hears of it
                self._dead = self.last_cut
                for each in self._writers if self._dead else [writer]:
                    each.transport.abort()
                return
            writer.write(data)
            await writer.drain()
        writer.close()

    @asynccontextmanager
    async def open(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"postgresql://postgres@127.0.0.1:{port}{self._parts.path}"
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0)
