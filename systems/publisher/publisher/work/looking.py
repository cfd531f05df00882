"""What DeviantArt shows, through the cache: served for 5 minutes as it is, for 2 hours while somebody makes it new, and never older."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.errors import RateLimited
from publisher.core import deviantart, hf, settings
from publisher.outside.deviantart import DeviantArt
from publisher.outside.records import Folder, Page, Topic
from publisher.work.access import with_access

FRESH, STALE = 300.0, 7_200.0  # seconds
PAGE = 24  # deviations
_PATIENCE = 10.0  # seconds for one answer: somebody may wait for it
_TRIES, _TURN = 6, 2.0  # a page waits for its turn in the artist's pace, up to so many seconds each time
NAMES = {"dailydeviations": "date", "tags": "tag", "topic": "topic"}  # what each kind of browsing asks for
T = TypeVar("T")
_pause = asyncio.sleep


@hf.cached(fresh=FRESH, stale=STALE, key="folders:{artist_id}", tags=("gallery:{artist_id}",), on="store")
async def folders(artist_id: str) -> list[Folder]:
    return await ask(artist_id, lambda site, token: site.folders(token))


@hf.cached(
    fresh=FRESH, stale=STALE, key="folder:{artist_id}:{folder}:{offset}", tags=("gallery:{artist_id}",), on="store"
)  # fmt: skip
async def contents(artist_id: str, folder: str, offset: int) -> Page:
    return await ask(
        artist_id, lambda site, token: site.gallery(token, folder=folder, offset=offset, limit=PAGE)
    )


@hf.cached(fresh=FRESH, stale=STALE, key="home:{artist_id}:{offset}", on="store")
async def home(artist_id: str, offset: int) -> Page:
    """What DeviantArt recommends to this artist."""
    query = {"offset": offset, "limit": PAGE}
    return await ask(artist_id, lambda site, token: site.browse(token, "/browse/home", query))


# What is the same for all is asked for with the login of whoever comes first, and shared.
@hf.cached(fresh=FRESH, stale=STALE, key="browse:{kind}:{about}:{offset}", ignore=("artist_id",), on="store")
async def browse(artist_id: str, kind: str, about: str, offset: int) -> Page:
    query = {NAMES[kind]: about, "offset": offset, "limit": PAGE}
    return await ask(artist_id, lambda site, token: site.browse(token, f"/browse/{kind}", query))


@hf.cached(fresh=FRESH, stale=STALE, key="tag-names:{begin}", ignore=("artist_id",), on="store")
async def tag_names(artist_id: str, begin: str) -> list[str]:
    found = await ask(artist_id, lambda site, token: site.tags(token, begin))
    return [each.tag_name for each in found]


@hf.cached(fresh=FRESH, stale=STALE, key="topics", ignore=("artist_id",), on="store")
async def topics(artist_id: str) -> list[Topic]:
    return await ask(artist_id, lambda site, token: site.topics(token))


async def ask(artist_id: str, call: Callable[[DeviantArt, str], Awaitable[T]]) -> T:
    """One call through the guard, in the artist's pace."""
    guard = deviantart.keyed(artist_id)
    async with DeviantArt.open(settings.deviantart_url, min(_PATIENCE, settings.call_timeout_s)) as site:
        for tries_left in reversed(range(_TRIES)):
            try:
                return await guard.call(with_access, artist_id, lambda token: call(site, token))
            except RateLimited as refusal:
                turn = refusal.retry_after
                if not tries_left or turn is None or turn > _TURN:
                    raise
            await _pause(turn)
    raise AssertionError("the last try returns or raises")
