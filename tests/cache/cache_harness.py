"""The conformance suite's hold on what is no store: the memory of a process, and a Redis whose clock is ours."""

from __future__ import annotations

from redis_shared import RedisHarness

from holdfast.fleet.redis_cache import RedisCache
from holdfast.testing.clock import ManualClock
from holdfast.views.cache_memory import MemoryCache


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


class RedisCacheHarness(RedisHarness):
    def __init__(self, server):
        super().__init__(server, RedisCache, "cache")
