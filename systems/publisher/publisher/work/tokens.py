"""Logins are renewed before they end, every six hours, one run in the fleet; whose could not be is told a week and a day before, and at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from holdfast import Backoff, Job
from publisher.core import TOKENS, hf
from publisher.outside.errors import DeviantArtError
from publisher.work import mails
from publisher.work.access import NeedsLogin, end_login, renew

RENEW_BEFORE = 7 * 86_400.0  # seconds before its end a login is renewed
WARN, URGENT = 7 * 86_400.0, 86_400.0  # seconds before its end its artist is told
OVER = "The login has ended: it could not be renewed in time."
_PAGE = 100
_log = logging.getLogger(__name__)


class Outcome(msgspec.Struct, frozen=True):
    """What became of one login: renewed, failed (it is tried again), needs_login or over."""

    artist: str
    outcome: str
    why: str = ""


class _Login(msgspec.Struct, frozen=True):
    artist_id: str
    name: str
    version: int
    until: float
    told: str


@hf.cron("0 */6 * * *", schedule="token-maintenance")
@hf.task(
    name="publisher.tokens",
    queue=TOKENS,
    concurrency=("token-maintenance", 1),
    retry=Backoff(attempts=5, first=30, ceiling=600),
    timeout=3 * 3600,
)
async def maintain(job: Job) -> list[Outcome]:
    """One after the other: what fails for one is logged, and the next one has its turn."""
    outcomes: list[Outcome] = []
    last = ""
    while found := await _ending(last):
        last = found[-1].artist_id
        for login in found:
            outcome = await _kept(login)
            outcomes.append(outcome)
            level = logging.INFO if outcome.outcome == "renewed" else logging.WARNING
            _log.log(level, "login of %s: %s %s", outcome.artist, outcome.outcome, outcome.why)
        await job.heartbeat(note=f"{len(outcomes)} logins")
    return outcomes


async def _kept(login: _Login) -> Outcome:
    if login.until <= await hf.now():
        await _end(login)
        return Outcome(login.name, "over", OVER)
    try:
        await renew(login.artist_id, than=login.version)
    except NeedsLogin as error:
        return Outcome(login.name, "needs_login", str(error))
    except Exception as error:  # noqa: BLE001  whatever is wrong with this one, the others have their turn
        await _warn(login)
        why = error.reason if isinstance(error, DeviantArtError) else f"{type(error).__name__}: {error}"
        return Outcome(login.name, "failed", why)
    return Outcome(login.name, "renewed")


async def _warn(login: _Login) -> None:
    """After the attempt, by what is left. The row's `told` and the mail are one commit."""
    left = login.until - await hf.now()
    if left > WARN:
        return
    is_urgent = left <= URGENT
    before: Sequence[str] = ("", "warned") if is_urgent else ("", "")
    async with hf.transaction() as tx:
        changed = await tx.execute(
            "UPDATE logins SET told = $1 WHERE artist_id = $2 AND version = $3 AND state = 'active' AND told IN ($4, $5)",
            "urgent" if is_urgent else "warned",
            login.artist_id,
            login.version,
            *before,
        )
        if changed:
            await mails.login_ends(login.artist_id, login.version, login.until, tx, is_urgent=is_urgent)


async def _end(login: _Login) -> None:
    """Its time is over: everything is held, and the mail says how many posts."""
    async with hf.transaction() as tx:
        changed = await tx.execute(
            "UPDATE logins SET told = 'expired' WHERE artist_id = $1 AND version = $2 AND state = 'active'",
            login.artist_id,
            login.version,
        )
        if changed:
            await end_login(login.artist_id, login.version, OVER, tx)


async def _ending(after: str) -> list[_Login]:
    """Active logins that end within a week, or have ended."""
    soon = await hf.now() + RENEW_BEFORE
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT l.artist_id, a.username, l.version, l.refresh_until, l.told FROM logins l JOIN artists a ON a.id = l.artist_id "
            "WHERE l.state = 'active' AND l.refresh_until <= $1 AND a.left_at IS NULL AND l.artist_id > $2 ORDER BY l.artist_id LIMIT $3",
            soon,
            after,
            _PAGE,
        )
    return [_Login(*row) for row in rows]
