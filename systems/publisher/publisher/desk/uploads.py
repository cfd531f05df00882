"""Bring files in: by a form or by a link past us. Told by their content, counted against limits, and noticed when they are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from holdfast import Tx, within
from holdfast.blobs import BlobMissing, Staged, Upload
from holdfast.web import Uploads
from publisher.core import hf, settings
from publisher.desk import posts
from publisher.desk.inside import inside
from publisher.desk.refusals import Fault, Invalid, NoRoom, NotHere, TooLate
from publisher.desk.rows import post_of
from publisher.domain.posts import TITLE_MOST, Details
from publisher.domain.states import EDITABLE, State
from publisher.ids import new_id
from publisher.present import is_here
from publisher.work import previews

TYPES: Mapping[str, str] = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
}
FILE_MOST = 50_000_000  # bytes
FILES_MOST = 100  # of one post, and of one form
FORM_MOST = 500_000_000  # bytes
NOTHING_SAID = Details()
Mode = Literal["each", "one"]  # a post for each file, or one for all
uploads = Uploads(hf.blobs, types=list(TYPES), total=FORM_MOST, part=FILE_MOST, parts=FILES_MOST + 20)


@dataclass(frozen=True)
class Arriving:
    """A file that is staged. `name` is the artist's."""

    name: str
    staged: Staged


@dataclass(frozen=True)
class Arrival:
    """What became of it: a file of a post, or nothing since the same bytes are there already."""

    name: str
    file_id: str | None
    post_id: str | None
    same_as: str | None = None  # the post that has this very file


async def receive(
    artist_id: str,
    arriving: Sequence[Arriving],
    *,
    mode: Mode = "each",
    post_id: str | None = None,
    source: str = "page",
    state: State = State.DRAFT,
    details: Details = NOTHING_SAID,
    again: bool = False,
    tx: Tx | None = None,
) -> list[Arrival]:
    """Files become new posts, or come to `post_id`. What the artist has already comes only `again`. Refused: nothing of it is kept."""
    with within(tenant=artist_id):
        try:
            async with inside(tx) as own:
                room = await _room(own, artist_id, sum(each.staged.size for each in arriving))
                await _check_number(own, artist_id, post_id, len(arriving))
                wanted = _Wanted(mode, post_id, source, state, details, again)
                return await _taken(own, room, arriving, wanted)
        except Exception:
            for each in arriving:
                await hf.blobs.discard(each.staged)
            raise


@dataclass(frozen=True)
class _Room:
    artist_id: str
    now: float


async def _room(tx: Tx, artist_id: str, size: int) -> _Room:
    """Two uploads at once cannot both take the last of the room."""
    if not await is_here(tx, artist_id):
        raise NotHere("account")
    used = await used_by(tx, artist_id)
    if used + size > settings.quota_bytes:
        left = max(0, settings.quota_bytes - used)
        raise NoRoom(
            f"Your files may take {settings.quota_bytes / 1e9:.1f} GB; {left / 1e6:,.1f} MB are left, and these take "
            f"{size / 1e6:,.1f} MB. Delete some first: the largest are on the settings page."
        )
    return _Room(artist_id, await hf.now())


async def used_by(tx: Tx, artist_id: str) -> int:
    """Bytes, with those of files that can still be had back."""
    [(size,)] = await tx.fetch(
        "SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT key, size FROM files WHERE artist_id = $1 AND key IS NOT NULL) AS kept",
        artist_id,
    )
    return int(size)


async def _check_number(tx: Tx, artist_id: str, post_id: str | None, more: int) -> None:
    if more > FILES_MOST:
        raise NoRoom(f"Send at most {FILES_MOST} files at a time.")
    if post_id is None:
        return
    post = await post_of(tx, artist_id, post_id)
    if post.state not in EDITABLE or post.state is State.SCHEDULED:
        raise TooLate(f"The post is {post.state}: its files stay as they are.", post.state)
    [(number,)] = await tx.fetch(
        "SELECT count(*) FROM files WHERE post_id = $1 AND deleted_at IS NULL", post_id
    )
    if number + more > FILES_MOST:
        raise NoRoom(f"A post has at most {FILES_MOST} files; this one has {number}.")


