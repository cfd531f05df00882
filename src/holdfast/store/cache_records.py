"""Frozen rows of the cache: what is kept under a key, who loads it now, and what is shown of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

VALUE_LIMIT = 1024 * 1024  # bytes of JSON
TAG_KEPT = 86_400.0  # seconds that a tag is known beyond the values that have it


class Why(StrEnum):
    """What a load is for."""

    MISSING = "missing"  # there is nothing to serve: somebody waits
    STALE = "stale"  # what there is was served, and shall be newer: nobody waits
    FORCED = "forced"  # somebody wants it newer than whatever is there or on its way


class Entry(msgspec.Struct, frozen=True):
    """What is kept under a key, as it is now by the clock of whoever keeps it."""

    value: str | None = None  # JSON text; None: nothing that may be served
    age: float = 0.0  # seconds since it was written
    fresh_for: float = 0.0  # seconds for which it stays fresh; 0: it is stale
    stale_for: float = 0.0  # seconds for which it may be served at all
    is_loading: bool = False  # somebody loads it now
    is_resting: bool = False  # a load has failed just now: no other refreshes it yet

    @property
    def is_fresh(self) -> bool:
        return self.value is not None and self.fresh_for > 0


class Load(msgspec.Struct, frozen=True):
    """The right to load the value of a key: it is kept if nobody took or ended this right, and nothing was invalidated."""

    key: str
    token: int
    until: float  # seconds since 1970, on the clock of whoever keeps the values
    tags: tuple[str, ...] = ()
    generations: tuple[int, ...] = ()  # of the tags, when the load began


class CacheRecord(msgspec.Struct, frozen=True):
    """One key for a listing, without its value."""

    key: str
    size: int | None  # characters of the value; None: nothing that may be served
    tags: tuple[str, ...]
    age: float
    fresh_for: float
    stale_for: float
    is_loading: bool
