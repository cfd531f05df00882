"""A valid access token of an artist: one refresher at a time, the new pair durable before it is used, and no loop when it is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from holdfast import Tx
from holdfast.errors import LockHeld
from holdfast.vault import Place, SecretValue
from publisher.core import hf
from publisher.outside.errors import AccessOver
from publisher.outside.login import LoginOver, Pair, refresh
from publisher.work import mails

T = TypeVar("T")
EARLY = 300.0  # seconds before its end an access token is renewed
_PATIENCE = 60.0  # seconds that one waits for another's refresh
WHY = "Log in at DeviantArt again."


class NeedsLogin(Exception):
    """The refresh token is dead: only a new login helps."""


class Busy(Exception):
    """Another is renewing it, and does not come to an end."""


@dataclass(frozen=True)
class Access:
    token: SecretValue
    until: float
    version: int


async def access_of(artist_id: str) -> Access:
    """The present access token, renewed when its end is near."""
    found = await _read(artist_id)
    return found if found.until - await hf.now() > EARLY else await renew(artist_id, than=found.version)


async def with_access(artist_id: str, call: Callable[[str], Awaitable[T]]) -> T:
    """The call with a valid token; one that has just ended is renewed, once."""
    access = await access_of(artist_id)
    try:
        return await call(access.token.reveal())
    except AccessOver:
        access = await renew(artist_id, than=access.version)
        return await call(access.token.reveal())


async def renew(artist_id: str, *, than: int) -> Access:
    """A newer pair than that of version `than`: whoever comes second gets what the first has brought."""
    try:
        async with hf.lock(f"login:{artist_id}", lease=_PATIENCE, wait=_PATIENCE):
            found = await _read(artist_id)
            if found.version > than:
                return found
            return await _renewed(artist_id, found.version)
    except LockHeld:
        raise Busy("Another process renews this login at the moment.") from None


async def _renewed(artist_id: str, version: int) -> Access:
    """The old pair is dead from the call on: what is lost here is lost for good, and a new login is asked for."""
    try:
        pair = await refresh(await _refresh_token(artist_id, version))
    except LoginOver as error:
        async with hf.transaction() as tx:
            await end_login(artist_id, version, str(error), tx)
        raise NeedsLogin(WHY) from None
    async with hf.transaction() as tx:
        await store_pair(artist_id, pair, version, tx)
    return await _read(artist_id)


async def store_pair(artist_id: str, pair: Pair, version: int, tx: Tx) -> bool:
    """Keep a new pair, unless there is a newer one. An empty token never takes the place of one that is there."""
    now = await hf.now()
    changed = await tx.execute(
        "UPDATE logins SET access = $1, refresh = $2, access_until = $3, refresh_until = $4, version = version + 1, told = '', "
        "state = 'active', why = '', changed_at = $5 WHERE artist_id = $6 AND version = $7",
        hf.vault.seal(pair.access, _place(artist_id, "access")),
        hf.vault.seal(pair.refresh, _place(artist_id, "refresh")),
        now + pair.access_lasts,
        now + pair.refresh_lasts,
        now,
        artist_id,
        version,
    )
    return changed == 1


async def end_login(artist_id: str, version: int, why: str, tx: Tx) -> None:
    """Hold everything of the artist until a new login: one statement for all posts, one mail for one dead token."""
    now = await hf.now()
    changed = await tx.execute(
        "UPDATE logins SET state = 'needs_login', why = $1, changed_at = $2 WHERE artist_id = $3 AND version = $4 AND state = 'active'",
        why,
        now,
        artist_id,
        version,
    )
    if changed:
        await settle_holds(artist_id, tx)
        await mails.login_wanted(artist_id, version, tx)


async def settle_holds(artist_id: str, tx: Tx) -> None:
    """Hold or let go the artist's posts, as the login and the switch of the artist say."""
    rows = await tx.fetch(
        "SELECT a.is_on, a.left_at, l.state FROM artists a JOIN logins l ON l.artist_id = a.id WHERE a.id = $1",
        artist_id,
    )
    [(is_on, left_at, state)] = rows
    key = tenant(artist_id)
    await hf.tenants.resume(key, by="publisher", tx=tx)  # a pause keeps its first words
    if left_at is not None:
        await hf.tenants.pause(key, reason="This account is being deleted.", by="publisher", tx=tx)
    elif state != "active":
        await hf.tenants.pause(key, reason=WHY, by="publisher", tx=tx)
    elif not is_on:
        await hf.tenants.pause(key, reason="You have switched publishing off.", by="publisher", tx=tx)


def tenant(artist_id: str) -> str:
    return artist_id  # for jobs and files alike: a colon cannot be in a key


def _place(artist_id: str, column: str) -> Place:
    return Place("logins", column, row=artist_id, tenant=artist_id)


async def _read(artist_id: str) -> Access:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT access, access_until, version, state FROM logins WHERE artist_id = $1", artist_id
        )
    if not rows or rows[0][3] != "active" or rows[0][0] is None:
        raise NeedsLogin(WHY)
    sealed, until, version, _ = rows[0]
    return Access(hf.vault.open(sealed, _place(artist_id, "access")), until, version)


async def _refresh_token(artist_id: str, version: int) -> SecretValue:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT refresh FROM logins WHERE artist_id = $1 AND version = $2", artist_id, version
        )
    if not rows or rows[0][0] is None:
        raise NeedsLogin(WHY)
    return hf.vault.open(rows[0][0], _place(artist_id, "refresh"))
