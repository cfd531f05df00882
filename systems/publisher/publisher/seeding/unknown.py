"""A post of which nobody knows: really sent to the simulator, which takes it and hangs up, while a twin of it is in the gallery."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx2
from sqlalchemy import select

from publisher.core import PUBLISHING, hf, settings
from publisher.desk import scheduling
from publisher.domain.states import State
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import DeviantArtError
from publisher.seeding import art
from publisher.seeding.plan import Planned
from publisher.tables import Post
from publisher.work.access import access_of

_PATIENCE = 60.0  # seconds until it is unknown
_PICTURE_SIDE = 320


async def lose_answer(artist_id: str, post_id: str, planned: Planned) -> bool:
    """False: there is no simulator that could lose one."""
    if not settings.is_simulated or not await _prepared(artist_id, planned):
        return False
    await scheduling.publish_now(artist_id, post_id)
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE), hf.worker({PUBLISHING: 1}, poll=0.1):
            while await _state_of(post_id) in (State.SCHEDULED, State.PUBLISHING):  # noqa: ASYNC110  only the row says it
                await asyncio.sleep(0.2)
    return await _state_of(post_id) is State.UNKNOWN


async def _prepared(artist_id: str, planned: Planned) -> bool:
    """A twin in the gallery, and a simulator that loses the next answer."""
    content = art.saved(art.draw(planned.title, planned.number + 1, width=_PICTURE_SIDE, height=_PICTURE_SIDE), "PNG")  # fmt: skip
    fault = {"endpoint": "stash/publish", "kind": "lost", "times": 1}
    try:
        token = (await access_of(artist_id)).token.reveal()
        async with DeviantArt.open(settings.deviantart_url, 10) as site:
            item = await site.submit(token, ("twin.png", content, "image/png"), [("title", planned.title)])
            agreed = [
                ("itemid", str(item.itemid)),
                ("agree_submission", "1"),
                ("agree_tos", "1"),
                ("is_mature", "0"),
            ]
            await site.publish(token, agreed)
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
            answer = await client.put(f"{settings.deviantart_url}/_sim/faults", json=fault)
        return bool(answer.is_success)
    except (httpx2.HTTPError, DeviantArtError):
        return False


async def _state_of(post_id: str) -> State:
    async with hf.session() as session:
        found = await session.execute(select(Post.state).where(Post.id == post_id))
        return State(found.scalar_one())
