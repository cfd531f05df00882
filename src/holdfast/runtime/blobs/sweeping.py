"""Remove what nobody needs, and find what does not fit together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from holdfast.blobs.port import BlobStore, Stat
from holdfast.blobs.records import Swept
from holdfast.kernel.clock import now
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.telemetry import note
from holdfast.runtime.blobs.areas import INCOMING, KEPT, QUARANTINE, STAGING, leftovers
from holdfast.runtime.blobs.settling import settle
from holdfast.store.blob_ports import Blobs
from holdfast.store.blob_records import BlobRow, BlobState

PAGE = 500
_LATE = 3_600.0  # seconds after which a blob whose job was lost is settled here
_LIVE = (BlobState.KEPT, BlobState.QUARANTINED)
Beat = Callable[[str], Awaitable[object]]


async def sweep(rows: Blobs, objects: BlobStore, *, unused: float, restorable: float, beat: Beat) -> Swept:
    """Everything that is due. What is killed in between is done by the next one."""
    before = now() - unused
    removed = await _remove_unused(rows, objects, before, beat)
    remains = await objects.tidy(before)
    settled = await _settle_late(rows, objects, beat)
    return Swept(removed, remains, settled, await _purge(rows, objects, restorable, beat))


async def _remove_unused(rows: Blobs, objects: BlobStore, before: float, beat: Beat) -> int:
    """A commit takes nothing that is half as old as this, so nothing is committed while it is removed."""
    count = 0
    for area in (INCOMING, STAGING):
        async for page in pages(objects, area):
            old = [each.name for each in page if each.modified < before]
            known = await rows.known(old)
            gone = [name for name in old if name not in known]
            await objects.delete(gone)
            crashpoint("blob.swept")
            count += len(gone)
            await beat(f"{count} unused objects removed")
    return count


async def _settle_late(rows: Blobs, objects: BlobStore, beat: Beat) -> int:
    count = 0
    while late := await rows.unsettled(older=_LATE, limit=PAGE):
        for row in late:
            await settle(row.name, rows, objects)
            count += 1
            await beat(f"{count} blobs settled")
    return count


async def _purge(rows: Blobs, objects: BlobStore, restorable: float, beat: Beat) -> int:
    """The row goes last: as long as it is there, somebody knows of the object."""
    count = 0
    while due := await rows.purge(keep=restorable, limit=PAGE):
        for row in due:
            await objects.delete([row.object, *leftovers(row.object)])
            crashpoint("blob.purged")
            await rows.forget(row)
            count += 1
        await beat(f"{count} blobs purged")
    return count


# --- what does not fit together ---


async def lost_rows(rows: Blobs, objects: BlobStore) -> AsyncIterator[tuple[BlobRow, bool]]:
    """Each row that should have an object, and whether that is gone. Such a row is marked."""
    after = ""
    while page := await rows.find(after=after, limit=PAGE):
        after = page[-1].name
        live = [row for row in page if row.state in _LIVE]
        for row, stat in zip(live, await _stats(objects, live), strict=True):
            yield row, stat is None and await _mark(row, rows, objects)


async def _stats(objects: BlobStore, live: list[BlobRow], at_once: int = 16) -> list[Stat | None]:
    found: list[Stat | None] = []
    for start in range(0, len(live), at_once):
        found += await asyncio.gather(*(objects.stat(row.object) for row in live[start : start + at_once]))
    return found


async def _mark(row: BlobRow, rows: Blobs, objects: BlobStore) -> bool:
    """Looked at once more: it may have been moved or deleted meanwhile."""
    again = await rows.get(row.name)
    if again is None or again.state not in _LIVE or await objects.stat(again.object) is not None:
        return False
    if (
        await rows.change(row.name, BlobState.MISSING, of=_LIVE, reason=f"its object {again.object} is gone")
        is None
    ):
        return False
    note("blob.lost", blob=row.name, object=again.object)
    return True


async def orphans(rows: Blobs, objects: BlobStore, before: float) -> AsyncIterator[tuple[Stat, bool]]:
    """Each object of a blob, and whether it belongs to no row and is older than this."""
    for area in (KEPT, QUARANTINE):
        async for page in pages(objects, area):
            known = await rows.known([each.name for each in page])
            for each in page:
                yield each, each.name not in known and each.modified < before


async def pages(objects: BlobStore, area: str) -> AsyncIterator[list[Stat]]:
    after = ""
    while page := await objects.list(area, after=after, limit=PAGE):
        yield page
        after = page[-1].name