@dataclass(frozen=True)
class _Wanted:
    """What the files are to become."""

    mode: Mode
    post_id: str | None
    source: str
    state: State
    details: Details
    again: bool

    async def post(self, tx: Tx, artist_id: str, name: str) -> str:
        details = replace(self.details, title=self.details.title or title_of(name))
        return await posts.make(tx, artist_id, details, source=self.source, state=self.state)


async def _taken(tx: Tx, room: _Room, arriving: Sequence[Arriving], wanted: _Wanted) -> list[Arrival]:
    found: list[Arrival] = []
    known: dict[str, str] = {}
    target = wanted.post_id
    for each in arriving:
        same = known.get(each.staged.sha256) or await _same(tx, room.artist_id, each.staged.sha256)
        if same is not None and not wanted.again:
            await hf.blobs.discard(each.staged)
            found.append(Arrival(each.name, None, None, same))
            continue
        if target is None or (wanted.mode == "each" and wanted.post_id is None):
            target = await wanted.post(tx, room.artist_id, each.name)
        known[each.staged.sha256] = target
        found.append(replace(await _add(tx, room, each, target), same_as=same))
    return found


async def _add(tx: Tx, room: _Room, each: Arriving, post_id: str) -> Arrival:
    file_id = new_id()
    key = f"files/{file_id}.{TYPES[each.staged.content_type]}"
    await hf.blobs.commit(each.staged, key, tx=tx)
    [(last,)] = await tx.fetch("SELECT coalesce(max(position), -1) FROM files WHERE post_id = $1", post_id)
    await tx.execute(
        "INSERT INTO files (id, artist_id, post_id, position, name, alt, key, type, size, sha256, made_at) "
        "VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, $9, $10)",
        file_id,
        room.artist_id,
        post_id,
        last + 1,
        each.name,
        key,
        each.staged.content_type,
        each.staged.size,
        each.staged.sha256,
        room.now,
    )
    if each.staged.content_type.startswith("image/"):
        await previews.make.options(tx=tx).enqueue(file_id)
    return Arrival(each.name, file_id, post_id)


async def _same(tx: Tx, artist_id: str, sha256: str) -> str | None:
    rows = await tx.fetch(
        "SELECT post_id FROM files WHERE artist_id = $1 AND sha256 = $2 AND deleted_at IS NULL AND post_id IS NOT NULL "
        "ORDER BY made_at LIMIT 1",
        artist_id,
        sha256,
    )
    return rows[0][0] if rows else None


def title_of(name: str) -> str:
    """What a file is called, as a first title."""
    words = " ".join(PurePosixPath(name).stem.replace("_", " ").split())
    return words[:TITLE_MOST].strip()


# --- past us, by a link ---


async def begin(artist_id: str, *, kind: str, size: int) -> Upload:
    """Allow the client to send so many bytes of this type; then it says `complete`."""
    if kind not in TYPES:
        raise Invalid([Fault("type", f"{kind} is not taken. These are: {', '.join(TYPES)}.")])
    if not 1 <= size <= FILE_MOST:
        raise Invalid([Fault("size", f"A file has 1 to {FILE_MOST:,} bytes, not {size:,}.")])
    async with hf.transaction() as tx:
        await _room(tx, artist_id, size)
    with within(tenant=artist_id):
        return await hf.blobs.link_put(content_type=kind, length=size)


async def sent(artist_id: str, upload_id: str, name: str, *, kind: str, size: int) -> Arriving:
    """What the client has sent by its link, checked by its content; then `receive` it."""
    with within(tenant=artist_id):
        try:
            staged = await uploads.receive_sent(upload_id, content_type=kind, length=size)
        except BlobMissing:
            raise NotHere("upload") from None
    return Arriving(shown_name(name), staged)


def shown_name(name: str) -> str:
    """The last part of it, in letters that can be seen."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(letter for letter in last if letter.isprintable())[:200] or "file"


async def discard(staged: Staged) -> None:
    """It came with a wish that is refused."""
    await hf.blobs.discard(staged)
