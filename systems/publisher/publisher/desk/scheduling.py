"""When a post goes out: schedule, move, cancel, publish now, decide. Each wins or loses against a call that has begun, never half."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import SystemRandom
from zoneinfo import ZoneInfo

from holdfast import State as JobState
from holdfast import Tx
from publisher.core import hf
from publisher.desk.bulk import Result, many
from publisher.desk.inside import inside
from publisher.desk.refusals import Fault, Invalid, TooLate
from publisher.desk.rows import PostRow, files_of, post_of
from publisher.domain.choosing import jittered
from publisher.domain.posts import missing
from publisher.domain.states import State, sources
from publisher.domain.zones import at as at_in_zone
from publisher.happenings import YOU, happened
from publisher.work.access import settle_holds, tenant
from publisher.work.posts import PUBLISHED_BEFORE
from publisher.work.publishing import publish

LONGEST = 365 * 86_400.0  # seconds ahead
NOW, USUAL = 10, 0  # priorities
_chance = SystemRandom()


async def schedule(
    artist_id: str, post_id: str, at: float, *, jitter: int | None = None, tx: Tx | None = None
) -> float:
    """From draft, failed or cancelled to scheduled, with its job; when it really goes out."""
    now = await hf.now()
    _check_time(at, now)
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        seconds = await _jitter_of(own, artist_id) if jitter is None else jitter
        due = _due(at, seconds)
        await begin(own, post, at, due, who=YOU)
        return due


async def begin(tx: Tx, post: PostRow, at: float, due: float, *, who: str, priority: int = USUAL) -> str:
    """Row and job together; also for automations. Returns the job's id."""
    faults = [
        Fault(each.name, each.message) for each in missing(post.told, files=await files_of(tx, post.id))
    ]
    if faults:
        raise Invalid(faults)
    options = publish.options(
        unique=f"deviation:{post.id}", tenant=tenant(post.artist_id), at=due, priority=priority, tx=tx
    )
    handle = await options.enqueue(post.id)  # type: ignore[call-arg]  # its worker gives it the site
    if not handle.created:
        raise TooLate("This post has a publication that is under way.", post.state)
    await _move_row(tx, post, State.SCHEDULED, job_id=handle.id, wished_at=at, due_at=due)
    await happened(tx, post.id, "scheduled", f"Scheduled for {_moment(due)}", who)
    return handle.id


async def move(artist_id: str, post_id: str, at: float, *, tx: Tx | None = None) -> float:
    """Another time for a scheduled post, with new jitter."""
    now = await hf.now()
    _check_time(at, now)
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        due = _due(at, await _jitter_of(own, artist_id))
        await _moved(own, post, at, due, USUAL)
        await happened(own, post_id, "moved", f"Moved to {_moment(due)}", YOU)
        return due


async def shift(artist_id: str, post_ids: Sequence[str], days: int) -> list[Result]:
    """The same time of day, so many days later or earlier, in the artist's zone."""
    zone = ZoneInfo(await _zone_of(artist_id))

    async def one(post_id: str) -> None:
        async with hf.transaction() as tx:
            post = await post_of(tx, artist_id, post_id)
            if post.wished_at is None:
                raise TooLate("This post has no date.", post.state)
            local = datetime.fromtimestamp(post.wished_at, zone)
            at = at_in_zone((local + timedelta(days=days)).date(), local.time(), zone).timestamp()
            await move(artist_id, post_id, at, tx=tx)

    return await many(post_ids, one)


async def publish_now(artist_id: str, post_id: str, *, tx: Tx | None = None) -> str:
    """From draft, scheduled, failed or cancelled; answers at once. The id of its job."""
    now = await hf.now()
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        if post.state is State.SCHEDULED:
            await _moved(own, post, now, now, NOW)
            await happened(own, post_id, "moved", "Publish now", YOU)
            return str(post.job_id)
        return await begin(own, post, now, now, who=YOU, priority=NOW)


async def cancel(artist_id: str, post_id: str, *, tx: Tx | None = None) -> None:
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        await _move_row(own, post, State.CANCELLED)
        await hf.jobs.cancel(str(post.job_id), "cancelled by its artist", running=False, tx=own)
        await happened(own, post_id, "cancelled", "Cancelled", YOU)


async def to_draft(artist_id: str, post_id: str, *, tx: Tx | None = None) -> None:
    """A cancelled or failed post, or one in review, as a draft again."""
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        if post.state is State.SCHEDULED:
            await hf.jobs.cancel(str(post.job_id), "made a draft again", running=False, tx=own)
        await _move_row(own, post, State.DRAFT, wished_at=None, due_at=None)
        await happened(own, post_id, "draft", "A draft again", YOU)


async def decide(
    artist_id: str,
    post_id: str,
    *,
    done: bool,
    deviationid: str | None = None,
    url: str | None = None,
    tx: Tx | None = None,
) -> None:
    """The artist has looked: it is there, or it is not, and is sent again."""
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        if post.state is not State.UNKNOWN:
            raise TooLate(f"It is decided: the post is {post.state}.", post.state)
        if not done and post.reason == PUBLISHED_BEFORE:  # another item is needed
            await _upload_anew(own, post)
            return
        result = None
        if done:
            if not url:
                raise Invalid(
                    [Fault("url", "Give the address of the deviation, so that it can be found again.")]
                )
            result = {"deviationid": deviationid or "", "url": url, "at": post.sent_at or await hf.now()}
        told = await hf.unknown.resolve(
            str(post.job_id), actor=f"artist:{artist_id}", done=done, effect="publish", result=result, tx=own
        )
        if told.outcome != "queued":
            raise TooLate("It was decided in this moment.", post.state)
        words = "You found it in your gallery" if done else "You said that it is not there: it is sent again"
        if not done:
            await _move_row(own, post, State.SCHEDULED, reason="")
        await happened(own, post_id, "decided", words, YOU)


