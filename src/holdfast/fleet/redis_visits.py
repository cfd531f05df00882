"""Sessions of web pages on a Redis: `store.visit_ports.SharedVisits`, one round trip for each verb.

A Redis that has lost them has logged everybody out. It never lets anybody in who was logged out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.fleet.redis_scripts import scripts
from holdfast.fleet.redis_server import Server
from holdfast.kernel.errors import StoreError, UsageError
from holdfast.kernel.names import check_name
from holdfast.store.edge import checked_visits
from holdfast.store.visit_records import NewVisit, Visit
from holdfast.transport.redis_url import parse


class _Kept(msgspec.Struct, frozen=True):
    """As `lua/visits.lua` packs it: what is nil is not there."""

    id: str
    data: str
    version: int
    created_at: float
    seen_at: float
    until: float
    last: float
    principal: str | None = None
    tenant: str | None = None
    address: str | None = None
    agent: str | None = None

    def visit(self) -> Visit:
        return Visit(**msgspec.structs.asdict(self))


@checked_visits
class RedisVisits:
    """`RedisVisits("redis://localhost:6379/0")`: Redis 6 or newer, or Valkey; one server, no cluster."""

    def __init__(self, url: str, *, prefix: str = "holdfast:") -> None:
        self._target = parse(url)
        self._prefix = check_name("prefix", prefix)
        self._server = Server(self._target)
        self._scripts = scripts()

    def __repr__(self) -> str:
        return f"RedisVisits({self._target.shown!r})"

    async def open(self) -> None:
        """Raises when Redis does not answer; the verbs may be used all the same, and work when it does."""
        await self._server.open()

    async def close(self) -> None:
        await self._server.close()

    async def begin(
        self,
        visit: NewVisit,
        *,
        idle: float,
        last: float,
        replaces: str | None = None,
        tx: object | None = None,
    ) -> None:
        _refuse(tx)
        given = {name: value for name, value in msgspec.structs.asdict(visit).items() if value is not None}
        keys = [self._key(visit.id), self._index(visit.principal or "")]
        keys += [] if replaces is None else [self._key(replaces)]
        await self._run("begin", keys, [msgspec.msgpack.encode(given), repr(idle), repr(last)], bool)

    async def get(self, visit_id: str) -> Visit | None:
        found = await self._run("get", [self._key(visit_id)], [], _Kept | bool)
        return found.visit() if isinstance(found, _Kept) else None

    async def touch(self, visit_id: str, *, idle: float) -> bool:
        return bool(await self._run("touch", [self._key(visit_id)], [repr(idle)], bool))

    async def write(self, visit_id: str, data: str, *, version: int) -> bool:
        return bool(await self._run("write", [self._key(visit_id)], [data, str(version)], bool))

    async def end(self, visit_id: str) -> bool:
        return bool(await self._run("end", [self._key(visit_id)], [], bool))

    async def end_of(
        self,
        principal: str,
        *,
        name: str | None = None,
        besides: str | None = None,
        tx: object | None = None,
    ) -> int:
        _refuse(tx)
        args = [self._key(""), name or "", besides or ""]
        return int(await self._run("end_of", [self._index(principal)], args, int))

    async def find(self, principal: str, *, limit: int = 100) -> list[Visit]:
        answer = await self._run("find", [self._index(principal)], [self._key(""), str(limit)], _Found)
        return [] if isinstance(answer, dict) else [each.visit() for each in answer]

    async def _run(self, verb: str, keys: Sequence[str], args: Sequence[bytes | str], kind: Any) -> Any:
        answer = await self._server.run(self._scripts[f"visit_{verb}"], keys, args)
        try:
            return msgspec.msgpack.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise StoreError(f"{self!r} holds what this version of Holdfast cannot read: {error}.") from error

    def _key(self, visit_id: str) -> str:
        return f"{self._prefix}visit:{visit_id}"

    def _index(self, principal: str) -> str:
        return f"{self._prefix}visits:{principal}"


_Found = list[_Kept] | dict[str, bool]  # Lua does not tell an empty list from an empty table


def _refuse(tx: object | None) -> None:
    if tx is not None:
        raise UsageError(
            "Redis takes no part in a transaction of the store. Log in or out after the commit, or keep sessions in the store."
        )
