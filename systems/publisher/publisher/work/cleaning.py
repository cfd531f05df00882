"""Clean-up: files deleted a week ago leave the store, published ones are thinned to their preview, and old notes go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast import Backoff, Job, Tx, within
from publisher.core import CLEANING, hf, settings
from publisher.desk.files import RESTORABLE
from publisher.happenings import happened

PLACES = ("r2-cleanup", 2)  # at a time in the fleet
NOTES_LAST = 400 * 86_400.0  # seconds that the passing lines of a post's history are kept
PASSING = ("refused", "moved", "waiting")  # the others are the history of the work itself
NOTICES_LAST = 180 * 86_400.0
EXECUTIONS_LAST = 90 * 86_400.0
_PAGE = 100
_LINES = 5_000  # deleted in one statement, so that nobody waits long for it
# Pictures wait for their preview; films have none.
_THIN = (
    "FROM files f JOIN posts p ON p.id = f.post_id WHERE p.state = 'published' AND p.published_at <= $1 "
    "AND f.key IS NOT NULL AND f.deleted_at IS NULL AND (f.preview_key IS NOT NULL OR f.type LIKE 'video/%')"
)


class Cleaned(msgspec.Struct, frozen=True):
    """How many files are gone for good, and how many have their preview alone."""

    deleted: int
    thinned: int


@hf.cron("30 3 * * *", schedule="r2-cleanup")
@hf.task(name="publisher.clean-up", queue=CLEANING, timeout=600)
async def clean_up() -> int:
    """A job for each artist who has something to clean up; how many."""
    now = await hf.now()
    artists = await _artists("SELECT DISTINCT artist_id FROM files WHERE deleted_at <= $1", now - RESTORABLE)
    if settings.keep_files_days:
        artists |= await _artists(f"SELECT DISTINCT f.artist_id {_THIN}", _thin_until(now))
    await clean.enqueue_many([{"artist_id": each} for each in sorted(artists)])
    return len(artists)


@hf.task(
    name="publisher.clean",
    queue=CLEANING,
    concurrency=PLACES,
    unique="clean:{artist_id}",
    retry=Backoff(attempts=8, first=10, ceiling=600),
    timeout=3600,
)
async def clean(job: Job, artist_id: str) -> Cleaned:
    """Killed anywhere it finishes later: bytes go first, and the row that names them last."""
    now = await hf.now()
    with within(tenant=artist_id):
        deleted = await _purge(job, artist_id, now - RESTORABLE)
        thinned = await _thin(job, artist_id, _thin_until(now)) if settings.keep_files_days else 0
    return Cleaned(deleted, thinned)


def _thin_until(now: float) -> float:
    return now - settings.keep_files_days * 86_400.0


async def _purge(job: Job, artist_id: str, until: float) -> int:
    count = 0
    while rows := await _rows(
        f"SELECT id, key, preview_key FROM files WHERE artist_id = $1 AND deleted_at <= $2 ORDER BY id LIMIT {_PAGE}",  # noqa: S608
        artist_id,
        until,
    ):
        for file_id, *keys in rows:
            await _purge_one(artist_id, file_id, [key for key in keys if key is not None])
            count += 1
        await job.heartbeat(note=f"{count:,} files deleted")
    return count


async def _purge_one(artist_id: str, file_id: str, keys: Sequence[str]) -> None:
    async with hf.transaction() as tx:
        own = [key for key in keys if not await _is_shared(tx, artist_id, file_id, key)]
    await hf.blobs.purge(*own)
    async with hf.transaction() as tx:
        await tx.execute("DELETE FROM files WHERE id = $1 AND deleted_at IS NOT NULL", file_id)


async def _thin(job: Job, artist_id: str, until: float) -> int:
    count = 0
    while rows := await _rows(
        f"SELECT f.id, f.key, f.post_id {_THIN} AND f.artist_id = $2 ORDER BY f.id LIMIT {_PAGE}",
        until,
        artist_id,
    ):
        for file_id, key, post_id in rows:
            await _thin_one(artist_id, file_id, key, post_id)
            count += 1
        await job.heartbeat(note=f"{count:,} files thinned")
    return count


async def _thin_one(artist_id: str, file_id: str, key: str, post_id: str) -> None:
    """Row and blob in one commit; the bytes go at once, or with the sweep that finds them."""
    async with hf.transaction() as tx:
        await tx.execute("UPDATE files SET key = NULL WHERE id = $1", file_id)
        is_shared = await _is_shared(tx, artist_id, file_id, key)
        if not is_shared:
            await hf.blobs.delete(key, tx=tx)
        await happened(tx, post_id, "thinned", "Your file here was reduced to its preview")
    if not is_shared:
        await hf.blobs.purge(key)


async def _is_shared(tx: Tx, artist_id: str, file_id: str, key: str) -> bool:
    """The copy of a post has the same bytes."""
    return bool(
        await tx.fetch(
            "SELECT 1 FROM files WHERE artist_id = $1 AND id <> $2 AND (key = $3 OR preview_key = $3) LIMIT 1",
            artist_id,
            file_id,
            key,
        )
    )


# --- notes ---


class Pruned(msgspec.Struct, frozen=True):
    happenings: int
    notices: int
    executions: int


@hf.cron("50 3 * * *", schedule="prune")
@hf.task(name="publisher.prune", queue=CLEANING, timeout=3600)
async def prune() -> Pruned:
    """What nobody asks for any more: the history of a work itself stays."""
    now = await hf.now()
    return Pruned(
        await _prune_happenings(now - NOTES_LAST),
        await _executed("DELETE FROM notices WHERE at < $1", now - NOTICES_LAST),
        await _prune_executions(now - EXECUTIONS_LAST),
    )


async def _prune_happenings(until: float) -> int:
    kinds = ", ".join(f"'{each}'" for each in PASSING)
    count = 0
    while gone := await _executed(
        f"DELETE FROM happenings WHERE id IN (SELECT id FROM happenings WHERE at < $1 AND kind IN ({kinds}) LIMIT {_LINES})",  # noqa: S608
        until,
    ):
        count += gone
    return count


async def _prune_executions(until: float) -> int:
    """One automation after the other. Its newest nominal times stay, so that none of them fires again."""
    return sum([
        await _executed("DELETE FROM executions WHERE automation_id = $1 AND nominal_at < $2", automation_id, until)
        for (automation_id,) in await _rows("SELECT id FROM automations")
    ])  # fmt: skip


async def _artists(sql: str, until: float) -> set[str]:
    return {row[0] for row in await _rows(sql, until)}


async def _rows(sql: str, *values: object) -> list[tuple[Any, ...]]:
    async with hf.transaction() as tx:
        return await tx.fetch(sql, *values)


async def _executed(sql: str, *values: object) -> int:
    async with hf.transaction() as tx:
        return await tx.execute(sql, *values)
