"""Where values are kept, asked so that no trouble of it reaches a caller: what fails, or takes too long, is a miss."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from holdfast.kernel.clock import monotonic, patience, recover
from holdfast.kernel.errors import StoreFull, StoreReadOnly, StoreUnavailable
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import cancel, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.cache_ports import SharedCache
from holdfast.store.cache_records import Entry, Load, Why
from holdfast.views.cache_keys import Wanted
from holdfast.views.cache_looks import Looks
from holdfast.views.cache_rest import PATIENCE, REST, Rest

T = TypeVar("T")
_PART = 500  # names in one invalidation
_MOST_OWED = 100_000  # names that are invalidated later; the oldest are given up


class Place:
    """One of memory, store and Redis. None for an answer: there was none, so whoever asked goes on without it."""

    def __init__(self, name: str, kept: SharedCache | None = None) -> None:
        self.name = name
        self._kept = kept
        self._looks = PerLoop(lambda: Looks(self._get, f"cache:{self.name}"))
        self._rests = PerLoop(Rest)
        # Invalidations that could not be made yet. Until they are, this process takes nothing of these names from here.
        self._owed: dict[str, dict[str, int]] = {"key": {}, "tag": {}}
        self._debts = 0  # a name that is owed again while it is paid stays owed
        self._is_in_debt = False  # somebody could not pay, and tries again
        self._paying: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    def move_to(self, kept: SharedCache) -> None:
        """Another database takes its place."""
        self._kept, self._rests = kept, PerLoop(Rest)
        self._owed = {"key": {}, "tag": {}}

    @property
    def kept(self) -> SharedCache:
        assert self._kept is not None, "the place is not there yet"
        return self._kept

    @property
    def is_local(self) -> bool:
        return self.name == "memory"

    # --- reading ---

    async def look(self, wanted: Wanted) -> Entry | None:
        """What may be served now."""
        if self.is_local:
            return (await self.kept.get((wanted.key,)))[0]
        if not self._may_ask(wanted):
            return None
        asked = monotonic()
        found = await self._answer("look", self._looks.get().look(wanted.key))
        return None if found is None else _aged(found, monotonic() - asked)

    def _may_ask(self, wanted: Wanted) -> bool:
        if self._is_owed(wanted):
            if self._is_in_debt:  # whoever has tried may be on a loop that gets no answer, or has ended
                self._pay_soon()
            return False
        return self._rests.get().is_over()

    async def _get(self, keys: Sequence[str]) -> list[Entry]:
        """In time: others wait behind this question."""
        try:
            async with patience(PATIENCE):
                return await self.kept.get(keys)
        except TimeoutError as error:
            raise StoreUnavailable(f"no answer within {PATIENCE:g} s") from error

    # --- loading ---

    async def begin(self, wanted: Wanted, *, lease: float, why: Why) -> Load | Entry | None:
        if not self._may_ask(wanted):
            return None
        work = self.kept.begin(wanted.key, tags=wanted.tags, lease=lease, why=why)
        return await self._answer("begin", work)

    async def renew(self, load: Load, *, lease: float) -> bool | None:
        return await self._answer("renew", self.kept.renew(load, lease=lease))

    async def put(self, load: Load, value: str, *, fresh: float, stale: float) -> bool | None:
        return await self._answer("put", self.kept.put(load, value, fresh=fresh, stale=stale))

    async def abandon(self, load: Load, *, rest: float) -> bool | None:
        return await self._answer("abandon", self.kept.abandon(load, rest=rest))

    # --- invalidating ---

    async def invalidate(self, kind: str, names: Collection[str]) -> bool:
        """Keys or tags. False: it could not be made yet; this process makes it as soon as it can."""
        # From now on nothing of these is taken from here, also while this is under way.
        self._owe(kind, names)
        is_done = False
        try:
            is_done = await self._pay()
        finally:
            if not is_done:  # also when whoever waits was cancelled
                self._owe(kind, names)
                self._is_in_debt = True
                self._pay_soon()
        return is_done

    def _owe(self, kind: str, names: Collection[str]) -> None:
        owed = self._owed[kind]
        self._debts += 1
        owed |= dict.fromkeys(names, self._debts)
        if (number := len(owed) - _MOST_OWED) > 0:
            for name in tuple(owed)[:number]:
                del owed[name]
            note("cache.invalidation_lost", place=self.name, number=number)

    async def _pay(self) -> bool:
        for kind, owed in tuple(self._owed.items()):
            while part := dict(islice(owed.items(), _PART)):
                if not self.is_local and not self._rests.get().is_over():
                    return False
                names = tuple(part)
                work = self.kept.invalidate(names) if kind == "key" else self.kept.invalidate_tags(names)
                if not await self._answer("invalidate", _done(work)):
                    return False
                for name, debt in part.items():
                    if owed.get(name) == debt:
                        del owed[name]
        self._is_in_debt = False
        return True

    def _pay_soon(self) -> None:
        here = asyncio.get_running_loop()
        if (paying := self._paying.get(here)) is None or paying.done():
            self._paying = {loop: each for loop, each in self._paying.items() if not loop.is_closed()}
            self._paying[here] = spawn(self._pay_later(), name=f"cache:{self.name}:owed")

    async def _pay_later(self) -> None:
        while not await self._pay():
            await recover(jittered(REST))

    def _is_owed(self, wanted: Wanted) -> bool:
        keys, tags = self._owed["key"], self._owed["tag"]
        return bool(keys or tags) and (wanted.key in keys or any(tag in tags for tag in wanted.tags))

    def stop(self) -> None:
        """What is still owed stays so: it is told, and the next opening begins with it."""
        paying, self._paying = self._paying, {}
        if number := sum(map(len, self._owed.values())):
            note("cache.invalidation_owed", place=self.name, number=number)
        for loop, each in paying.items():
            if not loop.is_closed():
                cancel(each)

    async def start(self) -> None:
        self._rests.get().end()
        if not await self._pay():
            self._is_in_debt = True
            self._pay_soon()

    # --- trouble ---

    async def _answer(self, verb: str, work: Awaitable[T]) -> T | None:
        """In a bounded time, or none."""
        if self.is_local:
            return await work
        rest = self._rests.get()
        try:
            async with patience(PATIENCE):
                answer = await work
        except Exception as error:  # noqa: BLE001  whatever is wrong with a cache, its callers go on without it
            if not _may_still_be_asked(verb, error):
                rest.begin()
            note("cache.unreachable", place=self.name, verb=verb, error=repr(error))
            return None
        rest.end()
        return answer


def _may_still_be_asked(verb: str, error: Exception) -> bool:
    """One that keeps nothing new, or whose writers wait for someone's transaction, can be read."""
    return verb != "look" and isinstance(error, StoreFull | StoreReadOnly | TimeoutError)


async def _done(work: Awaitable[None]) -> bool:
    await work
    return True


def _aged(entry: Entry, seconds: float) -> Entry:
    """As it is after the way here: an answer that took long may have come too late."""
    if not entry.value or entry.stale_for > seconds:
        return entry
    return msgspec.structs.replace(entry, value=None, age=0.0, fresh_for=0.0, stale_for=0.0)
