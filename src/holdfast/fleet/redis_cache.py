"""Values of cached functions on a Redis: `store.cache_ports.SharedCache`, one round trip for each verb.

Redis may lose anything at any time. What it has lost is loaded again; and after a restart nothing counts that it had before,
since it may have lost an invalidation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.fleet.redis_scripts import scripts
from holdfast.fleet.redis_server import Server
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import StoreError, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.randomness import random_bytes
from holdfast.store.cache_records import TAG_KEPT, Entry, Load, Why
from holdfast.store.edge import checked_cache
from holdfast.transport.redis_url import parse

_LOOKS_EVERY = 1.0  # seconds between looks for a restart of the server
_BROKEN = ""  # no JSON
Seen = tuple[str | bool, float, float, float, bool, bool]  # as `lua/caches.lua` says
Granted = tuple[float, list[str]]


@checked_cache
class RedisCache:
    """`RedisCache("redis://localhost:6379/0")`: Redis 6 or newer, or Valkey; one server, no cluster."""

    def __init__(self, url: str, *, prefix: str = "holdfast:") -> None:
        self._target = parse(url)
        self._prefix = check_name("prefix", prefix)
        self._server = Server(self._target)
        self._scripts = scripts()
        self._looked = -_LOOKS_EVERY

    def __repr__(self) -> str:
        return f"RedisCache({self._target.shown!r})"

    async def open(self) -> None:
        """Raises when Redis does not answer; the verbs may be used all the same, and work when it does."""
        await self._server.open()

    async def close(self) -> None:
        await self._server.close()

    def check_free(self) -> None:
        """Redis knows no transactions of ours: nobody waits for himself."""

    async def get(self, keys: Sequence[str]) -> list[Entry]:
        if not keys:
            return []
        looks = monotonic() >= self._looked + _LOOKS_EVERY
        answer = await self._run("get", keys, (), [_chance(), "1" if looks else "0"], list[msgspec.Raw])
        if looks:
            self._looked = monotonic()
        return [_entry(each) for each in answer]

    async def begin(
        self, key: str, *, tags: Sequence[str], lease: float, why: Why = Why.MISSING
    ) -> Load | Entry:
        token = _chance()
        args = [str(why), repr(float(lease)), token, _chance(), _chance(), repr(TAG_KEPT)]
        is_granted, rest = await self._run("begin", [key], tags, args, tuple[bool, msgspec.Raw])
        if not is_granted:
            return _entry(rest)
        until, generations = self._decoded(rest, Granted)
        return Load(key, int(token), until, tuple(tags), tuple(int(each) for each in generations))

    async def renew(self, load: Load, *, lease: float) -> bool:
        return bool(await self._run("renew", [load.key], (), [str(load.token), repr(float(lease))], bool))

    async def put(self, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        times = repr(float(fresh)), repr(float(stale))
        args = [str(load.token), value, *times, _chance(), repr(TAG_KEPT), *map(str, load.generations)]
        return bool(await self._run("put", [load.key], load.tags, args, bool))

    async def abandon(self, load: Load, *, rest: float = 0.0) -> bool:
        return bool(await self._run("abandon", [load.key], (), [str(load.token), repr(float(rest))], bool))

    async def invalidate(self, keys: Sequence[str]) -> None:
        await self._run("forget", keys, (), [], bool)

    async def invalidate_tags(self, tags: Sequence[str], *, tx: object | None = None) -> None:
        if tx is not None:
            raise UsageError(
                "Redis takes no part in a transaction of the store. Invalidate after the commit."
            )
        await self._run("forget", (), tags, [], bool)

    async def _run(
        self,
        verb: str,
        keys: Sequence[str],
        tags: Sequence[str],
        args: list[bytes | str] | list[str],
        kind: Any,
    ) -> Any:
        names = [self._key("epoch"), *(self._key("value", key) for key in keys)]
        names += [self._key("tag", tag) for tag in tags]
        return self._decoded(await self._server.run(self._scripts[f"cache_{verb}"], names, args), kind)

    def _key(self, *parts: str) -> str:
        return f"{self._prefix}cache:{':'.join(parts)}"

    def _decoded(self, answer: bytes | msgspec.Raw, kind: Any) -> Any:
        try:
            return msgspec.msgpack.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise StoreError(f"{self!r} holds what this version of Holdfast cannot read: {error}.") from error


def _entry(answer: msgspec.Raw) -> Entry:
    """One that cannot be read takes no other with it; whoever asked for it finds that it is no value, and drops it."""
    try:
        seen = msgspec.msgpack.decode(answer, type=Seen)
    except (msgspec.DecodeError, UnicodeError):
        return Entry(_BROKEN)
    value, age, fresh_for, stale_for, is_loading, is_resting = seen
    if not isinstance(value, str):
        return Entry(is_loading=is_loading, is_resting=is_resting)
    return Entry(value, age, fresh_for, stale_for, is_loading, is_resting)


def _chance() -> str:
    """A number that never comes again, as text: the server's numbers are not exact enough for it."""
    return str(int.from_bytes(random_bytes(8), "big") >> 1)
