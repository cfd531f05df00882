"""`hf.cache`: all cached functions of a program, where their values are kept, and what is invalidated."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from holdfast.jobs.blocking import Portal, inner
from holdfast.kernel.awaits import must_await
from holdfast.kernel.errors import StoreError, UsageError
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note
from holdfast.kernel.threads import Caller, Crowd
from holdfast.store.cache_ports import Cache, SharedCache
from holdfast.views.cache_flights import Flights
from holdfast.views.cache_keys import Names, fitted
from holdfast.views.cache_memory import ENTRIES, SIZE, MemoryCache
from holdfast.views.cache_place import Place
from holdfast.views.cache_terms import terms
from holdfast.views.cached import Cached

P = ParamSpec("P")
R = TypeVar("R")
LEASE = 10.0  # seconds
WAIT = 10.0  # seconds
TIMEOUT = 60.0  # seconds
_THREADS = 32  # for plain functions that load, on each event loop


class RedisPort(SharedCache, Protocol):
    async def open(self) -> None: ...
    async def close(self) -> None: ...


class DeclareCached(Protocol):
    """A decorator that puts a cache before a function; it is awaited, also when the function is a plain one."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Cached[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Cached[P, R]: ...


class Caches:
    """What is kept here is never the only copy of anything: all of it may be lost at any time."""

    def __init__(self, redis: RedisPort | None = None) -> None:
        self.memory = MemoryCache()
        self.redis = redis
        self.flights = Flights()
        self._crowds = _crowds()
        self._places = {"memory": Place("memory", self.memory), "store": Place("store")}
        if redis is not None:
            self._places["redis"] = Place("redis", redis)
        self._named: list[Names] = []
        self._portal: Portal | None = None
        self._store: Cache | None = None

    @property
    def portal(self) -> Portal:
        assert self._portal is not None, "point_at comes first"
        return self._portal

    def threads(self) -> Caller:
        """Of their own: a program may have all threads of the loop wait for a value that one of them must load."""
        return self._crowds.get()

    def keep_in(self, store: Cache, portal: Portal) -> None:
        """The store of the program from now on. What its memory knows is of another one."""
        self._store, self._portal = store, portal
        self._places["store"].move_to(store)
        self.memory.clear()

    async def start(self) -> None:
        if self.redis is not None:
            try:
                await self.redis.open()
            except StoreError as error:  # all are misses until it is there
                note("cache.unreachable", place="redis", verb="open", error=repr(error))
        for place in self._places.values():
            await place.start()

    async def stop(self) -> None:
        await self.flights.stop()
        crowds, self._crowds = self._crowds, _crowds()
        crowds.get().close()
        for place in self._places.values():
            place.stop()
        if self.redis is not None:
            await self.redis.close()

    # --- for programs ---

    def limit_memory(self, *, entries: int = ENTRIES, size: int = SIZE) -> None:
        """Of `on="memory"`: at most so many values, of so many bytes in all. The least used goes first."""
        self.memory.bound(entries=entries, size=size)

    @must_await("hf.cache.invalidate")
    async def invalidate(self, *keys: str) -> bool:
        """Forget what is kept under these keys, wherever that is; as `invalidate` of a cached function does."""
        names = [fitted("key", key) for key in keys]
        return await self._invalidate("key", names)

    @must_await("hf.cache.invalidate_tags")
    async def invalidate_tags(self, *tags: str, tx: object | None = None) -> bool:
        """Forget every value that has one of these tags, also what is being loaded now.

        With `tx` it counts when that transaction commits, for values in the store; those in memory or on a Redis know of no
        transactions, so call it again after the commit for them. False: somewhere it could not be done yet; this process does
        it as soon as it can, and serves none of these values meanwhile.
        """
        names = [fitted("tag", tag) for tag in tags]
        if tx is not None:
            assert self._store is not None, "point_at comes first"
            await self._store.invalidate_tags(names, tx=inner(tx))
            return True
        return await self._invalidate("tag", names)

    def invalidate_tags_sync(self, *tags: str, tx: object | None = None) -> bool:
        """The same for code without an event loop."""
        return self.portal.run_with(
            tx, lambda: self.invalidate_tags(*tags, tx=tx), instead="`await hf.cache.invalidate_tags(…)`"
        )

    def invalidate_sync(self, *keys: str) -> bool:
        """`invalidate` for code without an event loop."""
        return self.portal.run(lambda: self.invalidate(*keys), instead="`await hf.cache.invalidate(…)`")

    async def _invalidate(self, kind: str, names: Sequence[str]) -> bool:
        done = []
        for place in self._places.values():
            place.kept.check_free()
        for place in self._places.values():
            self.flights.outdate(place.name, kind, frozenset(names))
            done.append(await place.invalidate(kind, names))
        return all(done)

    # --- declaring ---

    def declare(
        self,
        *,
        fresh: float,
        stale: float,
        key: str | None = None,
        tags: Sequence[str] = (),
        on: str | None = None,
        ignore: Sequence[str] = (),
        lease: float = LEASE,
        wait: float = WAIT,
        timeout: float | None = TIMEOUT,
    ) -> DeclareCached:
        agreed = terms(fresh=fresh, stale=stale, lease=lease, wait=wait, timeout=timeout)
        place = self._place(on)

        def declared(function: Callable[..., Any]) -> Cached[Any, Any]:
            if not inspectable(function):
                raise UsageError(f"@hf.cached stands on a function, not on {show(function)}.")
            names = Names(function, key=key, tags=tags, ignore=ignore)
            for other in self._named:
                names.refuse_twin(other)
            self._named.append(names)
            return Cached(function, names, agreed, place, self)

        return declared

    def _place(self, on: str | None) -> Place:
        name = ("store" if self.redis is None else "redis") if on is None else on
        if name == "redis" and self.redis is None:
            raise UsageError(
                'on="redis" needs a Redis: Holdfast(cache="redis://localhost:6379/0"), or HOLDFAST_CACHE_URL.'
            )
        if name not in self._places:
            raise UsageError(f'Values are kept on="memory", "store" or "redis"; not {show(on)}.')
        return self._places[name]


def inspectable(function: object) -> bool:
    return callable(function) and hasattr(function, "__qualname__") and not isinstance(function, type)


def _crowds() -> PerLoop[Crowd]:
    """Threads for plain functions, in each event loop."""
    return PerLoop(lambda: Crowd(_THREADS))
