"""The conformance suite's hold on Redis: a prefix for each test, and a clock of ours in place of the server's."""

from __future__ import annotations

import itertools
import os

import msgspec
import redis.asyncio

from holdfast.fleet.redis import RedisGuards
from holdfast.fleet.redis_scripts import scripts
from holdfast.store.quota import DAY, Want
from holdfast.testing.clock import ManualClock

CLOCK = """
local now = tonumber(redis.call('GET', string.match(KEYS[1], '^[^:]+:') .. 'clock'))
"""
SCRIPTS = scripts(CLOCK)
_numbers = itertools.count(1)


class Client:
    """What the suite takes for a store."""

    def __init__(self, guards, raw):
        self.guards, self._raw = guards, raw

    async def now(self):
        return float(await self._raw.get(f"{self.guards._prefix}clock"))


class RedisHarness:
    def __init__(self, server):
        self.world = ManualClock()
        self._server = server
        self._prefix = ""
        self._raw = None
        self._clients = []

    async def open(self):
        await self.close()
        self._prefix = f"t{os.getpid()}-{next(_numbers)}:"
        self._raw = redis.asyncio.Redis.from_url(self._server.url)
        await self._set_clock()
        client = await self._client()
        await self._grow_old(client.guards)
        return client

    async def _grow_old(self, guards):
        """As after a month without loss: what is not known is full."""
        await guards.take([Want("first", "", 1, 1, 1, 1)])
        memory = msgspec.msgpack.decode(await self._raw.get(f"{self._prefix}memory"))
        memory["began"] = memory["known"] = self.world.now() - 30 * DAY
        await self._raw.set(f"{self._prefix}memory", msgspec.msgpack.encode(memory))

    async def second(self, store):
        return await self._client()

    async def advance(self, store, seconds):
        self.world.advance(seconds)
        await self._set_clock()

    async def _set_clock(self):
        await self._raw.set(f"{self._prefix}clock", repr(self.world.now()))

    async def close(self):
        while self._clients:
            await self._clients.pop().guards.close()
        if self._raw is not None:
            raw, self._raw = self._raw, None
            async for key in raw.scan_iter(f"{self._prefix}*", count=1000):
                await raw.delete(key)
            await raw.aclose()

    async def _client(self):
        guards = RedisGuards(self._server.url, prefix=self._prefix)
        guards._scripts = SCRIPTS
        await guards.open()
        client = Client(guards, self._raw)
        self._clients.append(client)
        return client
