"""Rounds as officers see them: how many applications each has, and how far their decisions are."""

from __future__ import annotations

from dataclasses import dataclass

from admissions.core import hf


@dataclass(frozen=True)
class Round:
    """`none`: complete, and nobody has drafted a decision."""

    term_id: str
    programme: str
    programme_vi: str
    term: str
    closes_at: float
    places: int
    released_at: float | None
    total: int
    none: int
    drafted: int
    checked: int
    released: int


async def listing() -> list[Round]:
    """Those with applications, the one that closes last first."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT t.id, p.name, p.name_vi, t.name, t.closes_at, t.places, t.released_at, count(*), "
            "sum(CASE WHEN a.state = 'completed' AND d.stage IS NULL THEN 1 ELSE 0 END), "
            "sum(CASE WHEN a.state = 'completed' AND d.stage = 'drafted' THEN 1 ELSE 0 END), "
            "sum(CASE WHEN a.state = 'completed' AND d.stage = 'checked' THEN 1 ELSE 0 END), "
            "sum(CASE WHEN d.stage = 'released' THEN 1 ELSE 0 END) "
            "FROM applications a JOIN terms t ON t.id = a.term_id JOIN programmes p ON p.id = t.programme_id "
            "LEFT JOIN decisions d ON d.application_id = a.id WHERE a.state <> 'draft' "
            "GROUP BY t.id, p.name, p.name_vi, t.name, t.closes_at, t.places, t.released_at ORDER BY t.closes_at DESC, t.id LIMIT 200"
        )
    return [Round(*row[:7], *(int(each) for each in row[7:])) for row in rows]


async def terms() -> list[tuple[str, str]]:
    """Ids and names of all rounds, for a filter."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT t.id, p.name, t.name FROM terms t JOIN programmes p ON p.id = t.programme_id ORDER BY t.closes_at DESC, p.position LIMIT 200"
        )
    return [(str(found), f"{programme}, {name}") for found, programme, name in rows]
