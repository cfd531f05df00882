"""Change what may be done with a blob: delete, restore, purge, quarantine, release."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.crashpoints import crashpoint
from holdfast.runtime.blobs.areas import leftovers
from holdfast.runtime.blobs.base import Base
from holdfast.store.blob_records import BlobState

_HELD = (BlobState.KEPT, BlobState.QUARANTINED)
_GONE = (BlobState.DELETED, BlobState.MISSING)  # they do not count for a quota


@must_await_all("hf.blobs")
class Turns(Base):
    async def delete(self, *keys: str, tx: Any = None) -> int:
        """Delete them, in `tx` when one is given; returns how many there were. For seven days they can be restored; then they are gone."""
        count = 0
        names = [self._name(key) for key in keys]
        async with AsyncExitStack() as stack:
            if tx is None and len(names) > 1:  # all or none
                tx = await stack.enter_async_context(self._program.transaction())
            for name in names:
                row = await self._program.store.blobs.change(
                    name, BlobState.DELETED, of=[*_HELD, BlobState.MISSING], tx=tx
                )
                count += row is not None
        return count

    async def restore(self, key: str, *, tx: Any = None) -> bool:
        """Take back a deletion, within the tenant's quota. False: it is not deleted, or gone for good."""
        size = 0 if self._its_settings().quota is None else await self._size_of_gone(key)
        return await self._turned(key, BlobState.KEPT, _GONE, None, tx, adds=size)

    async def _size_of_gone(self, key: str) -> int:
        row = await self._program.store.blobs.get(self._name(key))
        return 0 if row is None or row.state not in _GONE else row.size

    async def purge(self, *keys: str) -> int:
        """Gone for good, at once: also what was deleted and could be restored. Returns how many there were.

        Each by itself. What is killed in the middle, the next sweep ends.
        """
        count = 0
        for name in [self._name(key) for key in keys]:
            count += await self._purged(name)
        return count

    async def _purged(self, name: str) -> bool:
        rows = self._program.store.blobs
        row = await rows.change(name, BlobState.PURGING, of=[*_HELD, BlobState.DELETED, BlobState.MISSING])
        found = row or await rows.get(name)
        while found is not None and found.state is BlobState.PURGING:
            await self._place().delete([found.object, *leftovers(found.object)])
            crashpoint("blob.purged")
            await rows.forget(found)  # not when somebody has just moved its object: then once more
            found = await rows.get(name)
        return row is not None

    async def quarantine(self, key: str, reason: str, *, tx: Any = None) -> bool:
        """Nobody reads it from now on, until `release`. False: there is none that could be read."""
        return await self._turned(key, BlobState.QUARANTINED, [BlobState.KEPT], reason, tx)

    async def release(self, key: str, reason: str, *, tx: Any = None) -> bool:
        """Let it be read again."""
        return await self._turned(key, BlobState.KEPT, [BlobState.QUARANTINED], reason, tx)

    async def _turned(
        self,
        key: str,
        to: BlobState,
        of: Sequence[BlobState],
        reason: str | None,
        tx: Any,
        *,
        adds: int = 0,
    ) -> bool:
        name = self._name(key)
        async with AsyncExitStack() as stack:
            tx = tx if tx is not None else await stack.enter_async_context(self._program.transaction())
            if adds:
                await self._fits(adds, tx)
            if await self._program.store.blobs.change(name, to, of=of, reason=reason, tx=tx) is None:
                return False
            await self._settle.options(tx=tx).enqueue(name)
        return True
