"""Questions to where values are kept, of one event loop: those that come while one is asked are asked together, each key once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from holdfast.kernel.spawn import start
from holdfast.store.batching import Batcher
from holdfast.store.cache_records import Entry

_AT_ONCE = 50  # keys in one question


class Looks:
    """Nobody gets an answer to a question that was sent before he came: it may be older than what he knows."""

    def __init__(self, get: Callable[[Sequence[str]], Awaitable[list[Entry]]], name: str) -> None:
        self._get = get
        self._batcher: Batcher[str, Entry] = Batcher(self._sent, limit=_AT_ONCE, name=name)
        self._unsent: dict[str, asyncio.Task[list[Entry]]] = {}

    async def look(self, key: str) -> Entry:
        asked = self._unsent.get(key)
        if asked is None:
            asked = self._unsent[key] = start(self._batcher.add((key,)), name=f"look:{key}")
            asked.add_done_callback(self._heard)
        [entry] = await asyncio.shield(asked)
        return entry

    async def _sent(self, keys: Sequence[str]) -> list[Entry]:
        for key in keys:
            self._unsent.pop(key, None)
        return await self._get(keys)

    def _heard(self, asked: asyncio.Task[list[Entry]]) -> None:
        """Whoever asked may have gone; and one that was cancelled before it was sent must not be waited for."""
        for key in [key for key, each in self._unsent.items() if each is asked]:
            del self._unsent[key]
        if not asked.cancelled():
            asked.exception()
