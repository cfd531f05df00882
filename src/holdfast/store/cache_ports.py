"""What keeps values for cached functions can do: a store, a Redis, or the memory of a process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.cache_records import CacheRecord, Entry, Load, Why


class SharedCache(Protocol):
    """One value for each key, and at most one who loads it. All times are by the clock of whoever keeps them.

    A value counts while its tags have the generations that they had when its load began: so whatever was loaded before an
    invalidation is never served after it, whenever it is written.
    """

    def check_free(self) -> None:
        """Raise when whoever asks is inside a transaction of its own, and would wait for itself."""

    async def get(self, keys: Sequence[str]) -> list[Entry]:
        """What is kept under these keys, in their order."""

    async def begin(
        self, key: str, *, tags: Sequence[str], lease: float, why: Why = Why.MISSING
    ) -> Load | Entry:
        """The right to load it; or what is there, when that is fresh, another loads it, or a refresh would be too soon.

        A forced load is always granted, and takes the right from whoever has it.
        """

    async def renew(self, load: Load, *, lease: float) -> bool:
        """Hold on for another lease. False: it was lost."""

    async def put(self, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        """Keep the value, fresh for so many seconds from now, and to be served at all for `stale` seconds from now.

        False: the lease has ended, another has the right, or it was invalidated since; nothing was kept.
        """

    async def abandon(self, load: Load, *, rest: float = 0.0) -> bool:
        """It could not be loaded: others may. For `rest` seconds nobody refreshes it while an old value is served."""

    async def invalidate(self, keys: Sequence[str]) -> None:
        """Forget these values, and refuse what is being loaded for them now."""

    async def invalidate_tags(self, tags: Sequence[str], *, tx: object | None = None) -> None:
        """The same for every key with one of these tags; when the transaction commits, if one is given."""


class Cache(SharedCache, Protocol):
    """And what a database must be told to forget."""

    async def find(self, *, after: str | None = None, limit: int = 100) -> list[CacheRecord]:
        """Keys that have a value or are being loaded, in order. `after`: only keys behind this one."""

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget what may not be served any more, and tags that nothing has."""
