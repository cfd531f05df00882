"""Cached functions of simulated programs: what they load changes outside, and whoever changes it invalidates it."""

from __future__ import annotations

import random as chance
from collections import Counter
from functools import partial
from typing import Any

import msgspec

from holdfast.jobs.blocking import Portal
from holdfast.kernel.clock import sleep
from holdfast.kernel.randomness import jittered, random
from holdfast.testing.simulation.events.spec import CacheSpec
from holdfast.testing.simulation.events.troubles import TROUBLE
from holdfast.testing.simulation.fleet import Fleet, Life, watched
from holdfast.testing.simulation.plan import LEASE
from holdfast.views.cache import Caches

READ, LOAD, INVALIDATE, KEPT = "cache read", "cache load", "cache invalidate", "kept in memory"
KEYS = ("x", "y")
WAIT = 20.0  # seconds for the load of another process, more than any load takes
_CHANGES = 1.5  # seconds, about, between two changes on one node
TAIL = 20.0  # seconds after the heal for which it is still read


class LoadFailed(Exception):
    """The function behind the cache failed."""


class Value(msgspec.Struct, frozen=True):
    load: int  # the number of the load that brought it
    version: int  # of what was loaded, when that began


class Origin:
    """What is loaded. It lives outside all processes."""

    def __init__(self, fleet: Fleet) -> None:
        self.versions: Counter[str] = Counter()
        self.loads = 0
        self.chance = chance.Random(f"origin:{fleet.plan.seed}")


class Caching:
    """Of one process."""

    def __init__(self, life: Life, spec: CacheSpec, portal: Portal) -> None:
        self._life, self._spec = life, spec
        self._origin: Origin = life.fleet.provider.origin
        self.caches = Caches()
        self.caches.keep_in(life.store.cache, portal)
        self._watch_memory()
        declare = self.caches.declare(
            fresh=spec.fresh,
            stale=spec.stale,
            key="item:{name}",
            tags=("tag:{name}",),
            on=spec.on,
            lease=LEASE,
            wait=WAIT,
        )
        self.cached = declare(self._declared())

    def _watch_memory(self) -> None:
        """The ledger tells what is kept in the store, and when; this does of what is kept in memory."""
        history, put = self._life.history, self.caches.memory.put

        async def watched_put(load: Any, value: str, **terms: float) -> bool:
            history.event(KEPT, msgspec.json.decode(value, type=Value).load)
            return await put(load, value, **terms)

        self.caches.memory.put = watched_put  # type: ignore[method-assign]

    def _declared(self) -> Any:
        async def item(name: str) -> Value:
            return await self._load(name)

        return item

    async def _load(self, name: str) -> Value:
        origin, history = self._origin, self._life.history
        origin.loads += 1
        value = Value(origin.loads, origin.versions[name])
        told = history.ask(LOAD, (name, value.load, value.version))
        try:
            await sleep(self._spec.load * origin.chance.uniform(0.5, 1.5))
            self._fail_sometimes(name)
        except Exception as error:
            history.fail(told, error)
            raise
        except BaseException:
            if self._life.process.alive:
                history.fail(told, LoadFailed("cut off"))
            raise
        history.answer(told, value)
        return value

    def _fail_sometimes(self, name: str) -> None:
        if not self._life.fleet.healed and self._origin.chance.random() < self._spec.fails:
            raise LoadFailed(name)

    async def read(self, name: str) -> None:
        try:
            await self._life.history.call(READ, name, partial(self.cached, name))
        except (LoadFailed, *TROUBLE):
            return  # the checkers have heard it

    async def change(self, name: str) -> None:
        """Once it is changed, it is invalidated: by its key or by its tag."""
        self._origin.versions[name] += 1
        version = self._origin.versions[name]
        by_tag = random() < 0.5
        work = (
            partial(self.caches.invalidate_tags, f"tag:{name}")
            if by_tag
            else partial(self.cached.invalidate, name)
        )
        try:
            await self._life.history.call(INVALIDATE, (name, version), work)
        except TROUBLE:
            return


async def read_often(life: Life) -> None:
    """The program of readers."""
    caching: Caching | None = life.app.caching
    if caching is None:
        return
    spec = life.fleet.plan.stream.cache  # type: ignore[union-attr]
    assert spec is not None
    while not (life.process.draining or _is_over(life)):
        await sleep(jittered(spec.gap))
        name = KEYS[int(random() * len(KEYS))]
        for _ in range(spec.crowd):
            life.process.start(watched(life, caching.read, name), "read")


async def change_often(life: Life) -> None:
    """The program of writers."""
    caching: Caching | None = life.app.caching
    while caching is not None and not (life.process.draining or _is_over(life)):
        await sleep(jittered(_CHANGES * len(life.fleet.nodes)))
        await caching.change(KEYS[int(random() * len(KEYS))])


def _is_over(life: Life) -> bool:
    return life.fleet.healed and life.fleet.loop.time() > life.fleet.healed_at + TAIL
