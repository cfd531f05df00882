"""Saved views: filters of the queue under a name, for the officer who has saved them."""

from __future__ import annotations

from dataclasses import dataclass

from admissions.core import hf
from admissions.desk.refusals import Invalid, NotHere
from admissions.domain.forms import Wrong
from admissions.ids import new_id

NAME_MOST, QUERY_MOST, VIEWS_MOST = 60, 500, 50


@dataclass(frozen=True)
class View:
    id: str
    name: str
    query: str


async def of(person_id: str) -> list[View]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, name, query FROM saved_views WHERE person_id = $1 ORDER BY made_at, id LIMIT $2",
            person_id,
            VIEWS_MOST,
        )
    return [View(*row) for row in rows]


async def save(person_id: str, name: str, query: str) -> None:
    """Under a name that is there already: the new filters take its place."""
    kept = name.strip()
    if not 0 < len(kept) <= NAME_MOST or len(query) > QUERY_MOST:
        raise Invalid([Wrong("view", "view_wrong", (NAME_MOST,))])
    if len(await of(person_id)) >= VIEWS_MOST:
        raise Invalid([Wrong("view", "views_many", (VIEWS_MOST,))])
    async with hf.transaction() as tx:
        await tx.execute(
            "INSERT INTO saved_views (id, person_id, name, query, made_at) VALUES ($1, $2, $3, $4, $5) "
            "ON CONFLICT (person_id, name) DO UPDATE SET query = excluded.query",
            new_id(), person_id, kept, query, await hf.now(),
        )  # fmt: skip


async def remove(person_id: str, view_id: str) -> None:
    async with hf.transaction() as tx:
        if not await tx.execute(
            "DELETE FROM saved_views WHERE id = $1 AND person_id = $2", view_id, person_id
        ):
            raise NotHere
