"""Exports of an account: ask for one, see whether it is ready, and get a link to it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from holdfast import Tx, within
from holdfast.blobs import BlobMissing, Link
from publisher.core import hf
from publisher.desk.inside import inside
from publisher.desk.refusals import NotHere, TooLate
from publisher.ids import new_id
from publisher.present import is_here
from publisher.work import exporting

KEPT = 3  # exports of one artist; older ones are removed
_LONGEST = 3 * 3600.0  # seconds after which one that is not ready has failed


@dataclass(frozen=True)
class ExportRow:
    id: str
    job_id: str | None
    key: str | None
    size: int | None
    made_at: float
    ready_at: float | None


_COLUMNS = ", ".join(each.name for each in fields(ExportRow))


async def ask(artist_id: str, *, tx: Tx | None = None) -> ExportRow:
    """One that is under way is not begun again."""
    now = await hf.now()
    async with inside(tx) as own:
        if not await is_here(own, artist_id):
            raise NotHere("account")
        found = await _of_artist(own, artist_id)
        if found and found[0].key is None and now - found[0].made_at < _LONGEST:
            return found[0]
        await _remove_old(own, artist_id, found[KEPT - 1 :])
        export_id = new_id()
        await own.execute(
            "INSERT INTO exports (id, artist_id, made_at) VALUES ($1, $2, $3)", export_id, artist_id, now
        )
        handle = await exporting.export.options(tx=own, unique=f"export:{export_id}").enqueue(export_id)
        await own.execute("UPDATE exports SET job_id = $1 WHERE id = $2", handle.id, export_id)
        return ExportRow(export_id, handle.id, None, None, now, None)


async def listing(artist_id: str) -> list[ExportRow]:
    """The newest first."""
    async with hf.transaction() as tx:
        return await _of_artist(tx, artist_id)


async def link(artist_id: str, export_id: str) -> Link:
    """Good for a quarter of an hour."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT key FROM exports WHERE id = $1 AND artist_id = $2", export_id, artist_id
        )
    if not rows:
        raise NotHere("export")
    if rows[0][0] is None:
        raise TooLate("This export is not ready yet.", "waiting")
    with within(tenant=artist_id):
        try:
            return await hf.blobs.link_get(rows[0][0], download="publisher-export.zip")
        except BlobMissing:
            raise NotHere("export") from None


async def _of_artist(tx: Tx, artist_id: str) -> list[ExportRow]:
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM exports WHERE artist_id = $1 ORDER BY made_at DESC, id LIMIT 20",  # noqa: S608  our own columns
        artist_id,
    )
    return [ExportRow(*row) for row in rows]


async def _remove_old(tx: Tx, artist_id: str, old: list[ExportRow]) -> None:
    for each in old:
        await tx.execute("DELETE FROM exports WHERE id = $1", each.id)
        if each.key is not None:
            with within(tenant=artist_id):
                await hf.blobs.delete(each.key, tx=tx)
