"""The provider: takes so many calls a second, answers 429 above that, and 500 while it is down."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LENGTH = 40.0  # seconds
CAPACITY = 40  # calls a second
DOWN = (18.0, 26.0)  # from, until


class Provider:
    def __init__(self, *, down: tuple[float, float] = DOWN, capacity: int = CAPACITY) -> None:
        self._down, self._capacity = down, capacity
        self.calls: list[tuple[float, int]] = []  # when, and how it was answered
        self.port = 0
        self._began = time.monotonic()
        self._taken: deque[float] = deque()

    def begin(self) -> None:
        """Its time begins now."""
        self._began = time.monotonic()

    def time(self) -> float:
        return time.monotonic() - self._began

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.begin()
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            status = self._status(self.time())
            self.calls.append((round(self.time(), 3), status))
            writer.write(f"{status}\n".encode())
            await writer.drain()
        writer.close()

    def _status(self, now: float) -> int:
        if self._down[0] <= now < self._down[1]:
            return 500
        while self._taken and self._taken[0] < now - 1:
            self._taken.popleft()
        if len(self._taken) >= self._capacity:
            return 429
        self._taken.append(now)
        return 200
