"""The conformance suite's hold on what is kept on a Redis: a prefix for each test, and a clock of ours in place of the server's."""

from __future__ import annotations

import itertools
import os

import redis.asyncio

from holdfast.fleet.redis_scripts import scripts
from holdfast.testing.clock import ManualClock

CLOCK = """
local now = tonumber(redis.call('GET', string.match(KEYS[1], '^[^:]+:') .. 'clock'))
"""
SCRIPTS = scripts(CLOCK)
_numbers = itertools.count(1)


class Client:
    """What the suite takes for a store: the thing under the name by which a store has it, and a clock."""

    def __init__(self, name, thing, now):
        setattr(self, name, thing)
        self.thing, self._now = thing, now

    async def now(self):
        return self._now()


class RedisHarness:
    """`make` is the class to be tested, and `name` what a store calls it."""

    def __init__(self, server, make, name):
        self.world = ManualClock()
        self._server, self._make, self._name = server, make, name
        self.prefix, self.raw = "", None
        self._clients = []

    async def open(self):
        await self.close()
        self.prefix = f"{self._name}{os.getpid()}-{next(_numbers)}:"
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
            await self._clients.pop().thing.close()
        if self.raw is not None:
            raw, self.raw = self.raw, None
            async for key in raw.scan_iter(f"{self.prefix}*", count=1000):
                await raw.delete(key)
            await raw.aclose()

    async def _client(self):
        thing = self._make(self._server.url, prefix=self.prefix)
        thing._scripts = SCRIPTS
        await thing.open()
        client = Client(self._name, thing, self.world.now)
        self._clients.append(client)
        return client
