"""What pages and API show of posts: counts, lists by keyset, the calendar, and one post whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from holdfast import Tx
from publisher.core import hf
from publisher.desk.rows import COLUMNS, PostRow, post_of, post_row
from publisher.desk.waiting import Waiting, why
from publisher.domain.posts import Missing, missing
from publisher.domain.states import State

NEAR = 900.0  # seconds within which two posts are close to each other
_BY_TIME = "coalesce(published_at, due_at, changed_at)"


@dataclass(frozen=True)
class FileRow:
    id: str
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


@dataclass(frozen=True)
class HistoryLine:
    at: float
    kind: str
    words: str
    who: str


@dataclass(frozen=True)
class PostView:
    """One post with all that its page shows."""

    post: PostRow
    files: tuple[FileRow, ...]
    history: tuple[HistoryLine, ...]
    missing: tuple[Missing, ...]
    waiting: Waiting | None
    near: tuple[PostRow, ...]
    receipt: str | None  # JSON of the story


_FILE = "id, name, alt, key, preview_key, type, size, sha256, width, height, made_at"


async def counts(artist_id: str) -> dict[State, int]:
    """How many posts are in each state; none are 0."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT state, count(*) FROM posts WHERE artist_id = $1 GROUP BY state", artist_id
        )
    return dict.fromkeys(State, 0) | {State(state): int(number) for state, number in rows}


async def listing(
    artist_id: str,
    *,
    states: Collection[State],
    search: str = "",
    before: tuple[float, str] | None = None,
    after: tuple[float, str] | None = None,
    limit: int = 50,
) -> list[PostRow]:
    """The newest first, after the last one of the page before (`before`), or before the first one (`after`)."""
    values: list[object] = [artist_id, *map(str, states)]
    wheres = [f"state IN ({', '.join(f'${2 + number}' for number in range(len(states)))})"]
    if search.strip():
        values.append(f"%{_escaped(search.strip().lower())}%")
        wheres.append(
            f"(lower(title) LIKE ${len(values)} ESCAPE '!' OR lower(details) LIKE ${len(values)} ESCAPE '!')"
        )
    order = "DESC"
    if (cursor := before or after) is not None:
        values += cursor
        sign, order = ("<", "DESC") if before is not None else (">", "ASC")
        wheres.append(f"({_BY_TIME}, id) {sign} (${len(values) - 1}, ${len(values)})")
    values.append(limit)
    sql = (
        f"SELECT {COLUMNS} FROM posts WHERE artist_id = $1 AND {' AND '.join(wheres)} "  # noqa: S608  our own names
        f"ORDER BY {_BY_TIME} {order}, id {order} LIMIT ${len(values)}"
    )
    async with hf.transaction() as tx:
        found = [post_row(row) for row in await tx.fetch(sql, *values)]
    return found if order == "DESC" else found[::-1]


def time_of(post: PostRow) -> float:
    """What lists go by, and the first part of their cursor."""
    return post.published_at or post.due_at or post.changed_at


async def between(artist_id: str, begin: float, end: float) -> list[PostRow]:
    """Whatever was, or will be, published in this time, in its order."""
    sql = (
        f"SELECT {COLUMNS} FROM posts WHERE artist_id = $1 AND coalesce(published_at, due_at) >= $2 "  # noqa: S608
        "AND coalesce(published_at, due_at) < $3 AND state NOT IN ('draft', 'review') ORDER BY coalesce(published_at, due_at), id LIMIT 2000"
    )
    async with hf.transaction() as tx:
        return [post_row(row) for row in await tx.fetch(sql, artist_id, begin, end)]


async def upcoming(artist_id: str, number: int = 5) -> list[PostRow]:
    sql = (
        f"SELECT {COLUMNS} FROM posts WHERE artist_id = $1 AND state IN ('scheduled', 'publishing') "  # noqa: S608
        "ORDER BY due_at, id LIMIT $2"
    )
    async with hf.transaction() as tx:
        return [post_row(row) for row in await tx.fetch(sql, artist_id, number)]


async def needs(artist_id: str, number: int = 20) -> list[PostRow]:
    """What waits for its artist: nobody knows of it, or it has failed."""
    sql = (
        f"SELECT {COLUMNS} FROM posts WHERE artist_id = $1 AND state IN ('unknown', 'failed') "  # noqa: S608
        "ORDER BY state DESC, changed_at DESC, id LIMIT $2"
    )
    async with hf.transaction() as tx:
        return [post_row(row) for row in await tx.fetch(sql, artist_id, number)]


async def late(artist_id: str, number: int = 20) -> list[PostRow]:
    """Scheduled, and their time has passed."""
    now = await hf.now()
    sql = (
        f"SELECT {COLUMNS} FROM posts WHERE artist_id = $1 AND state = 'scheduled' AND due_at < $2 "  # noqa: S608
        "ORDER BY due_at, id LIMIT $3"
    )
    async with hf.transaction() as tx:
        return [post_row(row) for row in await tx.fetch(sql, artist_id, now - 60, number)]


async def first_files(artist_id: str, post_ids: Sequence[str]) -> dict[str, FileRow]:
    """The first file of each post, for a page of them."""
    if not post_ids:
        return {}
    places = ", ".join(f"${2 + number}" for number in range(len(post_ids)))
    sql = (
        f"SELECT post_id, {_FILE} FROM files WHERE artist_id = $1 AND post_id IN ({places}) AND deleted_at IS NULL "  # noqa: S608
        "ORDER BY position DESC, id DESC"
    )
    async with hf.transaction() as tx:
        rows = await tx.fetch(sql, artist_id, *post_ids)
    return {row[0]: FileRow(*row[1:]) for row in rows}


async def story(artist_id: str, post_id: str) -> PostView:
    """Raises NotHere when there is none of this artist."""
    async with hf.transaction() as tx:
        post = await post_of(tx, artist_id, post_id)
        rows = await tx.fetch(
            f"SELECT {_FILE} FROM files WHERE post_id = $1 AND deleted_at IS NULL ORDER BY position, id",  # noqa: S608
            post_id,
        )
        files = tuple(FileRow(*row) for row in rows)
        history = await tx.fetch(
            "SELECT at, kind, words, who FROM happenings WHERE post_id = $1 ORDER BY id DESC LIMIT 200",
            post_id,
        )
        receipt = await tx.fetch("SELECT story FROM receipts WHERE post_id = $1", post_id)
        near = await _near(tx, post)
    usable = sum(each.key is not None for each in files)
    return PostView(
        post=post,
        files=files,
        history=tuple(HistoryLine(*row) for row in history),
        missing=tuple(missing(post.told, files=usable)),
        waiting=await why(post),
        near=tuple(near),
        receipt=receipt[0][0] if receipt else None,
    )


async def _near(tx: Tx, post: PostRow) -> list[PostRow]:
    """Other posts that go out at nearly the same time."""
    if post.due_at is None or post.published_at is not None:
        return []
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM posts WHERE artist_id = $1 AND state = 'scheduled' AND due_at BETWEEN $2 AND $3 "  # noqa: S608
        "AND id <> $4 ORDER BY due_at LIMIT 3",
        post.artist_id,
        post.due_at - NEAR,
        post.due_at + NEAR,
        post.id,
    )
    return [post_row(row) for row in rows]


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
