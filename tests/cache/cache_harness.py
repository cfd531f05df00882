"""The conformance suite's hold on what is no store: the memory of a process, and a Redis whose clock is ours."""

from __future__ import annotations

import itertools
import os

import redis.asyncio

from holdfast.fleet.redis_cache import RedisCache
from holdfast.fleet.redis_scripts import scripts
from holdfast.testing.clock import ManualClock
from holdfast.views.cache_memory import MemoryCache

CLOCK = """
local now = tonumber(redis.call('GET', string.match(KEYS[1], '^[^:]+:') .. 'clock'))
"""
SCRIPTS = scripts(CLOCK)
_numbers = itertools.count(1)


class Client:
    """What the suite takes for a store."""

    def __init__(self, cache, now):
        self.cache, self._now = cache, now

    async def now(self):
        return self._now()


class MemoryHarness:
    """A second client is another event loop's: the memory is the same."""

    def __init__(self):
        self.world = ManualClock()

    async def open(self):
        self.world.advance(1000)
        return Client(MemoryCache(), self.world.monotonic)

    async def second(self, store):
        return store

    async def advance(self, store, seconds):
        self.world.advance(seconds)

    async def close(self):
        pass


class RedisCacheHarness:
    """A prefix for each test, and a clock of ours in place of the server's."""

    def __init__(self, server):
        self.world = ManualClock()
        self._server = server
        self.prefix, self.raw = "", None
        self._clients = []

    async def open(self):
        await self.close()
        self.prefix = f"c{os.getpid()}-{next(_numbers)}:"
        self.raw = redis.asyncio.Redis.from_url(self._server.url)
        await self._set_clock()
        return await self._client()

    async def second(self, store):
        return await self._client()

    async def advance(self, store, seconds):
        self.world.advance(seconds)
        await self._set_clock()

    async def _set_clock(self):
        await self.raw.set(f"{self.prefix}clock", repr(self.world.now()))

    async def close(self):
        while self._clients:
            await self._clients.pop().cache.close()
        if self.raw is not None:
            raw, self.raw = self.raw, None
            async for key in raw.scan_iter(f"{self.prefix}*", count=1000):
                await raw.delete(key)
            await raw.aclose()

    async def _client(self):
        cache = RedisCache(self._server.url, prefix=self.prefix)
        cache._scripts = SCRIPTS
        await cache.open()
        client = Client(cache, self.world.now)
        self._clients.append(client)
        return client
