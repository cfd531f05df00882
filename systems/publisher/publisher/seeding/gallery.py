"""The newest published posts in the simulated gallery, too, so that its folders have something to show."""

from __future__ import annotations

import asyncio

import httpx2
from sqlalchemy import select

from holdfast import within
from publisher.core import hf, settings
from publisher.desk import reading
from publisher.domain.states import State
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import DeviantArtError
from publisher.tables import File
from publisher.work.access import access_of

_MOST = 8  # posts
_PAUSE = 0.8  # seconds between two of them: DeviantArt takes 18 calls of an artist in 6


async def hang(artist_id: str) -> int:
    """How many hang there: none where no simulator answers."""
    if not settings.is_simulated:
        return 0
    posts = await reading.listing(artist_id, states=[State.PUBLISHED], limit=_MOST)
    done = 0
    try:
        token = (await access_of(artist_id)).token.reveal()
        async with DeviantArt.open(settings.deviantart_url, 10) as site:
            folders = await site.folders(token)
            for number, post in enumerate(reversed(posts)):
                folder = folders[number % 2].folderid
                deviationid, url = await _publish(site, token, post.id, post.title, folder)
                await _note(post.id, deviationid, url)
                done += 1
                await asyncio.sleep(_PAUSE)
    except (httpx2.HTTPError, DeviantArtError):
        return done
    return done


async def _publish(site: DeviantArt, token: str, post_id: str, title: str, folder: str) -> tuple[str, str]:
    item = await site.submit(
        token, (f"{post_id}.jpg", await _preview(post_id), "image/jpeg"), [("title", title)]
    )
    fields = [("itemid", str(item.itemid)), ("agree_submission", "1"), ("agree_tos", "1"), ("is_mature", "0"), ("galleryids[]", folder)]  # fmt: skip
    answer = await site.publish(token, fields)
    return answer.deviationid, answer.url


async def _preview(post_id: str) -> bytes:
    async with hf.session() as session:
        found = await session.execute(select(File.artist_id, File.preview_key).where(File.post_id == post_id))
        artist_id, key = found.one()
    with within(tenant=str(artist_id)):
        return await hf.blobs.read(str(key))


async def _note(post_id: str, deviationid: str, url: str) -> None:
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE posts SET deviationid = $1, url = $2 WHERE id = $3", deviationid, url, post_id
        )