async def _upload_anew(tx: Tx, post: PostRow) -> None:
    now = await hf.now()
    await hf.jobs.cancel(str(post.job_id), "it is uploaded anew", tx=tx)
    await begin(tx, await post_of(tx, post.artist_id, post.id), now, now, who=YOU, priority=NOW)


async def try_again(artist_id: str, post_id: str, *, tx: Tx | None = None) -> None:
    """A failed post: from the recorded steps when nothing was changed since, else from the begin."""
    now = await hf.now()
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        if post.state is not State.FAILED:
            raise TooLate(f"Only what has failed is tried again; this post is {post.state}.", post.state)
        if not await _changed_since_failure(own, post):
            [told] = await hf.dead.replay([str(post.job_id)], actor=f"artist:{artist_id}", tx=own)
            if told.outcome == "queued":
                await _move_row(own, post, State.SCHEDULED, reason="", advice="")
                await happened(own, post_id, "scheduled", "Tried again", YOU)
                return
        await hf.dead.discard(
            [str(post.job_id)], actor=f"artist:{artist_id}", reason="scheduled anew", tx=own
        )
        await begin(own, post, now, now, who=YOU, priority=NOW)


async def switch(artist_id: str, is_on: bool) -> None:
    """Everything of an artist rests, or goes on."""
    async with hf.transaction() as tx:
        await tx.execute("UPDATE artists SET is_on = $1 WHERE id = $2", is_on, artist_id)
        await settle_holds(artist_id, tx)


# --- rows ---

_MAY_CHANGE = frozenset({"job_id", "wished_at", "due_at", "reason", "advice"})


async def _move_row(tx: Tx, post: PostRow, after: State, **changes: object) -> None:
    """One statement that says from where; the loser hears the present state."""
    if not changes.keys() <= _MAY_CHANGE:
        raise ValueError(f"not to be changed by a move: {sorted(changes)}")
    places = list(sources(after))
    now = await hf.now()
    values: list[object] = [post.id, post.artist_id, str(after), now, *changes.values(), *map(str, places)]
    sets = "".join(f", {name} = ${5 + number}" for number, name in enumerate(changes))
    states = ", ".join(f"${5 + len(changes) + number}" for number in range(len(places)))
    changed = await tx.execute(
        f"UPDATE posts SET state = $3, version = version + 1, changed_at = $4{sets} "  # noqa: S608  our own names
        f"WHERE id = $1 AND artist_id = $2 AND state IN ({states})",
        *values,
    )
    if not changed:
        fresh = await post_of(tx, post.artist_id, post.id)
        raise TooLate(too_late(fresh, after), fresh.state)


def too_late(post: PostRow, wished: State) -> str:
    """Why not, truthfully."""
    if post.state is State.PUBLISHING and post.sent_at is not None:
        return f"Too late: the call to DeviantArt began at {_clock(post.sent_at)}."
    if post.state is State.PUBLISHED:
        return "It is published."
    return f"The post is {post.state}, and cannot become {wished}."


async def _moved(tx: Tx, post: PostRow, at: float, due: float, priority: int) -> None:
    if post.state is not State.SCHEDULED:
        raise TooLate(too_late(post, State.SCHEDULED), post.state)
    met = await hf.jobs.move(str(post.job_id), at=due, priority=priority, tx=tx)
    if met is not JobState.QUEUED:
        fresh = await post_of(tx, post.artist_id, post.id)
        words = (
            "It is being uploaded at this moment."
            if fresh.state is State.SCHEDULED
            else too_late(fresh, State.SCHEDULED)
        )
        raise TooLate(words, fresh.state)
    changed = await tx.execute(
        "UPDATE posts SET wished_at = $1, due_at = $2, version = version + 1, changed_at = $3 "
        "WHERE id = $4 AND state = 'scheduled'",
        at,
        due,
        await hf.now(),
        post.id,
    )
    if not changed:
        fresh = await post_of(tx, post.artist_id, post.id)
        raise TooLate(too_late(fresh, State.SCHEDULED), fresh.state)


async def _changed_since_failure(tx: Tx, post: PostRow) -> bool:
    rows = await tx.fetch("SELECT max(at) FROM happenings WHERE post_id = $1 AND kind = 'failed'", post.id)
    failed_at = rows[0][0]
    return failed_at is None or post.changed_at > failed_at


async def _jitter_of(tx: Tx, artist_id: str) -> int:
    [(seconds,)] = await tx.fetch("SELECT jitter FROM artists WHERE id = $1", artist_id)
    return int(seconds)


async def _zone_of(artist_id: str) -> str:
    async with hf.transaction() as tx:
        [(zone,)] = await tx.fetch("SELECT zone FROM artists WHERE id = $1", artist_id)
    return str(zone)


def _due(at: float, jitter: int) -> float:
    """A date has whole microseconds, so it may be a little earlier than the number that it is made of."""
    return max(at, jittered(datetime.fromtimestamp(at, UTC), 0, jitter, _chance).timestamp())


def _check_time(at: float, now: float) -> None:
    if at < now - 60:
        raise Invalid([Fault("at", "This time has passed. Choose a later one, or publish now.")])
    if at > now + LONGEST:
        raise Invalid([Fault("at", "That is more than a year ahead. Choose an earlier time.")])


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%-d %B %Y, %H:%M UTC")


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
