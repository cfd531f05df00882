"""An artist's account: it begins with a login at DeviantArt, has a zone and notices, and ends when its artist says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from holdfast import Tx
from holdfast.vault import Place
from publisher.core import hf
from publisher.desk.inside import inside
from publisher.desk.refusals import Changed, Fault, Invalid, NotHere
from publisher.ids import new_id
from publisher.outside.login import Pair
from publisher.outside.records import Whoami
from publisher.work import leaving
from publisher.work.access import settle_holds
from publisher.work.mails import KINDS

JITTER_MOST = 300  # seconds
_MAIL = re.compile(r"[^\s@<>,;:\"\\]{1,64}@[^\s@<>,;:\"\\]{1,190}", re.ASCII)


@dataclass(frozen=True)
class ArtistRow:
    id: str
    userid: str
    username: str
    mail: str | None
    zone: str
    jitter: int
    notices: str  # JSON
    is_on: bool
    post_count: int
    made_at: float
    left_at: float | None

    @property
    def wanted(self) -> dict[str, bool]:
        """Which mails are sent: what nothing was said about is."""
        told: dict[str, bool] = msgspec.json.decode(self.notices)
        return {kind: told.get(kind, True) for kind in KINDS}


@dataclass(frozen=True)
class TokenState:
    """`state` is active, needs_login or disconnected; `days` are left until only a new login helps."""

    state: str
    why: str
    days: float
    until: float
    changed_at: float


_COLUMNS = ", ".join(each.name for each in fields(ArtistRow))


async def get(artist_id: str, *, tx: Tx | None = None) -> ArtistRow:
    async with inside(tx) as own:
        return await _one(own, artist_id)


async def login_by(pair: Pair, who: Whoami) -> ArtistRow:
    """The account of this DeviantArt user, new or again. What was held since the login was over goes on."""
    async with hf.transaction() as tx:
        now = await hf.now()
        [(artist_id, left_at)] = await tx.fetch(
            "INSERT INTO artists (id, userid, username, zone, jitter, notices, is_on, post_count, made_at) "
            "VALUES ($1, $2, $3, 'UTC', 300, '{}', TRUE, 0, $4) "
            "ON CONFLICT (userid) DO UPDATE SET username = excluded.username RETURNING id, left_at",
            new_id(),
            who.userid,
            who.username,
            now,
        )
        if left_at is not None:
            raise Changed("This account is being deleted. Log in again in a few minutes for a new one.")
        await _keep(tx, artist_id, pair, now)
        await settle_holds(artist_id, tx)
        return await _one(tx, artist_id)


async def _keep(tx: Tx, artist_id: str, pair: Pair, now: float) -> None:
    """This pair counts, whatever was there. A refresh of the old one that comes late meets another version."""
    sealed = [
        hf.vault.seal(token, Place("logins", column, row=artist_id, tenant=artist_id))
        for token, column in ((pair.access, "access"), (pair.refresh, "refresh"))
    ]
    await tx.execute(
        "INSERT INTO logins (artist_id, state, access, refresh, access_until, refresh_until, version, told, why, changed_at) "
        "VALUES ($1, 'active', $2, $3, $4, $5, 1, '', '', $6) ON CONFLICT (artist_id) DO UPDATE SET state = 'active', "
        "access = excluded.access, refresh = excluded.refresh, access_until = excluded.access_until, "
        "refresh_until = excluded.refresh_until, version = logins.version + 1, told = '', why = '', changed_at = excluded.changed_at",
        artist_id,
        *sealed,
        now + pair.access_lasts,
        now + pair.refresh_lasts,
        now,
    )


async def token_state(artist_id: str, *, tx: Tx | None = None) -> TokenState:
    now = await hf.now()
    async with inside(tx) as own:
        rows = await own.fetch(
            "SELECT state, why, refresh_until, changed_at FROM logins WHERE artist_id = $1", artist_id
        )
    if not rows:
        raise NotHere("account")
    [(state, why, until, changed_at)] = rows
    days = max(0.0, (until - now) / 86_400) if state == "active" else 0.0
    return TokenState(str(state), str(why), days, float(until), float(changed_at))


async def disconnect(artist_id: str, *, tx: Tx | None = None) -> None:
    """From this commit on nothing is called in the artist's name; a job tells DeviantArt to forget the tokens, and then we do."""
    async with inside(tx) as own:
        await _one(own, artist_id)
        await own.execute(
            "UPDATE logins SET state = 'disconnected', why = 'You have disconnected DeviantArt.', changed_at = $1 "
            "WHERE artist_id = $2 AND state <> 'disconnected'",
            await hf.now(),
            artist_id,
        )
        await settle_holds(artist_id, own)
        await leaving.begin_revoking(artist_id, own)


