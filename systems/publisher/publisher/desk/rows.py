"""Rows of posts as records, read in a transaction and always by whom they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from holdfast import Tx
from publisher.desk.refusals import NotHere
from publisher.details import unpacked
from publisher.domain.posts import Details
from publisher.domain.states import State


@dataclass(frozen=True)
class PostRow:
    id: str
    artist_id: str
    state: State
    title: str
    details: str
    only_stash: bool
    source: str
    automation_id: str | None
    job_id: str | None
    wished_at: float | None
    due_at: float | None
    sent_at: float | None
    published_at: float | None
    itemid: int | None
    deviationid: str | None
    url: str | None
    reason: str
    advice: str
    version: int
    made_at: float
    changed_at: float

    @property
    def told(self) -> Details:
        return unpacked(self.title, self.details)


COLUMNS = ", ".join(each.name for each in fields(PostRow))


def post_row(values: Sequence[object]) -> PostRow:
    found = dict(zip((each.name for each in fields(PostRow)), values, strict=True))
    return PostRow(**{**found, "state": State(str(found["state"])), "only_stash": bool(found["only_stash"])})  # type: ignore[arg-type]


async def post_of(tx: Tx, artist_id: str, post_id: str) -> PostRow:
    """Raises NotHere when there is none of this artist."""
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM posts WHERE id = $1 AND artist_id = $2",  # noqa: S608  our own columns
        post_id,
        artist_id,
    )
    if not rows:
        raise NotHere
    return post_row(rows[0])


async def files_of(tx: Tx, post_id: str) -> int:
    """How many files a post has."""
    [(number,)] = await tx.fetch(
        "SELECT count(*) FROM files WHERE post_id = $1 AND deleted_at IS NULL AND key IS NOT NULL", post_id
    )
    return int(number)
