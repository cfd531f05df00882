"""A seeded artist: logged in at the simulator where one answers, so that what is scheduled does go out."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_URL, uuid5

import httpx2

from holdfast.vault import SecretValue
from publisher.core import hf, settings
from publisher.desk import account
from publisher.outside import login
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import DeviantArtError
from publisher.outside.records import Whoami

_PATIENCE = 5.0  # seconds


async def make_artist(name: str, *, age: float) -> str:
    """An artist who came `age` seconds ago; returns the id."""
    pair, who = await _logged_in(name) or _alone(name)
    artist = await account.login_by(pair, who)
    await account.set_zone(artist.id, "Europe/Zurich")
    await account.set_mail(artist.id, f"{name}@example.org")
    async with hf.transaction() as tx:
        await tx.execute("UPDATE artists SET made_at = made_at - $1 WHERE id = $2", age, artist.id)
    return artist.id


def _alone(name: str) -> tuple[login.Pair, Whoami]:
    """Where nobody answers: the first call will ask for a login."""
    nobody = SecretValue("seeded")
    return login.Pair(nobody, nobody, 3600), Whoami(str(uuid5(NAMESPACE_URL, name)), name)


async def _logged_in(name: str) -> tuple[login.Pair, Whoami] | None:
    """As the artist does it in a browser. None: there is no simulator here."""
    if not settings.is_simulated:
        return None
    asked = login.ask()
    with suppress(httpx2.HTTPError, DeviantArtError, login.LoginOver, KeyError):
        async with httpx2.AsyncClient(trust_env=False, timeout=_PATIENCE) as client:
            answer = await client.post(asked.url, data={"artist": name}, follow_redirects=False)
        code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
        pair = await login.exchange(code, asked.verifier)
        async with DeviantArt.open(settings.deviantart_url, _PATIENCE) as site:
            return pair, await site.whoami(pair.access.reveal())
    return None
