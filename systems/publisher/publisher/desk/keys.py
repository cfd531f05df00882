"""API keys: for the artist's own programs. The secret is shown once; what is stored of it is a hash and its first characters."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, fields

from holdfast import Tx
from publisher.core import hf
from publisher.desk.inside import inside
from publisher.desk.refusals import Fault, Invalid, NoRoom, NotHere
from publisher.ids import new_id
from publisher.present import is_here

MOST = 20  # of one artist, that are good
_PREFIX = 12  # characters that are shown
_FORM = re.compile(r"pub_[0-9a-f]{64}", re.ASCII)
_SIGN = 60.0  # seconds between two notes of its use: not one write for each request


@dataclass(frozen=True)
class KeyRow:
    id: str
    name: str
    prefix: str
    made_at: float
    used_at: float | None
    revoked_at: float | None


@dataclass(frozen=True)
class NewKey:
    """`secret` is known to nobody from now on but to who reads it here."""

    key: KeyRow
    secret: str


_COLUMNS = ", ".join(each.name for each in fields(KeyRow))


async def make(artist_id: str, name: str, *, tx: Tx | None = None) -> NewKey:
    name = name.strip()
    if not 1 <= len(name) <= 100:
        raise Invalid(
            [Fault("name", "Give the key a name, of 1 to 100 characters, by which you know its program.")]
        )
    secret = f"pub_{secrets.token_hex(32)}"
    made = KeyRow(new_id(), name, secret[:_PREFIX], await hf.now(), None, None)
    async with inside(tx) as own:
        if not await is_here(own, artist_id):
            raise NotHere("account")
        [(number,)] = await own.fetch(
            "SELECT count(*) FROM api_keys WHERE artist_id = $1 AND revoked_at IS NULL", artist_id
        )
        if number >= MOST:
            raise NoRoom(f"There are {MOST} keys already. Revoke one that nobody needs.")
        await own.execute(
            "INSERT INTO api_keys (id, artist_id, name, prefix, sha256, made_at) VALUES ($1, $2, $3, $4, $5, $6)",
            made.id,
            artist_id,
            made.name,
            made.prefix,
            _hash(secret),
            made.made_at,
        )
    return NewKey(made, secret)


async def listing(artist_id: str) -> list[KeyRow]:
    """Also those that were revoked, behind the others."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM api_keys WHERE artist_id = $1 "  # noqa: S608  our own columns
            "ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, made_at DESC, id LIMIT 200",
            artist_id,
        )
    return [KeyRow(*row) for row in rows]


async def revoke(artist_id: str, key_id: str, *, tx: Tx | None = None) -> KeyRow:
    """From this commit on it opens nothing, in any process. Twice is the same."""
    async with inside(tx) as own:
        await own.execute(
            "UPDATE api_keys SET revoked_at = $1 WHERE id = $2 AND artist_id = $3 AND revoked_at IS NULL",
            await hf.now(),
            key_id,
            artist_id,
        )
        return await _one(own, artist_id, key_id)


async def delete(artist_id: str, key_id: str, *, tx: Tx | None = None) -> None:
    """The line in the list goes, too."""
    async with inside(tx) as own:
        await _one(own, artist_id, key_id)
        await own.execute("DELETE FROM api_keys WHERE id = $1 AND artist_id = $2", key_id, artist_id)


async def who(secret: str) -> str | None:
    """Whose it is, and when it was used; None: nobody's, or revoked. It is looked up by its hash, so time tells nothing."""
    if not _FORM.fullmatch(secret):
        return None
    now = await hf.now()
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT k.id, k.artist_id, k.used_at FROM api_keys k JOIN artists a ON a.id = k.artist_id "
            "WHERE k.sha256 = $1 AND k.revoked_at IS NULL AND a.left_at IS NULL",
            _hash(secret),
        )
        if not rows:
            return None
        [(key_id, artist_id, used_at)] = rows
        if used_at is None or now - used_at >= _SIGN:
            await tx.execute("UPDATE api_keys SET used_at = $1 WHERE id = $2", now, key_id)
    return str(artist_id)


async def _one(tx: Tx, artist_id: str, key_id: str) -> KeyRow:
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM api_keys WHERE id = $1 AND artist_id = $2",  # noqa: S608  our own columns
        key_id,
        artist_id,
    )
    if not rows:
        raise NotHere("API key")
    return KeyRow(*rows[0])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
