"""The conformance suite's hold on sessions in a Redis whose clock is ours."""

from __future__ import annotations

import itertools
import os

import redis.asyncio

from holdfast.fleet.redis_scripts import scripts
from holdfast.fleet.redis_visits import RedisVisits
from holdfast.testing.clock import ManualClock

CLOCK = """
local now = tonumber(redis.call('GET', string.match(KEYS[1], '^[^:]+:') .. 'clock'))
"""
_numbers = itertools.count(1)


class Client:
    """What the suite takes for a store."""

    def __init__(self, visits, now):
        self.visits, self._now = visits, now

    async def now(self):
        return self._now()


class RedisVisitsHarness:
    """A prefix for each test, and a clock of ours in place of the server's."""

    def __init__(self, server):
        self.world = ManualClock()
        self._server = server
        self.prefix, self.raw = "", None
        self._clients = []

    async def open(self):
        await self.close()
        self.prefix = f"v{os.getpid()}-{next(_numbers)}:"
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
            await self._clients.pop().visits.close()
        if self.raw is not None:
            raw, self.raw = self.raw, None
            async for key in raw.scan_iter(f"{self.prefix}*", count=1000):
                await raw.delete(key)
            await raw.aclose()

    async def _client(self):
        visits = RedisVisits(self._server.url, prefix=self.prefix)
        visits._scripts = scripts(CLOCK)
        await visits.open()
        client = Client(visits, self.world.now)
        self._clients.append(client)
        return client
