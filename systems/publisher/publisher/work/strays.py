"""Strays: files whose bytes are gone, blobs that nothing names, objects without a row. They are found and told, and nothing is removed."""

from __future__ import annotations

import logging

import msgspec

from holdfast import Job, within
from publisher.core import CLEANING, hf
from publisher.work.cleaning import PLACES

NAMED_MOST = 1_000  # of each kind in a report
ALERT, CAUSE = "files", "publisher:strays"
_PAGE = 500
_YOUNG = 86_400.0  # seconds: what is younger may be under way
_log = logging.getLogger(__name__)


class Lost(msgspec.Struct, frozen=True):
    """A file whose bytes are gone."""

    artist_id: str
    file_id: str
    name: str


class Unnamed(msgspec.Struct, frozen=True):
    """A blob that no file, preview or export names."""

    artist_id: str
    key: str


class Strays(msgspec.Struct, frozen=True):
    """The first thousand of each kind."""

    lost: list[Lost]
    unnamed: list[Unnamed]
    orphans: list[str]  # objects without a row, by their names in the store

    @property
    def words(self) -> str:
        return (
            f"{len(self.lost)} files whose bytes are gone, {len(self.unnamed)} blobs that nothing names, "
            f"{len(self.orphans)} objects without a row"
        )


@hf.cron("0 4 * * 1", schedule="strays")
@hf.task(name="publisher.strays", queue=CLEANING, concurrency=PLACES, timeout=6 * 3600)
async def find(job: Job) -> Strays:
    """What it finds is the job's result, an alert until there is none, and a line in the log."""
    checked = await hf.blobs.check()
    lost: list[Lost] = []
    unnamed: list[Unnamed] = []
    for artist_id in await _artists():
        of_lost, of_unnamed = await _of_artist(artist_id)
        lost, unnamed = [*lost, *of_lost][:NAMED_MOST], [*unnamed, *of_unnamed][:NAMED_MOST]
        await job.heartbeat(note=f"{len(lost)} lost, {len(unnamed)} unnamed")
    found = Strays(lost, unnamed, list(checked.orphans[:NAMED_MOST]))
    if lost or unnamed or found.orphans:
        _log.warning("strays: %s", found.words)
        await hf.alerts.raise_(ALERT, CAUSE)
    else:
        await hf.alerts.over(ALERT, CAUSE)
    return found


async def _of_artist(artist_id: str) -> tuple[list[Lost], list[Unnamed]]:
    """Rows are read before blobs: what comes meanwhile has both, and what goes meanwhile is looked up again."""
    async with hf.transaction() as tx:
        files = await tx.fetch(
            "SELECT id, name, key, preview_key FROM files WHERE artist_id = $1 ORDER BY id", artist_id
        )
        exports = await tx.fetch(
            "SELECT key FROM exports WHERE artist_id = $1 AND key IS NOT NULL", artist_id
        )
    kept, before = await _blobs(artist_id), await hf.now() - _YOUNG
    named = {key for _, _, *keys in files for key in keys} | {key for (key,) in exports}
    lost = [
        Lost(artist_id, id_, name)
        for id_, name, key, _ in files
        if key is not None and key not in kept and await _has_key(id_, key)
    ]
    strange = [Unnamed(artist_id, key) for key, at in kept.items() if key not in named and at < before]
    return lost, strange


async def _has_key(file_id: str, key: str) -> bool:
    async with hf.transaction() as tx:
        return bool(await tx.fetch("SELECT 1 FROM files WHERE id = $1 AND key = $2", file_id, key))


async def _blobs(artist_id: str) -> dict[str, float]:
    """Keys that can be read, and since when."""
    found: dict[str, float] = {}
    last = ""
    with within(tenant=artist_id):
        while page := await hf.blobs.list(after=last, state="kept", limit=_PAGE):
            found |= {blob.key: blob.created_at for blob in page}
            last = page[-1].key
    return found


async def _artists() -> list[str]:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT id FROM artists WHERE left_at IS NULL ORDER BY id")
    return [row[0] for row in rows]
