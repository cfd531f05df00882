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
_IN_TURN = "It waits for its turn among your posts."


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
            words, until = await _behind_guard(post.artist_id) or (_IN_TURN, None)
            return Waiting(kind, words, until, is_late)
        case "time":
            return await _until_a_time(post, job, kind, is_late=is_late)
        case "unknown_task":
            return Waiting(kind, "The publisher is being restarted.", None, is_late)
        case _:
            return Waiting(kind, "It is next in line.", None, is_late)


async def _until_a_time(post: PostRow, job: JobRecord, kind: str, *, is_late: bool) -> Waiting:
    """Its own time, the pause after a failed try, or one that DeviantArt has asked for."""
    until = None if job.held_by is None else job.held_by.until
    if job.attempt:
        reason = post.reason or "The last try did not go well."
        return Waiting(kind, f"{reason} It is tried again.", until, is_late)
    if post.due_at is not None and post.due_at < await hf.now():  # its own time is not what it waits for
        words, rest = await _behind_guard(post.artist_id) or (_IN_TURN, None)
        return Waiting(kind, words, rest or until, is_late)
    return Waiting(kind, "It waits for its time.", until, is_late)


async def _behind_guard(artist_id: str) -> tuple[str, float | None] | None:
    """DeviantArt limits this artist, or everybody, and until when."""
    look = await hf.guards.look("deviantart", key=f"artist:{artist_id}")
    if str(look.state) != "closed":
        return "DeviantArt has trouble: nobody is published until it is well again.", look.paused_until
    if look.paused_until is not None:
        return "DeviantArt limits your account at the moment. Nothing to do.", look.paused_until
    if look.interval is not None:
        return f"DeviantArt limits you to one call in {look.interval:.0f} s. Nothing to do.", None
    return None
