"""The suite's hold on each broker: a topic for each test, and a wire and a server that a test may break."""

from __future__ import annotations

import itertools
import os
from urllib.parse import urlsplit

from holdfast.kernel.reality import REALITY
from tools.wire import Wire

_numbers = itertools.count(1)


class ServerHarness:
    """On a server that all tests share."""

    world = REALITY
    by_partition = False
    largest = None
    keeps_acks = True

    def __init__(self, server, transport, options=""):
        self._server, self._transport, self._options = server, transport, options
        self._topic = ""
        self._clients = []

    async def open(self):
        await self.close()
        self._topic = f"t{os.getpid()}-{next(_numbers)}"
        return await self._client()

    async def second(self, transport):
        return await self._client()

    async def _client(self, **settings):
        client = self._transport(self.url_with(**settings))
        await client.open()
        self._clients.append(client)
        return client

    def url_with(self, **settings):
        query = "&".join(f"{name}={value}" for name, value in {"topic": self._topic, **settings}.items())
        return f"{self._server.url}?{query}"

    async def close(self):
        while self._clients:
            await self._clients.pop().close()


class BreakableHarness(ServerHarness):
    """On a server of its own, behind a wire that can be cut. It starts anew for each test."""

    def __init__(self, make_server, transport):
        super().__init__(None, transport)
        self._make_server = make_server
        self._wire = self._opening = None

    async def open(self):
        self._server = self._make_server()
        self._wire = Wire(self._server.url)
        self._opening = self._wire.open()
        await self._opening.__aenter__()
        self._topic = "breakable"
        return await self._client()

    def url_with(self, **settings):
        port = urlsplit(self._wire.url).port
        return super().url_with(**settings).replace(f":{self._server.port}", f":{port}")

    @property
    def url(self):
        return self.url_with()

    async def hasty(self, transport):
        return await self._client(timeout=0.5)

    async def freeze(self):
        self._server.freeze()

    async def thaw(self):
        self._server.thaw()

    async def kill(self):
        self._server.kill()

    async def start(self):
        self._server.start()

    async def cut(self):
        self._wire.hang_up()

    async def close(self):
        if self._server is None:
            return
        self._server.thaw()
        await super().close()
        await self._opening.__aexit__(None, None, None)
        self._server.stop()