async def leave(artist_id: str, *, username: str, tx: Tx | None = None) -> None:
    """Delete the account with all that it has. The name is typed, so that nobody does it by a slip."""
    async with inside(tx) as own:
        found = await _one(own, artist_id)
        if username.strip().lower() != found.username.lower():
            raise Invalid([Fault("username", f"Write {found.username} to delete this account.")])
        now = await hf.now()
        await own.execute("UPDATE artists SET left_at = $1 WHERE id = $2 AND left_at IS NULL", now, artist_id)
        await own.execute(
            "UPDATE api_keys SET revoked_at = $1 WHERE artist_id = $2 AND revoked_at IS NULL", now, artist_id
        )
        await own.execute("UPDATE automations SET is_on = FALSE WHERE artist_id = $1", artist_id)
        await settle_holds(artist_id, own)
        await leaving.begin(artist_id, own)


# --- what an artist sets ---


async def set_zone(artist_id: str, zone: str, *, tx: Tx | None = None) -> ArtistRow:
    if zone not in available_timezones():
        raise Invalid([Fault("zone", f"{zone[:50]!r} is no time zone. Choose one such as Europe/Zurich.")])
    return await _set(artist_id, "zone", ZoneInfo(zone).key, tx)


async def set_jitter(artist_id: str, seconds: int, *, tx: Tx | None = None) -> ArtistRow:
    """How much later than wished a post may go out, by chance."""
    if not 0 <= seconds <= JITTER_MOST:
        raise Invalid([Fault("jitter", f"It is from 0 to {JITTER_MOST} seconds, not {seconds}.")])
    return await _set(artist_id, "jitter", seconds, tx)


async def set_mail(artist_id: str, mail: str | None, *, tx: Tx | None = None) -> ArtistRow:
    wanted = (mail or "").strip()
    if wanted and not _MAIL.fullmatch(wanted):
        raise Invalid([Fault("mail", "This is no mail address. Write one such as ada@example.org.")])
    return await _set(artist_id, "mail", wanted or None, tx)


async def set_notices(artist_id: str, wanted: Mapping[str, bool], *, tx: Tx | None = None) -> ArtistRow:
    """Which mails are sent; those that are not named stay as they are."""
    if strange := sorted(set(wanted) - set(KINDS)):
        raise Invalid(
            [Fault("notices", f"There is no mail {strange[0][:50]!r}. These are: {', '.join(KINDS)}.")]
        )
    async with inside(tx) as own:
        found = await _one(own, artist_id)
        text = msgspec.json.encode({**found.wanted, **wanted}).decode()
        return await _set(artist_id, "notices", text, own)


async def _set(artist_id: str, column: str, value: object, tx: Tx | None) -> ArtistRow:
    async with inside(tx) as own:
        await own.execute(f"UPDATE artists SET {column} = $1 WHERE id = $2", value, artist_id)  # noqa: S608  our own column
        return await _one(own, artist_id)


async def _one(tx: Tx, artist_id: str) -> ArtistRow:
    rows = await tx.fetch(f"SELECT {_COLUMNS} FROM artists WHERE id = $1", artist_id)  # noqa: S608  our own columns
    if not rows:
        raise NotHere("account")
    found = dict(zip((each.name for each in fields(ArtistRow)), rows[0], strict=True))
    return ArtistRow(**{**found, "is_on": bool(found["is_on"])})
