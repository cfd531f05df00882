"""The guards of a fleet as a person looks at them, wherever they meet: in the database, or on a Redis beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from holdfast.store.breakers import GuardRecord
from holdfast.store.ports import Store


class Elsewhere(Protocol):
    """Where guards meet, when that is not the database."""

    async def look(self, name: str, *, now: float) -> GuardRecord: ...
    async def reset(self, name: str) -> bool: ...


async def looked(store: Store, elsewhere: Elsewhere | None, *, limit: int) -> list[GuardRecord]:
    """Names, and what people hold, are in the database in any case: all nodes tell it of their guards."""
    found = await store.guards.find(limit=limit)
    if elsewhere is None:
        return found
    now = await store.now()
    return [_together(each, await elsewhere.look(each.name, now=now)) for each in found]


def _together(kept: GuardRecord, seen: GuardRecord) -> GuardRecord:
    nodes = {"nodes": seen.nodes, "nodes_number": seen.nodes_number} if seen.nodes else {}
    return replace(
        kept,
        generation=seen.generation,
        opened_until=seen.opened_until,
        probes=seen.probes,
        slowed=seen.slowed,
        slowest=seen.slowest,
        paused=seen.paused,
        longest=seen.longest,
        keys=max(kept.keys, seen.slowed, seen.paused),
        **nodes,
    )


def has_breaker(guard: GuardRecord) -> bool | None:
    """Whether any node has one; None: no node is heard of. One that has none tells so by its generation."""
    return any(node.generation > 0 for node in guard.nodes) if guard.nodes else None


def owner_of(key: str, names: Iterable[str] | Mapping[str, object]) -> str | None:
    """The guard whose rendered key it is: of several whose names it begins with, the longest."""
    return max((name for name in names if key == name or key.startswith(f"{name}/")), key=len, default=None)
