"""Bring an object to where its row says that it belongs. It may be killed anywhere and be done by several at once."""

from __future__ import annotations

from holdfast.blobs.errors import BlobMissing
from holdfast.blobs.port import BlobStore
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.telemetry import note
from holdfast.runtime.blobs.areas import home_of, leftovers
from holdfast.store.blob_ports import Blobs
from holdfast.store.blob_records import BlobRow, BlobState

_TURNS = 20  # others may change the row under us now and then, not for ever
_LIVE = (BlobState.KEPT, BlobState.QUARANTINED)


async def settle(name: str, rows: Blobs, objects: BlobStore) -> bool:
    """Copy, say so in the row, remove the old: in this order, so that the row's object is always there. False: it was lost."""
    for _ in range(_TURNS):
        row = await rows.get(name)
        if row is None or row.settled:
            return True
        target = home_of(row.state, row.object)
        if target != row.object:
            if not await _move(row, target, rows, objects):
                return False
        elif await _tidy(row, rows, objects):
            return True
    raise RuntimeError(f"The blob {name} was changed {_TURNS} times while it was moved.")


async def _move(row: BlobRow, target: str, rows: Blobs, objects: BlobStore) -> bool:
    try:
        await objects.copy(row.object, target)
    except BlobMissing:
        return await _was_moved(row, rows)
    crashpoint("blob.copied")
    await rows.move(row.name, source=row.object, target=target)
    crashpoint("blob.moved")
    return True


async def _tidy(row: BlobRow, rows: Blobs, objects: BlobStore) -> bool:
    """Whether all is done; no, when its state was changed meanwhile."""
    await objects.delete(leftovers(row.object))
    crashpoint("blob.tidied")
    return await rows.settle(row)


async def _was_moved(row: BlobRow, rows: Blobs) -> bool:
    """Its object is gone: another was first, or it is lost, and nobody shall believe that it is there."""
    again = await rows.get(row.name)
    if again is None or again.object != row.object:
        return True
    if await rows.change(row.name, BlobState.MISSING, of=_LIVE, reason=f"its object {row.object} is gone"):
        note("blob.lost", blob=row.name, object=row.object)
    return False
