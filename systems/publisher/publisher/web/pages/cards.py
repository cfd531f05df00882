"""Posts as pages show them: the look of a state, its word, and the picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from publisher.core import hf
from publisher.desk.rows import PostRow
from publisher.domain.states import State
from publisher.tables import File
from publisher.web.pages.visitor import Visitor

LATE = 60.0  # seconds after its due moment a post counts as late
_LOOKS = {
    State.REVIEW: ("wait", "To review"),
    State.DRAFT: ("draft", "Draft"),
    State.SCHEDULED: ("wait", "Scheduled"),
    State.PUBLISHING: ("run", "Publishing"),
    State.PUBLISHED: ("ok", "Published"),
    State.FAILED: ("dead", "Failed"),
    State.UNKNOWN: ("unknown", "Unknown"),
    State.CANCELLED: ("off", "Cancelled"),
}
LOOKS = ("wait", "ok", "late", "unknown", "held", "dead")  # what the calendar can be filtered by
WORDS = {
    "wait": "Scheduled",
    "ok": "Published",
    "late": "Late",
    "unknown": "Unknown",
    "held": "Held",
    "dead": "Failed",
    "run": "Publishing",
    "off": "Cancelled",
}


@dataclass(frozen=True)
class Card:
    """One post in a list. `at` is when it went out, or goes."""

    id: str
    title: str
    state: str
    look: str
    word: str
    at: float | None
    picture: str | None  # the id of a file
    alt: str
    row: PostRow

    @property
    def href(self) -> str:
        return f"/posts/{self.id}"

    @property
    def can_move(self) -> bool:
        return self.state == State.SCHEDULED

    @property
    def short_word(self) -> str:
        return self.word.partition(",")[0]


def look_of(post: PostRow, visitor: Visitor) -> tuple[str, str]:
    """The look of its state, and the word for it."""
    due = post.due_at
    if post.state is State.SCHEDULED and due is not None:
        if visitor.is_held:
            return "held", "Held"
        if due < visitor.now - LATE:
            return "late", f"Late, {distance(visitor.now - due)}"
    return _LOOKS[post.state]


def distance(seconds: float) -> str:
    """11 min, 3 h 39 min, 2 days."""
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest} min" if rest and hours < 10 else f"{hours} h"
    days = round(minutes / 1440)
    return f"{days} day{'' if days == 1 else 's'}"


async def cards(posts: Sequence[PostRow], visitor: Visitor) -> list[Card]:
    covers = await covers_of(visitor.id, [post.id for post in posts])
    return [card(post, visitor, covers.get(post.id)) for post in posts]


def card(post: PostRow, visitor: Visitor, cover: tuple[str, str] | None) -> Card:
    look, word = look_of(post, visitor)
    at = post.published_at or post.due_at or post.wished_at
    picture, alt = cover or (None, "")
    return Card(post.id, post.title or "Untitled", str(post.state), look, word, at, picture, alt, post)


async def covers_of(artist_id: str, post_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The first file that has a preview, and its alternative text, of each post."""
    ids = list(post_ids)
    found: dict[str, tuple[str, str]] = {}
    async with hf.session() as session:
        for begin in range(0, len(ids), 500):
            rows = await session.execute(
                select(File.post_id, File.id, File.alt)
                .where(File.artist_id == artist_id, File.post_id.in_(ids[begin : begin + 500]))
                .where(File.deleted_at.is_(None), File.preview_key.is_not(None))
                .order_by(File.position, File.id)
            )
            for post_id, file_id, alt in rows.all():
                found.setdefault(str(post_id), (file_id, alt))
    return found
