"""Publish one post: upload it, make the one call that must not be made twice, and mark it, as steps that no crash repeats."""

from __future__ import annotations

import logging
from functools import partial

import msgspec

from holdfast import Backoff, CannotTell, Found, Job, NotFound, Reject, Snooze, Tx, within
from publisher.core import PUBLISHING, deviantart, hf, settings
from publisher.desk import sales
from publisher.happenings import happened
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import (
    NOT_DONE,
    AccessOver,
    AlreadyDone,
    AppLimited,
    DeviantArtError,
    NobodyKnows,
    Refused,
)
from publisher.outside.forms import publish_fields, submit_fields
from publisher.outside.records import Deviation, Item, Page
from publisher.work import mails, posts
from publisher.work import resources as _resources  # noqa: F401  whoever enqueues must know who gives it its site
from publisher.work.access import Busy, NeedsLogin, access_of, renew, with_access

NAME = "publisher.publish"
LOOKS = Backoff(attempts=12, first=settings.look_again_s, ceiling=60 * settings.look_again_s)
PAGES = 4  # of the gallery, of 24 each, in which a post is looked for
_DIED = "worker died under it"  # of a job that has ended so often enough
EARLIER = 120.0  # seconds that DeviantArt's clock may be behind ours
_log = logging.getLogger(__name__)


class Sent(msgspec.Struct, frozen=True):
    """What the call has brought."""

    deviationid: str
    url: str
    at: float  # when it was made


@hf.task(
    name=NAME,
    queue=PUBLISHING,
    retry=Backoff(attempts=settings.attempts, first=5, ceiling=320),
    timeout=settings.job_timeout_ms / 1000,
)
async def publish(job: Job, post_id: str, site: DeviantArt) -> str:
    """The URL, or nothing when it was for sta.sh only."""
    due = await posts.load(post_id, replayed_by=job.id)
    guard = deviantart.keyed(due.artist_id)
    try:
        item = await job.step("submit", partial(_submit, site), post_id, guard=guard)
        if due.only_stash:
            await _store(job, due, item, None)
            return ""
        sent = await job.effect(
            "publish",
            partial(_publish, site, job.id),
            post_id,
            item.itemid,
            policy="at_most_once",
            reconcile=partial(_find, site),
            not_done=(*NOT_DONE, NeedsLogin, Busy),
            settle=settings.settle_s,
            look_again=LOOKS,
            guard=guard,
        )
    except NeedsLogin as error:  # everything of this artist is held by now
        raise Snooze(1, str(error)) from None
    except AppLimited as error:  # of all artists: the breaker counts it, and no post is charged
        raise Snooze(5, error.reason) from None
    except Refused as error:
        await posts.note_reason(post_id, job.id, error.reason, error.advice)
        raise Reject(error.reason) from None
    await _store(job, due, item, sent)
    return str(sent.url)


# --- calls ---


async def _submit(site: DeviantArt, post_id: str) -> Item:
    """What is uploaded twice is two items in sta.sh, of which one is never published."""
    due, file = await posts.load(post_id), await posts.upload_of(post_id)
    if file is None:
        raise Refused("The file of this post is gone.", "Add it again, and try again.")
    with within(tenant=due.artist_id):  # not that of jobs: a key takes no colon
        content = await hf.blobs.read(file.key)
    fields = submit_fields(due.details)
    name = file.name.encode("ascii", "replace").decode().replace('"', "_") or "file"
    item = await with_access(
        due.artist_id, lambda token: site.submit(token, (name, content, file.type), fields)
    )
    async with hf.transaction() as tx:
        await posts.keep_item(post_id, item.itemid, tx)
        await happened(tx, post_id, "uploaded", f"Uploaded as item {item.itemid}, kept for the next try")
    return item


async def _publish(site: DeviantArt, job_id: str, post_id: str, itemid: int) -> Sent:
    due = await posts.load(post_id)
    access = await access_of(due.artist_id)  # before the call begins, so that a dead login leaves it unsent
    at = await posts.begin_sending(post_id, job_id)
    fields = publish_fields(due.details, itemid)
    try:
        try:
            answer = await site.publish(access.token.reveal(), fields)
        except AccessOver:  # it says that nothing was done
            access = await renew(due.artist_id, than=access.version)
            answer = await site.publish(access.token.reveal(), fields)
    except AlreadyDone:
        return await _published_before(site, job_id, post_id, itemid)
    except (*NOT_DONE, NeedsLogin, Busy) as error:
        advice = error.advice if isinstance(error, DeviantArtError) else ""
        await posts.was_not_sent(post_id, job_id, str(error), advice)
        raise
    return Sent(answer.deviationid, answer.url, at)


# --- looking whether it is there ---


async def _find(site: DeviantArt, post_id: str, itemid: int) -> type[NotFound | CannotTell] | Found[Sent]:  # noqa: ARG001
    """By title and time, among what belongs to no other post: one is it, two nobody can tell apart."""
    candidates = await look_for(site, post_id)
    match candidates:
        case []:
            return CannotTell if await posts.was_published_before(post_id) else NotFound
        case [one]:
            return Found(Sent(one.deviationid, one.url, one.published_at))
        case _:
            return CannotTell


