"""Times to suggest, and posts that would go out at nearly the same time."""

from __future__ import annotations

from datetime import time, timedelta

from publisher.desk import reading
from publisher.desk.rows import PostRow
from publisher.domain.states import State
from publisher.domain.zones import at as moment_at
from publisher.web.pages.times import day_of
from publisher.web.pages.visitor import DAY, Visitor

_EVENING = time(18)
_AHEAD = 60  # days


async def next_free(visitor: Visitor) -> float:
    """18:00 of the first day on which nothing goes out."""
    today = day_of(visitor.now, visitor.tz)
    taken = await reading.between(visitor.id, visitor.now, visitor.now + (_AHEAD + 1) * DAY)
    days = {day_of(post.due_at or 0.0, visitor.tz) for post in taken}
    for step in range(_AHEAD):
        day = today + timedelta(days=step)
        at = moment_at(day, _EVENING, visitor.tz).timestamp()
        if day not in days and at > visitor.now + 600:
            return at
    return visitor.now + DAY


async def close_to(visitor: Visitor, at: float, post_id: str) -> list[PostRow]:
    """Other posts of the artist within a quarter of an hour."""
    found = await reading.between(visitor.id, at - reading.NEAR, at + reading.NEAR)
    return [post for post in found if post.id != post_id and post.state is State.SCHEDULED]
