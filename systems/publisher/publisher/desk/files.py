"""Files of posts: read, order, describe, delete, have back, and how much room they take. They come in by uploads.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from holdfast import Tx, within
from holdfast.blobs import BlobMissing, Link, Reading
from publisher.core import hf, settings
from publisher.desk import posts
from publisher.desk.inside import inside
from publisher.desk.refusals import Fault, Invalid, NotHere, TooLate
from publisher.desk.rows import post_of
from publisher.desk.uploads import title_of, used_by
from publisher.domain.posts import Details
from publisher.domain.states import EDITABLE, State

RESTORABLE = 7 * 86_400.0  # seconds in which a deleted file can be had back
_ALT_MOST = 1000  # characters


@dataclass(frozen=True)
class FileRow:
    id: str
    post_id: str | None
    position: int
    name: str
    alt: str
    key: str | None
    preview_key: str | None
    type: str
    size: int
    sha256: str
    width: int | None
    height: int | None
    made_at: float
    deleted_at: float | None


@dataclass(frozen=True)
class Usage:
    """Bytes. What is deleted counts until it is gone for good."""

    used: int
    deleted: int
    quota: int
    files: int


_COLUMNS = ", ".join(each.name for each in fields(FileRow))
_BYTES = "SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT key, size FROM files WHERE artist_id = $1 AND key IS NOT NULL"


async def get(artist_id: str, file_id: str) -> FileRow:
    async with hf.transaction() as tx:
        return await _one(tx, artist_id, file_id)


async def of_post(artist_id: str, post_id: str) -> list[FileRow]:
    async with hf.transaction() as tx:
        await post_of(tx, artist_id, post_id)
        return await _of_post(tx, post_id)


async def deleted(artist_id: str, *, limit: int = 100) -> list[FileRow]:
    """What can still be had back, the newest first."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM files WHERE artist_id = $1 AND deleted_at > $2 AND key IS NOT NULL "  # noqa: S608  our own columns
            "ORDER BY deleted_at DESC, id LIMIT $3",
            artist_id,
            await hf.now() - RESTORABLE,
            limit,
        )
    return [FileRow(*row) for row in rows]


async def largest(artist_id: str, number: int = 20) -> list[FileRow]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM files WHERE artist_id = $1 AND deleted_at IS NULL AND key IS NOT NULL "  # noqa: S608  our own columns
            "ORDER BY size DESC, id LIMIT $2",
            artist_id,
            number,
        )
    return [FileRow(*row) for row in rows]


async def usage(artist_id: str) -> Usage:
    async with hf.transaction() as tx:
        used = await used_by(tx, artist_id)
        [(kept,)] = await tx.fetch(f"{_BYTES} AND deleted_at IS NULL) AS kept", artist_id)
        [(number,)] = await tx.fetch(
            "SELECT count(*) FROM files WHERE artist_id = $1 AND deleted_at IS NULL AND key IS NOT NULL",
            artist_id,
        )
    return Usage(used, used - int(kept), settings.quota_bytes, int(number))


async def reorder(
    artist_id: str, post_id: str, file_ids: Sequence[str], *, tx: Tx | None = None
) -> list[FileRow]:
    """All files of the post, in their new order."""
    async with inside(tx) as own:
        await _check_open(own, artist_id, post_id)
        present = [each.id for each in await _of_post(own, post_id)]
        if sorted(present) != sorted(file_ids):
            raise Invalid([Fault("files", f"Name each of the {len(present)} files of this post once.")])
        for position, file_id in enumerate(file_ids):
            await own.execute("UPDATE files SET position = $1 WHERE id = $2", position, file_id)
        return await _of_post(own, post_id)


async def describe(artist_id: str, file_id: str, alt: str, *, tx: Tx | None = None) -> FileRow:
    """What is to be seen on it, for those who cannot see it."""
    if len(alt) > _ALT_MOST:
        raise Invalid([Fault("alt", f"The description has at most {_ALT_MOST:,} characters.")])
    async with inside(tx) as own:
        await _one(own, artist_id, file_id)
        await own.execute("UPDATE files SET alt = $1 WHERE id = $2", alt.strip(), file_id)
        return await _one(own, artist_id, file_id)


async def delete(artist_id: str, file_id: str, *, tx: Tx | None = None) -> FileRow:
    """It rests for a week, in which it can be had back. Twice is the same."""
    async with inside(tx) as own:
        found = await _one(own, artist_id, file_id)
        if found.post_id is not None:
            await _check_open(own, artist_id, found.post_id)
        await own.execute(
            "UPDATE files SET deleted_at = $1 WHERE id = $2 AND deleted_at IS NULL", await hf.now(), file_id
        )
        return await _one(own, artist_id, file_id)


async def restore(artist_id: str, file_id: str, *, tx: Tx | None = None) -> FileRow:
    """To its post; to a new draft, when that is gone or has gone on."""
    now = await hf.now()
    async with inside(tx) as own:
        found = await _one(own, artist_id, file_id)
        if found.deleted_at is None:
            return found
        if found.key is None or found.deleted_at <= now - RESTORABLE:
            raise TooLate("This file was deleted more than a week ago, and is gone.", "gone")
        post_id = found.post_id
        if post_id is None or not await _is_open(own, artist_id, post_id):
            post_id = await posts.make(own, artist_id, Details(title=title_of(found.name)))
        await own.execute(
            "UPDATE files SET deleted_at = NULL, post_id = $1 WHERE id = $2 AND deleted_at IS NOT NULL",
            post_id,
            file_id,
        )
        return await _one(own, artist_id, file_id)


async def link(artist_id: str, file_id: str) -> Link:
    """To the file itself, for a quarter of an hour, saved under the artist's name for it."""
    found = await get(artist_id, file_id)
    if found.key is None or found.deleted_at is not None:
        raise NotHere("file")
    with within(tenant=artist_id):
        return await hf.blobs.link_get(found.key, download=found.name)


async def preview(artist_id: str, file_id: str) -> Reading:
    """A small picture of it, as WebP or JPEG."""
    found = await get(artist_id, file_id)
    if found.preview_key is None:
        raise NotHere("preview")
    with within(tenant=artist_id):
        try:
            return await hf.blobs.open(found.preview_key)
        except BlobMissing:
            raise NotHere("preview") from None


async def _one(tx: Tx, artist_id: str, file_id: str) -> FileRow:
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM files WHERE id = $1 AND artist_id = $2",  # noqa: S608  our own columns
        file_id,
        artist_id,
    )
    if not rows:
        raise NotHere("file")
    return FileRow(*rows[0])


async def _of_post(tx: Tx, post_id: str) -> list[FileRow]:
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM files WHERE post_id = $1 AND deleted_at IS NULL ORDER BY position, id",  # noqa: S608  our own columns
        post_id,
    )
    return [FileRow(*row) for row in rows]


async def _is_open(tx: Tx, artist_id: str, post_id: str) -> bool:
    post = await post_of(tx, artist_id, post_id)
    return post.state in EDITABLE and post.state is not State.SCHEDULED


async def _check_open(tx: Tx, artist_id: str, post_id: str) -> None:
    if not await _is_open(tx, artist_id, post_id):
        post = await post_of(tx, artist_id, post_id)
        raise TooLate(f"The post is {post.state}: its files stay as they are.", post.state)