async def look_for(site: DeviantArt, post_id: str) -> list[Deviation]:
    """What in the artist's gallery may be this post."""
    due, since = await posts.load(post_id), await posts.uploaded_at_of(post_id) - EARLIER
    found: list[Deviation] = []
    guard = deviantart.keyed(due.artist_id)
    for number in range(PAGES):
        page = await guard.call(_page, site, due.artist_id, 24 * number)
        found += [
            each
            for each in page.results
            if each.title == due.details.title.strip() and each.published_at >= since
        ]
        if not page.has_more or page.results[-1].published_at < since:
            break
    others = await posts.known_deviations(due.artist_id, [each.deviationid for each in found])
    return [each for each in found if each.deviationid not in others]


async def _page(site: DeviantArt, artist_id: str, offset: int) -> Page:
    return await with_access(artist_id, lambda token: site.gallery(token, offset=offset))


async def _published_before(site: DeviantArt, job_id: str, post_id: str, itemid: int) -> Sent:
    """DeviantArt says that this item was published before: it counts as done, when it can be found."""
    found = await _find(site, post_id, itemid)
    if isinstance(found, Found):
        return found.result
    await posts.note_published_before(post_id, job_id)
    raise NobodyKnows(posts.PUBLISHED_BEFORE)


# --- what is written at the end ---


async def _store(job: Job, due: posts.Due, item: Item, sent: Sent | None) -> None:
    """Row, count, sale and receipt together with the job's success."""
    now, story = await hf.now(), await job.story()
    async with job.commit("" if sent is None else sent.url) as tx:
        changed = await tx.execute(
            "UPDATE posts SET state = 'published', published_at = $1, itemid = $2, deviationid = $3, url = $4, reason = '', advice = '' "
            "WHERE id = $5 AND job_id = $6 AND state IN ('scheduled', 'publishing', 'unknown')",
            now if sent is None else sent.at,
            item.itemid,
            None if sent is None else sent.deviationid,
            None if sent is None else sent.url,
            due.id,
            job.id,
        )
        if not changed:
            return
        await tx.execute("UPDATE artists SET post_count = post_count + 1 WHERE id = $1", due.artist_id)
        await tx.execute(
            "INSERT INTO receipts (post_id, at, story) VALUES ($1, $2, $3) ON CONFLICT (post_id) DO NOTHING",
            due.id,
            now,
            story.as_json(),
        )
        await happened(tx, due.id, "published", "Published" if sent else "Stored in sta.sh")
        if sent is not None:
            await sales.add_for(tx, due.id)
    _tell(due, sent, now - (story.claims[-1].began_at or now))


def _tell(due: posts.Due, sent: Sent | None, seconds: float) -> None:
    """One line for each publication; with HOLDFAST_LOG_FORMAT=json its fields stand by their names."""
    found = "sta.sh" if sent is None else sent.deviationid
    fields = {
        "artist_id": due.artist_id,
        "post_id": due.id,
        "deviation_id": found,
        "seconds": round(seconds, 3),
    }
    _log.info(
        "post %s of artist %s is published as %s after %.1f s",
        due.id,
        due.artist_id,
        found,
        seconds,
        extra=fields,
    )


async def _row_of(job: Job, tx: Tx, state: str, reason: str) -> str | None:
    """Move the row of a job that has come to this end; the artist, when it was moved."""
    post_id = job.arguments["post_id"]
    changed = await tx.execute(
        "UPDATE posts SET state = $1, reason = CASE WHEN reason = '' THEN $2 ELSE reason END "
        "WHERE id = $3 AND job_id = $4 AND state IN ('scheduled', 'publishing', 'unknown')",
        state,
        reason,
        post_id,
        job.id,
    )
    if not changed:
        return None
    rows = await tx.fetch("SELECT artist_id FROM posts WHERE id = $1", post_id)
    return str(rows[0][0])


@hf.on_unknown(publish)
async def nobody_knows(job: Job, tx: Tx) -> None:
    artist_id = await _row_of(job, tx, "unknown", "We sent it and got no answer. It may be in your gallery.")
    if artist_id is not None:
        post_id = job.arguments["post_id"]
        await happened(
            tx, post_id, "unknown", "No answer: it may be in your gallery. We look again by ourselves"
        )
        await mails.post_unknown(artist_id, post_id, tx)


@hf.on_dead(publish)
async def has_failed(job: Job, tx: Tx) -> None:
    reason = _first_line(job.reason)
    if _DIED in reason:
        reason = "Our publisher stopped in the middle of it, three times. Try again, or choose another file."
    artist_id = await _row_of(job, tx, "failed", reason)
    if artist_id is not None:
        post_id = job.arguments["post_id"]
        await happened(tx, post_id, "failed", "Failed, and is not tried again by itself")
        await mails.post_failed(artist_id, post_id, tx)


@hf.on_cancelled(publish)
async def was_cancelled(job: Job, tx: Tx) -> None:
    if await _row_of(job, tx, "cancelled", _first_line(job.reason)) is not None:
        await happened(tx, job.arguments["post_id"], "cancelled", f"Cancelled: {_first_line(job.reason)}")


def _first_line(text: str | None) -> str:
    """Without the kind of error, which says nothing to an artist."""
    line = (text or "").strip().partition("\n")[0]
    return line.partition(": ")[2] or line
