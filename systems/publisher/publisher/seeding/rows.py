"""Rows of a planned post: the post, its file with a preview, and its history."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from holdfast import within
from holdfast.blobs import Staged
from publisher.core import hf
from publisher.domain.states import State
from publisher.happenings import PUBLISHER, YOU
from publisher.ids import new_id
from publisher.seeding import art
from publisher.seeding.plan import TEXT, Planned
from publisher.tables import File, Happening, Post

_BEGUN = (State.SCHEDULED, State.UNKNOWN)  # drafts, of which the desk makes what they are to be
_SIZES = ((960, 960), (1200, 900), (900, 1200))


async def add(session: AsyncSession, artist_id: str, planned: Planned, stored: Stored, now: float) -> Post:
    """The post and all that belongs to it. A published one keeps its preview alone."""
    made_at = min(now, (planned.wished_at or now) - 5 * 86_400) - planned.number * 61
    post = Post(
        id=new_id(), artist_id=artist_id, title=planned.title, details=msgspec.json.encode(_details(planned)).decode(),
        state=State.DRAFT if planned.state in _BEGUN else planned.state,
        source="tool" if planned.state is State.REVIEW else "page", made_at=made_at, changed_at=made_at + 600,
    )  # fmt: skip
    if planned.wished_at is not None and planned.state not in _BEGUN:
        post.job_id, post.wished_at, post.due_at = str(uuid4()), planned.wished_at, planned.wished_at + 30
    if planned.state is State.PUBLISHED:
        _mark_published(post, planned)
    if planned.state is State.FAILED:
        post.reason = "DeviantArt refused the file: it is larger than what your account may upload."
        post.advice = "Choose a smaller file, then try again."
    session.add(post)
    await session.flush()
    await _file(session, post, stored)
    session.add_all(_history(post, planned))
    return post


def _details(planned: Planned) -> dict[str, object]:
    """As domain.posts.Details, without the title."""
    answers: dict[str, object] = {"mature": False, "ai_made": False, "no_ai": True, "agreed": True}
    return {
        "description": TEXT if planned.has_text else "",
        "tags": planned.tags if planned.state is not State.REVIEW else [],
        "comments": True,
        **(answers if planned.is_complete and planned.state is not State.REVIEW else {"ai_made": False}),
    }


def _mark_published(post: Post, planned: Planned) -> None:
    wished = planned.wished_at or 0.0
    deviation = str(uuid5(NAMESPACE_URL, post.id)).upper()
    post.published_at, post.sent_at = wished + planned.late, wished + planned.late - 4
    post.itemid, post.deviationid = 9_007_199_254_740_993 + planned.number, deviation
    post.url = f"https://www.deviantart.com/ada-arc/art/{post.title.replace(' ', '-')}-{1_094_000_000 + planned.number}"
    post.changed_at = post.published_at


@dataclass(frozen=True)
class Stored:
    """A drawn picture and its preview, staged: they are committed with the rows."""

    width: int
    height: int
    original: Staged | None  # None: thinned to its preview
    preview: Staged
    size: int
    sha256: str


async def store(artist_id: str, planned: Planned) -> Stored:
    """A published picture is thinned to its preview a week later."""
    width, height = _SIZES[planned.number % 3]
    is_kept = planned.state is not State.PUBLISHED
    side = 1 if is_kept else 2  # what is thinned needs no large picture
    image = art.draw(planned.title, planned.number, width=width // side, height=height // side)
    content = art.saved(image, "PNG")
    with within(tenant=artist_id):
        original = await hf.blobs.stage(content, content_type="image/png") if is_kept else None
        preview = await hf.blobs.stage(art.preview(image), content_type="image/jpeg")
    return Stored(width, height, original, preview, len(content), hashlib.sha256(content).hexdigest())


async def _file(session: AsyncSession, post: Post, stored: Stored) -> None:
    made = File(
        id=new_id(), artist_id=post.artist_id, post_id=post.id, name=f"{post.title.lower().replace(' ', '-')}.png",
        alt="", type="image/png", size=stored.size, sha256=stored.sha256, width=stored.width, height=stored.height,
        made_at=post.made_at,
    )  # fmt: skip
    with within(tenant=post.artist_id):
        made.preview_key = f"previews/{made.id}.jpg"
        await hf.blobs.commit(stored.preview, made.preview_key, tx=session)
        if stored.original is not None:
            made.key = f"files/{made.id}.png"
            await hf.blobs.commit(stored.original, made.key, tx=session)
    session.add(made)


def _history(post: Post, planned: Planned) -> Iterator[Happening]:
    def line(at: float, kind: str, words: str, who: str = PUBLISHER) -> Happening:
        return Happening(post_id=post.id, at=at, kind=kind, words=words, who=who)

    if planned.wished_at is None or planned.state in _BEGUN:
        return
    yield line(post.made_at, "scheduled", "Scheduled, up to 5 min later", YOU)
    if planned.state is State.CANCELLED:
        yield line(planned.wished_at - 7200, "cancelled", "Cancelled", YOU)
        return
    yield line(planned.wished_at + 1, "uploaded", f"Uploaded as item {post.itemid or 8041775523}")
    sent = post.sent_at or planned.wished_at + 12
    if planned.state is State.FAILED:
        yield line(sent, "failed", post.reason)
        return
    yield line(sent, "sent", "Sent to DeviantArt")
    yield line(post.published_at or sent, "published", "Published")


async def say_unknown(post_id: str) -> None:
    """Where no simulator is: the row says so, and there is nothing behind it."""
    now = await hf.now()
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE posts SET state = 'unknown', job_id = $1, wished_at = $2, due_at = $2, sent_at = $2, reason = $3 WHERE id = $4",
            str(uuid4()),
            now - 960,
            "We sent it and got no answer. It may be in your gallery.",
            post_id,
        )
