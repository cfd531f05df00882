"""What the task that publishes reads and writes of a post: each move is one statement that says from where."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import Cancel, Tx
from publisher.core import hf
from publisher.details import unpacked
from publisher.domain.posts import Details
from publisher.domain.states import State
from publisher.happenings import happened

PUBLISHED_BEFORE = "DeviantArt says that it was published before, and it is not in your gallery."


@dataclass(frozen=True)
class Due:
    """A post that is to be published now."""

    id: str
    artist_id: str
    state: State
    details: Details
    only_stash: bool
    version: int


@dataclass(frozen=True)
class Upload:
    """Its file."""

    key: str
    name: str
    type: str


async def load(post_id: str, *, replayed_by: str | None = None) -> Due:
    """`replayed_by` is a job that runs: when its post has failed, an operator has replayed it."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT artist_id, state, title, details, only_stash, version FROM posts WHERE id = $1", post_id
        )
    if not rows:
        raise Cancel("The post is gone.")
    [(artist_id, state, title, details, only_stash, version)] = rows
    if state == State.FAILED and replayed_by is not None and await _taken_up(post_id, replayed_by):
        state = State.SCHEDULED
    if State(state) not in (State.SCHEDULED, State.PUBLISHING, State.UNKNOWN):
        raise Cancel(f"The post is {state}.")
    return Due(post_id, artist_id, State(state), unpacked(title, details), bool(only_stash), version)


async def _taken_up(post_id: str, job_id: str) -> bool:
    """It goes on from where it was, unless its artist has changed the post since: what is uploaded would not be what is there."""
    async with hf.transaction() as tx:
        changed = await tx.execute(
            "UPDATE posts SET state = 'scheduled', reason = '', advice = '' WHERE id = $1 AND job_id = $2 AND state = 'failed' "
            "AND changed_at <= (SELECT max(at) FROM happenings WHERE post_id = $1 AND kind = 'failed')",
            post_id,
            job_id,
        )
        if changed:
            await happened(tx, post_id, "scheduled", "Tried again by an operator")
    return bool(changed)


async def upload_of(post_id: str) -> Upload | None:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT key, name, type FROM files WHERE post_id = $1 AND deleted_at IS NULL AND key IS NOT NULL ORDER BY position, id",
            post_id,
        )
    return Upload(*rows[0]) if rows else None


async def begin_sending(post_id: str, job_id: str) -> float:
    """The last moment in which a cancel may win: from here on the call is under way. Its time."""
    now = await hf.now()
    async with hf.transaction() as tx:
        changed = await tx.execute(
            "UPDATE posts SET state = 'publishing', sent_at = $1, reason = '', advice = '' "
            "WHERE id = $2 AND job_id = $3 AND state IN ('scheduled', 'publishing', 'unknown')",
            now,
            post_id,
            job_id,
        )
        if changed:
            await happened(tx, post_id, "sent", "Sent to DeviantArt")
    if not changed:
        raise Cancel("It was cancelled before the call began.")
    return now


async def was_not_sent(post_id: str, job_id: str, reason: str, advice: str) -> None:
    """The call did nothing: the post waits for its next try."""
    async with hf.transaction() as tx:
        changed = await tx.execute(
            "UPDATE posts SET state = 'scheduled', reason = $1, advice = $2 WHERE id = $3 AND job_id = $4 AND state = 'publishing'",
            reason,
            advice,
            post_id,
            job_id,
        )
        if changed:
            await happened(tx, post_id, "refused", reason)


async def note_reason(post_id: str, job_id: str, reason: str, advice: str) -> None:
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE posts SET reason = $1, advice = $2 WHERE id = $3 AND job_id = $4",
            reason,
            advice,
            post_id,
            job_id,
        )


async def keep_item(post_id: str, itemid: int, tx: Tx) -> None:
    await tx.execute("UPDATE posts SET itemid = $1 WHERE id = $2", itemid, post_id)


async def uploaded_at_of(post_id: str) -> float:
    """What was published before that is not this post."""
    async with hf.transaction() as tx:
        [(at,)] = await tx.fetch(
            "SELECT max(at) FROM happenings WHERE post_id = $1 AND kind = 'uploaded'", post_id
        )
    return float(at or 0)


async def was_published_before(post_id: str) -> bool:
    """Whether DeviantArt has said so of its item: then it is not sent again, wherever it may be."""
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT reason FROM posts WHERE id = $1", post_id)
    return bool(rows) and rows[0][0] == PUBLISHED_BEFORE


async def note_published_before(post_id: str, job_id: str) -> None:
    await note_reason(post_id, job_id, PUBLISHED_BEFORE, "Look for it in your gallery, and give its address.")


async def known_deviations(artist_id: str, found: list[str]) -> set[str]:
    """Which of these belong to other posts of the artist."""
    async with hf.transaction() as tx:
        rows = [
            row
            for each in found
            for row in await tx.fetch(
                "SELECT deviationid FROM posts WHERE artist_id = $1 AND deviationid = $2", artist_id, each
            )
        ]
    return {row[0] for row in rows}
