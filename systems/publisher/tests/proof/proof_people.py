"""Artists who log in at the simulator, also again when a mail asks them to, and their drafts: made by the program's own verbs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import publisher_kit as kit
from publisher.core import hf, settings
from publisher.desk import account
from publisher.outside import login
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import NobodyKnows, Passing

from holdfast.errors import Refused

PARALLEL = 8
_LATE = (httpx2.TransportError, Passing, NobodyKnows, TimeoutError, Refused)
LOOK = 1.0  # seconds between looks at who is asked to log in again


async def log_in(name: str, client: httpx2.AsyncClient, site: DeviantArt) -> kit.Artist:
    """As a person does: allowed in the simulator's page, the code exchanged."""
    asked = login.ask()
    answer = await client.post(asked.url, data={"artist": name})
    code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
    pair = await login.exchange(code, asked.verifier)
    found = await account.login_by(pair, await site.whoami(pair.access.reveal()))
    return kit.Artist(None, name, found.id)


async def artists(number: int) -> list[kit.Artist]:
    room = asyncio.Semaphore(PARALLEL)

    async def one(place: int) -> kit.Artist:
        async with room:
            artist = await _in_the_end(f"artist-{place:03}", client, site)
            await account.set_mail(artist.id, f"{artist.name}@example.org")
            return artist

    async with _outside() as (client, site):
        return list(await asyncio.gather(*map(one, range(number))))


async def _in_the_end(name: str, client: httpx2.AsyncClient, site: DeviantArt) -> kit.Artist:
    """A person tries again, when a busy machine answers late."""
    while True:
        try:
            return await log_in(name, client, site)
        except _LATE:
            continue


async def drafts(people: list[kit.Artist], number: int, first: int) -> list[tuple[kit.Artist, str]]:
    """So many, given out in turn; each title is there once, so that the ledger can tell them apart."""
    room = asyncio.Semaphore(PARALLEL)

    async def one(place: int) -> tuple[kit.Artist, str]:
        artist = people[place % len(people)]
        async with room:
            return artist, await artist.draft(f"Work {first + place:05}")

    return list(await asyncio.gather(*map(one, range(number))))


class Returning:
    """Who reads a mail that asks for a new login, and logs in. A worker that dies in the middle of a refresh takes the pair with it."""

    def __init__(self) -> None:
        self.times = 0

    async def go_on(self) -> None:
        """Until it is cancelled."""
        async with _outside() as (client, site):
            while True:
                await asyncio.sleep(LOOK)
                for name in await _shut_out():
                    try:
                        await log_in(name, client, site)
                    except _LATE:
                        continue
                    self.times += 1


async def _shut_out() -> list[str]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT username FROM artists JOIN logins ON artist_id = id WHERE state = 'needs_login'"
        )
    return [name for (name,) in rows]


async def asked_to_log_in() -> int:
    """Mails that say so, with one for each pair of tokens."""
    async with hf.transaction() as tx:
        [(number,)] = await tx.fetch("SELECT count(*) FROM notices WHERE cause LIKE 'login:%'")
    return int(number)


@asynccontextmanager
async def _outside() -> AsyncIterator[tuple[httpx2.AsyncClient, DeviantArt]]:
    """A browser, and the API behind it."""
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=60) as client,
        DeviantArt.open(settings.deviantart_url, 10.0) as site,
    ):
        yield client, site
