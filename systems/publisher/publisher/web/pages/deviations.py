"""Deviations as pages show them: our own preview where it is ours, else DeviantArt's, else none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from publisher.core import hf, settings
from publisher.outside.records import Deviation, Page
from publisher.tables import Post
from publisher.web.pages.cards import covers_of, distance
from publisher.web.pages.visitor import Visitor

# From where DeviantArt serves them; the simulated one does so itself.
PICTURES = (
    settings.deviantart_url.rstrip("/")
    if settings.is_simulated
    else "https://images-wixmp-ed30a86b8c4ca887773594c2.wixmp.com"
)


@dataclass(frozen=True)
class Shown:
    id: str
    title: str
    url: str
    by: str
    at: float
    picture: str  # a path of ours or an address of theirs; empty: none
    post_id: str | None
    favourites: int


async def shown(page: Page, visitor: Visitor) -> list[Shown]:
    """Without those that are gone."""
    there = [each for each in page.results if not each.is_deleted]
    ours = await _ours(visitor.id, [each.deviationid for each in there])
    covers = await covers_of(visitor.id, ours.values())
    return [_one(each, ours.get(each.deviationid), covers) for each in there]


def _one(each: Deviation, post_id: str | None, covers: dict[str, tuple[str, str]]) -> Shown:
    cover = covers.get(post_id) if post_id else None
    return Shown(
        id=each.deviationid, title=each.title or "Untitled", url=each.url, by=str(each.author.get("username", "")),
        at=each.published_at, picture=f"/pictures/{cover[0]}" if cover else _theirs(each), post_id=post_id,
        favourites=each.stats.get("favourites", 0),
    )  # fmt: skip


def _theirs(each: Deviation) -> str:
    """Only from where the policy of our pages lets pictures come."""
    sources = [str(thumb.get("src", "")) for thumb in each.thumbs]
    return next((src for src in reversed(sources) if src.startswith(f"{PICTURES}/")), "")


async def _ours(artist_id: str, deviations: Sequence[str]) -> dict[str, str]:
    if not deviations:
        return {}
    async with hf.session() as session:
        rows = await session.execute(
            select(Post.deviationid, Post.id).where(
                Post.artist_id == artist_id, Post.deviationid.in_(deviations)
            )
        )
        return {str(deviation): str(post_id) for deviation, post_id in rows.all()}


def age_words(age: float) -> str:
    return "seen now" if age < 5 else f"seen {distance(age)} ago" if age >= 60 else f"seen {age:.0f} s ago"
