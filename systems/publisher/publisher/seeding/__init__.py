"""`publisher seed`: two artists to look at, one new, one with a year of history. A database that has artists is left alone."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from publisher.core import hf
from publisher.desk import scheduling
from publisher.domain.states import State
from publisher.seeding import plan, rows
from publisher.seeding.artists import make_artist
from publisher.seeding.gallery import hang
from publisher.seeding.shelf import fill
from publisher.seeding.unknown import lose_answer
from publisher.tables import Artist

_JUST_LATE = 50.0  # seconds: more is refused
_BATCH = 25  # posts in a transaction
YEAR, NEW = "ada-arc", "bo-linnet"


async def seed(past: int = plan.PAST) -> str:
    """What was done, in a sentence. `hf` is open. `past` is how many posts the year has, of which the last ones are made."""
    async with hf.session() as session:
        if await session.scalar(select(func.count()).select_from(Artist)):
            return "There are artists already: nothing was changed."
    now = await hf.now()
    artist_id = await make_artist(YEAR, age=365 * 86_400)
    await make_artist(NEW, age=600)
    posts = await _posts(artist_id, now, past)
    await _count(artist_id)
    await hang(artist_id)
    await fill(artist_id)
    return f"{YEAR} has {posts} posts and a year of history; {NEW} has none yet."


async def _count(artist_id: str) -> None:
    """As if each had been counted when it was published."""
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE artists SET post_count = (SELECT count(*) FROM posts WHERE artist_id = $1 AND state = 'published') WHERE id = $1",
            artist_id,
        )


async def _posts(artist_id: str, now: float, past: int) -> int:
    today = datetime.fromtimestamp(now, plan.ZONE).date()
    planned = [*plan.past(today)[plan.PAST - past :], *plan.coming(now)]
    for begin in range(0, len(planned), _BATCH):
        await _add(artist_id, planned[begin : begin + _BATCH], now)
    return len(planned)


async def _add(artist_id: str, planned: list[plan.Planned], now: float) -> None:
    stored = [await rows.store(artist_id, each) for each in planned]
    made: list[tuple[str, plan.Planned]] = []
    async with hf.session() as session, session.begin():
        for each, picture in zip(planned, stored, strict=True):
            post = await rows.add(session, artist_id, each, picture, now)
            made.append((post.id, each))
    for post_id, each in made:
        if each.state is State.UNKNOWN and not await lose_answer(artist_id, post_id, each):
            await rows.say_unknown(post_id)
    for post_id, each in made:
        if each.state is State.SCHEDULED and each.wished_at is not None:
            at = max(each.wished_at, await hf.now() - _JUST_LATE)
            await scheduling.schedule(artist_id, post_id, at, jitter=None if at == each.wished_at else 0)
