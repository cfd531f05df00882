"""Artists who log in at the simulator, and their drafts: made by the program's own verbs."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import httpx2
import publisher_kit as kit
from publisher.core import hf
from publisher.outside import login

PARALLEL = 8


async def log_in(name: str, client: httpx2.AsyncClient) -> kit.Artist:
    """As a person does: allowed in the simulator's page, the code exchanged."""
    asked = login.ask()
    answer = await client.post(asked.url, data={"artist": name})
    code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
    pair = await login.exchange(code, asked.verifier)
    artist, now = kit.Artist(None, name), await hf.now()
    async with hf.transaction() as tx:
        await tx.execute(
            "INSERT INTO artists (id, userid, username, mail, zone, jitter, notices, is_on, post_count, made_at) "
            "VALUES ($1, $2, $3, $4, 'UTC', 0, '{}', $5, 0, $6)",
            artist.id, f"user-{name}", name, f"{name}@example.org", True, now,
        )  # fmt: skip
        await tx.execute(
            "INSERT INTO logins (artist_id, state, access, refresh, access_until, refresh_until, version, told, why, changed_at) "
            "VALUES ($1, 'active', $2, $3, $4, $5, 1, '', '', $6)",
            artist.id, artist.sealed(pair.access.reveal(), "access"), artist.sealed(pair.refresh.reveal(), "refresh"),
            now + pair.access_lasts, now + pair.refresh_lasts, now,
        )  # fmt: skip
    return artist


async def artists(number: int) -> list[kit.Artist]:
    room = asyncio.Semaphore(PARALLEL)

    async def one(place: int) -> kit.Artist:
        async with room:
            return await log_in(f"artist-{place:03}", client)

    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        return list(await asyncio.gather(*map(one, range(number))))


async def drafts(people: list[kit.Artist], number: int, first: int) -> list[tuple[kit.Artist, str]]:
    """So many, given out in turn; each title is there once, so that the ledger can tell them apart."""
    room = asyncio.Semaphore(PARALLEL)

    async def one(place: int) -> tuple[kit.Artist, str]:
        artist = people[place % len(people)]
        async with room:
            return artist, await artist.draft(f"Work {first + place:05}")

    return list(await asyncio.gather(*map(one, range(number))))
