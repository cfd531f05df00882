"""What in the artist's gallery may be a post of which nobody knows whether it was published."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from holdfast import Cancel
from holdfast.errors import HoldfastError
from publisher.core import settings
from publisher.desk.rows import PostRow
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import DeviantArtError
from publisher.outside.records import Deviation
from publisher.web.pages.cards import distance
from publisher.work.access import Busy, NeedsLogin
from publisher.work.publishing import look_for

_PATIENCE = 5.0  # seconds that the page waits for the gallery


@dataclass(frozen=True)
class Candidate:
    deviationid: str
    title: str
    url: str
    at: float
    words: str  # when it was published, and how long after we sent it


@dataclass(frozen=True)
class Looked:
    """`is_known` False: the gallery could not be seen right now."""

    candidates: tuple[Candidate, ...]
    is_known: bool


async def found(post: PostRow) -> Looked | None:
    """None: it was settled in this moment, and is unknown no more."""
    try:
        async with asyncio.timeout(_PATIENCE), DeviantArt.open(settings.deviantart_url, _PATIENCE) as site:
            seen = await look_for(site, post.id)
    except Cancel:
        return None
    except (HoldfastError, DeviantArtError, NeedsLogin, Busy, TimeoutError):
        return Looked((), is_known=False)
    return Looked(tuple(_candidate(each, post) for each in seen), is_known=True)


def _candidate(each: Deviation, post: PostRow) -> Candidate:
    after = each.published_at - (post.sent_at or each.published_at)
    words = "" if abs(after) > 86_400 else _distance(after)
    return Candidate(each.deviationid, each.title, each.url, each.published_at, words)


def _distance(after: float) -> str:
    if abs(after) < 2:
        return "as we sent it"
    if abs(after) < 60:
        return f"{abs(after):.0f} s {'after we sent it' if after >= 0 else 'before we sent it'}"
    return f"{distance(abs(after))} {'after we sent it' if after >= 0 else 'before we sent it'}"
