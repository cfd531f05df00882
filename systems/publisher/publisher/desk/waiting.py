"""Why a post is not out yet, in one sentence, and when it is tried next."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import JobRecord
from holdfast import State as JobState
from publisher.core import hf
from publisher.desk.rows import PostRow
from publisher.domain.states import State


@dataclass(frozen=True)
class Waiting:
    """`kind` is a state of the pages: wait, run, held, late, unknown."""

    kind: str
    words: str
    next_try: float | None = None
    is_late: bool = False


LATE = 60.0  # seconds after its time


async def why(post: PostRow) -> Waiting | None:
    """None: it does not wait."""
    if post.job_id is None or post.state not in (State.SCHEDULED, State.PUBLISHING, State.UNKNOWN):
        return None
    job, now = await hf.jobs.get(post.job_id), await hf.now()
    if job is None:
        return None
    is_late = post.state is State.SCHEDULED and post.due_at is not None and now > post.due_at + LATE
    if job.state is JobState.UNKNOWN:
        return Waiting("unknown", "We sent it and got no answer. It may be in your gallery.", job.look_at)
    if job.state is JobState.RUNNING:
        is_sent = post.state is State.PUBLISHING
        return Waiting("run", "It is being sent." if is_sent else "It is being uploaded.")
    return await _held(post, job, "late" if is_late else "wait", is_late=is_late)


async def _held(post: PostRow, job: JobRecord, kind: str, *, is_late: bool) -> Waiting:
    by = job.held_by
    match None if by is None else str(by.reason):
        case "paused":
            return Waiting(
                "held", (None if by is None else by.words) or "Publishing is paused.", None, is_late
            )
        case "guard":
            return await _behind_guard(post.artist_id, kind, is_late=is_late)
        case "time":
            return Waiting(kind, _of_time(post, job.attempt), None if by is None else by.until, is_late)
        case "unknown_task":
            return Waiting(kind, "The publisher is being restarted.", None, is_late)
        case _:
            return Waiting(kind, "It is next in line.", None, is_late)


def _of_time(post: PostRow, attempts: int) -> str:
    if attempts == 0:
        return "It waits for its time."
    return f"{post.reason or 'The last try did not go well.'} It is tried again."


async def _behind_guard(artist_id: str, kind: str, *, is_late: bool) -> Waiting:
    """DeviantArt limits this artist, or everybody."""
    look = await hf.guards.look("deviantart", key=f"artist:{artist_id}")
    if str(look.state) != "closed":
        return Waiting(
            kind,
            "DeviantArt has trouble: nobody is published until it is well again.",
            look.paused_until,
            is_late,
        )
    if look.paused_until is not None:
        return Waiting(
            kind, "DeviantArt limits your account at the moment. Nothing to do.", look.paused_until, is_late
        )
    if look.interval is not None:
        return Waiting(
            kind, f"DeviantArt limits you to one call in {look.interval:.0f} s. Nothing to do.", None, is_late
        )
    return Waiting(kind, "It waits for its turn among your posts.", None, is_late)
