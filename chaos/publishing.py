"""A client of the provider, as a program would have one: it publishes, and looks up by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

from chaos import settings
from holdfast import CannotTell, Found, NotFound


class Refused(Exception):
    """The provider says that it did nothing."""


class Client:
    def __init__(self, where: Path) -> None:
        self._port = int(settings.address_file(where).read_text())

    async def publish(self, name: str) -> str:
        status = await self._ask("POST", name)
        if status == 422:
            raise Refused(name)
        if status != 201:
            raise ConnectionError(f"the provider answered {status}")
        return name

    async def is_published(self, name: str) -> bool | None:
        """None: it did not say."""
        return {200: True, 404: False}.get(await self._ask("GET", name))

    async def find(self, name: str) -> object:
        match await self.is_published(name):
            case True:
                return Found(name)
            case False:
                return NotFound
            case _:
                return CannotTell

    async def _ask(self, method: str, name: str) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(f"{method} /{name} HTTP/1.1\r\nHost: provider\r\n\r\n".encode())
            await writer.drain()
            head = (await reader.readline()).split()
        finally:
            writer.close()
        if len(head) < 2:
            raise ConnectionResetError("the provider hung up without an answer")
        return int(head[1])
