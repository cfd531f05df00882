"""Values in the memory of this process: so many of them, and of so many bytes, at most. The least used goes first."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.kernel.clock import monotonic
from holdfast.kernel.loops import new_lock
from holdfast.kernel.names import check_int
from holdfast.store.cache_records import Entry, Load, Why
from holdfast.store.edge import checked_cache

ENTRIES = 10_000
SIZE = 64 * 1024 * 1024  # bytes
_PASSED = 100  # rows that are being loaded, passed over at a time for one that may go
_ROW = 500  # bytes of a row beside its key and value, about


@dataclass(slots=True)
class Row:
    key: str
    size: int
    value: str | None = None
    written: float = 0.0
    fresh_until: float = 0.0
    stale_until: float = 0.0
    token: int | None = None
    lease_until: float = 0.0
    rest_until: float = 0.0
    tags: set[str] = field(default_factory=set)  # of the value, and of the load under way


@checked_cache
class MemoryCache:
    """By the monotonic clock: nobody who sets the wall clock makes anything older or younger. Any thread may ask."""

    def __init__(self, *, entries: int = ENTRIES, size: int = SIZE) -> None:
        self._lock = new_lock()
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._tagged: dict[str, set[str]] = {}
        self._token = 0
        self.size = 0  # bytes that are in use
        self.bound(entries=entries, size=size)

    def bound(self, *, entries: int, size: int) -> None:
        self._most = check_int("entries", entries, 1, 2**31)
        self._largest = check_int("size", size, 1, 2**50)
        with self._lock:
            self._make_room()

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        with self._lock:
            for key in tuple(self._rows):
                self._forget(key)

    def check_free(self) -> None:
        """Nobody waits for anybody here."""

    async def get(self, keys: Sequence[str]) -> list[Entry]:
        with self._lock:
            return [self._entry(key) for key in keys]

    async def begin(
        self, key: str, *, tags: Sequence[str], lease: float, why: Why = Why.MISSING
    ) -> Load | Entry:
        with self._lock:
            entry, row = self._entry(key), self._rows.get(key) or self._new(key)
            is_of_future = row.lease_until > monotonic() + lease
            is_loading = entry.is_loading and not is_of_future
            if why is not Why.FORCED and (
                entry.is_fresh or is_loading or (why is Why.STALE and entry.is_resting)
            ):
                return entry
            self._token += 1
            row.token, row.lease_until = self._token, monotonic() + lease
            self._tag(row, tags)
            self._make_room()
            return Load(key, self._token, row.lease_until, tuple(tags), (0,) * len(tags))

    async def renew(self, load: Load, *, lease: float) -> bool:
        with self._lock:
            row = self._held(load)
            if row is None:
                return False
            row.lease_until = monotonic() + lease
            return True

    async def put(self, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        with self._lock:
            row = self._held(load)
            if row is None:
                return False
            now, before = monotonic(), row.size
            row.value, row.written, row.token, row.rest_until = value, now, None, 0.0
            row.fresh_until, row.stale_until = now + min(fresh, stale), now + stale
            row.size = _size(row.key) + sys.getsizeof(value)
            self.size += row.size - before
            self._untag(row, row.tags - set(load.tags))
            self._rows.move_to_end(row.key)
            if row.size > self._largest:  # it alone, or all others would go before it
                self._forget(row.key)
            self._make_room()
            return True

    async def abandon(self, load: Load, *, rest: float = 0.0) -> bool:
        with self._lock:
            row = self._rows.get(load.key)
            if row is None or row.token != load.token:
                return False
            row.token, row.rest_until = None, monotonic() + rest
            return True

    async def invalidate(self, keys: Sequence[str]) -> None:
        with self._lock:
            for key in keys:
                self._forget(key)

    async def invalidate_tags(self, tags: Sequence[str], *, tx: object | None = None) -> None:  # noqa: ARG002
        """At once: the memory of a process knows no transactions."""
        with self._lock:
            for tag in tags:
                for key in tuple(self._tagged.get(tag, ())):
                    self._forget(key)

    # --- rows, with the lock held ---

    def _entry(self, key: str) -> Entry:
        row, now = self._rows.get(key), monotonic()
        if row is None:
            return Entry()
        self._rows.move_to_end(key)
        is_loading, is_resting = row.token is not None and row.lease_until > now, row.rest_until > now
        if row.value is None or not row.written <= now < row.stale_until:
            return Entry(is_loading=is_loading, is_resting=is_resting)
        times = now - row.written, max(row.fresh_until - now, 0.0), row.stale_until - now
        return Entry(row.value, *times, is_loading, is_resting)

    def _held(self, load: Load) -> Row | None:
        row = self._rows.get(load.key)
        return row if row is not None and row.token == load.token and row.lease_until > monotonic() else None

    def _new(self, key: str) -> Row:
        row = self._rows[key] = Row(key, _size(key))
        self.size += row.size
        return row

    def _tag(self, row: Row, tags: Sequence[str]) -> None:
        row.tags.update(tags)
        for tag in tags:
            self._tagged.setdefault(tag, set()).add(row.key)

    def _untag(self, row: Row, tags: set[str]) -> None:
        row.tags -= tags
        for tag in tags:
            self._tagged[tag].discard(row.key)
            if not self._tagged[tag]:
                del self._tagged[tag]

    def _forget(self, key: str) -> None:
        row = self._rows.pop(key, None)
        if row is not None:
            self.size -= row.size
            self._untag(row, set(row.tags))

    def _make_room(self) -> None:
        """What is being loaded stays: whoever loads it would be refused, and load it again."""
        now, passed = monotonic(), 0
        while not self._has_room() and passed < min(len(self._rows), _PASSED):
            key, row = next(iter(self._rows.items()))  # and no more of them: there may be a million
            if row.token is None or row.lease_until <= now:
                self._forget(key)
            else:
                self._rows.move_to_end(key)
                passed += 1

    def _has_room(self) -> bool:
        return len(self._rows) <= self._most and self.size <= self._largest


def _size(key: str) -> int:
    return _ROW + sys.getsizeof(key)
