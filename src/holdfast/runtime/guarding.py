"""`hf.guards`: how the guards of the fleet are, from any process, for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.fleet.guard_looks import Elsewhere, look_of, seen
from holdfast.guards.guard import Guard
from holdfast.guards.looks import GuardLook
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.errors import UsageError
from holdfast.kernel.options import nearest
from holdfast.store.breakers import GuardSeen
from holdfast.store.ports import Store


@must_await_all("hf.guards")
class GuardsView:
    """Look at the guards of the fleet."""

    def __init__(self, store: Store, elsewhere: Elsewhere | None, declared: Mapping[str, Guard[Any]]) -> None:
        self._store, self._elsewhere, self._declared = store, elsewhere, declared

    async def look(self, name: str, *, key: str = "") -> GuardLook:
        """How a guard is for the whole fleet; `key="user:7"` is one of its limiter's, as `per=` renders it."""
        found = await seen(self._store, self._elsewhere, name, key)
        if not found.known and name not in self._declared:
            raise UsageError(
                f"No guard {name!r} is declared here, and nobody has heard of one.{nearest(name, [*self._declared])} "
                "`await hf.guards.find()` lists those that there are."
            )
        return look_of(self._with_own(found))

    async def find(self, *, limit: int = 100) -> list[GuardLook]:
        """All guards that this program declares, or anybody has heard of, by name."""
        records = await self._store.guards.find(limit=limit)
        names = sorted({*self._declared, *(record.name for record in records)})[:limit]
        found = [await seen(self._store, self._elsewhere, name, "") for name in names]
        return [look_of(self._with_own(each)) for each in found]

    def _with_own(self, found: GuardSeen) -> GuardSeen:
        """A pause of which this process was told, and has not told the others yet: who has just had the 429 sees it."""
        guard = self._declared.get(found.name)
        if guard is None or guard.limiter is None:
            return found
        own = guard.limiter.record(key=found.key)
        if own.paused_for <= found.paused:
            return found
        return replace(found, paused=own.paused_for, in_row=max(found.in_row, own.in_row))
