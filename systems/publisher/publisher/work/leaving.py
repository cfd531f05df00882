"""An artist disconnects or leaves: DeviantArt is told to forget the tokens; then jobs, files and rows go. Killed in between, it goes on."""

from __future__ import annotations

from holdfast import Backoff, Job, Snooze, State, Tx, within
from holdfast.vault import Place, SecretValue
from publisher.core import DESK, hf
from publisher.outside.errors import DeviantArtError
from publisher.outside.login import LoginOver, revoke
from publisher.work.access import tenant

_PAGE = 200  # rows and blobs of one turn: no transaction holds others up
_TRIES = 6  # of revoking; afterwards the tokens are forgotten here, and end there by themselves
_LOOK = 5.0  # seconds between looks at jobs that still run
_LIVE = {State.QUEUED, State.RUNNING, State.UNKNOWN, State.DEAD}


# --- the tokens ---


async def begin_revoking(artist_id: str, tx: Tx) -> None:
    rows = await tx.fetch("SELECT version FROM logins WHERE artist_id = $1", artist_id)
    if rows:
        await revoke_tokens.options(tx=tx, unique=f"revoke:{artist_id}:{rows[0][0]}").enqueue(
            artist_id, rows[0][0]
        )


@hf.task(name="account.revoke", queue=DESK, retry=Backoff(attempts=_TRIES, first=5, ceiling=600), timeout=120)
async def revoke_tokens(job: Job, artist_id: str, version: int) -> None:
    """Those of this version: a login that came meanwhile stays."""
    try:
        await _revoke(artist_id, version)
    except DeviantArtError:
        if job.attempt < _TRIES:
            raise
    async with job.commit() as tx:
        await tx.execute(
            "UPDATE logins SET access = NULL, refresh = NULL WHERE artist_id = $1 AND version = $2 AND state = 'disconnected'",
            artist_id,
            version,
        )


async def _revoke(artist_id: str, version: int | None = None) -> None:
    token = await _refresh_token(artist_id, version)
    if token is not None:
        try:
            await revoke(token)
        except LoginOver:
            return  # it was dead


async def _refresh_token(artist_id: str, version: int | None) -> SecretValue | None:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT refresh, version, state FROM logins WHERE artist_id = $1", artist_id)
    if not rows or rows[0][0] is None or (version is not None and rows[0][1:] != (version, "disconnected")):
        return None
    return hf.vault.open(rows[0][0], Place("logins", "refresh", row=artist_id, tenant=artist_id))


# --- the account ---


async def begin(artist_id: str, tx: Tx) -> None:
    await leave.options(tx=tx, unique=f"leave:{artist_id}").enqueue(artist_id)


@hf.task(name="account.leave", queue=DESK, retry=Backoff(attempts=30, first=5, ceiling=600), timeout=1800)
async def leave(job: Job, artist_id: str) -> None:
    """In an order in which nothing is left behind: what writes rows, what has bytes, what others know, and the rows at last."""
    if not await _is_leaving(artist_id):
        return
    await hf.logins.end(artist_id)
    await _end_jobs(artist_id)
    await _remove_files(job, artist_id)
    try:
        await _revoke(artist_id)
    except DeviantArtError:
        if job.attempt < _TRIES:
            raise
    await _remove_rows(artist_id)
    async with job.commit() as tx:
        await tx.execute("DELETE FROM artists WHERE id = $1", artist_id)
        await hf.tenants.resume(tenant(artist_id), by="publisher", tx=tx)


async def _is_leaving(artist_id: str) -> bool:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT left_at FROM artists WHERE id = $1", artist_id)
    return bool(rows) and rows[0][0] is not None


async def _end_jobs(artist_id: str) -> None:
    """Nothing new begins, since the artist is on hold. A call that is under way may end: it is not cut off in the middle."""
    last = None
    running = False
    while page := await hf.jobs.find(tenant=tenant(artist_id), states=_LIVE, before=last, limit=_PAGE):
        for each in page:
            met = await hf.jobs.cancel(each.id, "its artist has left", running=False)
            running = running or met is State.RUNNING
        last = page[-1].id
    if running:
        raise Snooze(_LOOK, "a post of this artist is being published")


async def _remove_files(job: Job, artist_id: str) -> None:
    """Bytes first: as long as there are rows, somebody knows of them."""
    with within(tenant=artist_id):
        last = ""
        while page := await hf.blobs.list(after=last, limit=_PAGE):
            await hf.blobs.purge(*(each.key for each in page))
            last = page[-1].key
            await job.heartbeat(note=f"files up to {last} are gone")


async def _remove_rows(artist_id: str) -> None:
    """Posts have most of the rows below them; the rest goes with the artist's own row."""
    while True:
        async with hf.transaction() as tx:
            gone = await tx.execute(
                "DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE artist_id = $1 LIMIT $2)",
                artist_id,
                _PAGE,
            )
        if not gone:
            return
