"""A post's content: make, edit, duplicate, split, approve, reject and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import msgspec

from holdfast import Tx
from publisher.core import hf
from publisher.desk.bulk import Result, many
from publisher.desk.inside import inside
from publisher.desk.refusals import Changed, Fault, Invalid, TooLate
from publisher.desk.rows import PostRow, files_of, post_of
from publisher.desk.scheduling import to_draft, too_late
from publisher.details import packed
from publisher.domain.posts import DESCRIPTION_MOST, TAGS_MOST, TITLE_MOST, Details, Missing, missing, tags
from publisher.domain.states import DELETABLE, EDITABLE, State
from publisher.happenings import YOU, happened
from publisher.ids import new_id

FIELDS = tuple(each.name for each in fields(Details))


async def get(artist_id: str, post_id: str) -> PostRow:
    async with hf.transaction() as tx:
        return await post_of(tx, artist_id, post_id)


async def make(
    tx: Tx,
    artist_id: str,
    details: Details,
    *,
    source: str = "page",
    state: State = State.DRAFT,
) -> str:
    """A new post, in the transaction that stores its files. Its id."""
    post_id, now = new_id(), await hf.now()
    await tx.execute(
        "INSERT INTO posts (id, artist_id, state, title, details, only_stash, source, reason, advice, version, made_at, changed_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', 1, $8, $8)",
        post_id,
        artist_id,
        str(state),
        details.title,
        packed(details),
        False,
        source,
        now,
    )
    words = "Sent by a tool, for you to look at" if state is State.REVIEW else "Made"
    await happened(tx, post_id, "made", words, YOU if source == "page" else source)
    return post_id


async def edit(
    artist_id: str,
    post_id: str,
    changes: Mapping[str, Any],
    *,
    version: int | None = None,
    tx: Tx | None = None,
) -> PostRow:
    """Change some fields. With `version`, only when nobody has changed the post since that one."""
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        if post.state not in EDITABLE:
            raise TooLate(too_late(post, State.DRAFT), post.state)
        if version is not None and version != post.version:
            raise Changed("This post was changed elsewhere meanwhile. Your text is kept: look at both.")
        only_stash = bool(changes.get("only_stash", post.only_stash))
        details = changed_details(post.told, changes)
        changed = await own.execute(
            "UPDATE posts SET title = $1, details = $2, only_stash = $3, version = version + 1, changed_at = $4 "
            "WHERE id = $5 AND version = $6 AND state = $7",
            details.title,
            packed(details),
            only_stash,
            await hf.now(),
            post_id,
            post.version,
            str(post.state),
        )
        if not changed:
            raise Changed("This post was changed in this moment. Look at it again.")
        return await post_of(own, artist_id, post_id)


def changed_details(before: Details, changes: Mapping[str, Any]) -> Details:
    """The details with these changes; what cannot be is told by field."""
    wanted = {name: value for name, value in changes.items() if name in FIELDS}
    if "tags" in wanted:
        wanted["tags"] = tags(list(wanted["tags"]))
    try:
        found = msgspec.convert({**asdict(before), **wanted}, Details)
    except msgspec.ValidationError as error:
        raise Invalid([Fault(_field_of(error, wanted), f"This cannot be: {error}.")]) from None
    faults = list(_too_long(found))
    if faults:
        raise Invalid(faults)
    return found


def _too_long(details: Details) -> list[Fault]:
    """What no draft may be. What is merely missing is told where it is scheduled."""
    faults = []
    if len(details.title) > 200:
        faults.append(
            Fault("title", f"The title has {len(details.title)} characters; DeviantArt takes {TITLE_MOST}.")
        )
    if len(details.description) > DESCRIPTION_MOST:
        faults.append(Fault("description", f"The description has more than {DESCRIPTION_MOST:,} characters."))
    if len(details.tags) > 10 * TAGS_MOST:
        faults.append(Fault("tags", f"There are {len(details.tags)} tags; DeviantArt takes {TAGS_MOST}."))
    return faults


def _field_of(error: msgspec.ValidationError, wanted: Mapping[str, Any]) -> str:
    """msgspec says where: `$.title`."""
    _, _, place = str(error).partition("`$.")
    name = place.partition("`")[0].partition(".")[0].partition("[")[0]
    return name if name in FIELDS else next(iter(wanted), "")


async def edit_many(artist_id: str, post_ids: Sequence[str], changes: Mapping[str, Any]) -> list[Result]:
    return await many(post_ids, lambda post_id: edit(artist_id, post_id, changes))


async def missing_of(artist_id: str, post_id: str) -> list[Missing]:
    """What stands between this post and its schedule."""
    async with hf.transaction() as tx:
        post = await post_of(tx, artist_id, post_id)
        return missing(post.told, files=await files_of(tx, post_id))


async def delete(artist_id: str, post_id: str, *, tx: Tx | None = None) -> None:
    """The post with its history. Its files rest for a week, in which they can be had back."""
    async with inside(tx) as own:
        post = await post_of(own, artist_id, post_id)
        if post.state not in DELETABLE:
            raise TooLate(too_late(post, State.CANCELLED), post.state)
        now = await hf.now()
        if post.job_id is not None:
            await hf.jobs.cancel(post.job_id, "its post was deleted", running=False, tx=own)
        await own.execute(
            "UPDATE files SET deleted_at = $1, post_id = NULL WHERE post_id = $2 AND deleted_at IS NULL",
            now,
            post_id,
        )
        changed = await own.execute(
            "DELETE FROM posts WHERE id = $1 AND state = $2 AND version = $3",
            post_id,
            str(post.state),
            post.version,
        )
        if not changed:
            raise Changed("This post was changed in this moment. Look at it again.")


async def delete_many(artist_id: str, post_ids: Sequence[str]) -> list[Result]:
    return await many(post_ids, lambda post_id: delete(artist_id, post_id))


async def duplicate(artist_id: str, post_id: str) -> str:
    """A draft with the same details and, when the file is still there, another row for the same bytes."""
    async with hf.transaction() as tx:
        post = await post_of(tx, artist_id, post_id)
        made = await make(tx, artist_id, replace(post.told, agreed=False))
        rows = await tx.fetch(
            "SELECT position, name, alt, key, preview_key, type, size, sha256, width, height FROM files "
            "WHERE post_id = $1 AND deleted_at IS NULL AND key IS NOT NULL ORDER BY position",
            post_id,
        )
        for row in rows:
            await tx.execute(
                "INSERT INTO files (id, artist_id, post_id, position, name, alt, key, preview_key, type, size, sha256, width, height, made_at) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                new_id(),
                artist_id,
                made,
                *row,
                await hf.now(),
            )
        return made


async def split(artist_id: str, post_id: str) -> list[str]:
    """A draft for each file: a deviation has one. The first file stays with this post."""
    async with hf.transaction() as tx:
        post = await post_of(tx, artist_id, post_id)
        if post.state is not State.DRAFT:
            raise TooLate(too_late(post, State.DRAFT), post.state)
        rows = await tx.fetch(
            "SELECT id, name FROM files WHERE post_id = $1 AND deleted_at IS NULL ORDER BY position, id",
            post_id,
        )
        made = [post_id]
        for number, (file_id, _) in enumerate(rows[1:], start=2):
            title = f"{post.title} ({number})" if post.title else ""
            new = await make(tx, artist_id, replace(post.told, title=title))
            await tx.execute("UPDATE files SET post_id = $1, position = 0 WHERE id = $2", new, file_id)
            made.append(new)
        return made


async def approve(artist_id: str, post_ids: Sequence[str]) -> list[Result]:
    """What a tool has sent becomes a draft."""

    async def one(post_id: str) -> None:
        async with hf.transaction() as tx:
            post = await post_of(tx, artist_id, post_id)
            if post.state is not State.REVIEW:
                raise TooLate(f"The post is {post.state}.", post.state)
            await to_draft(artist_id, post_id, tx=tx)

    return await many(post_ids, one)


async def reject(artist_id: str, post_ids: Sequence[str]) -> list[Result]:
    """What a tool has sent is deleted with its files."""

    async def one(post_id: str) -> None:
        async with hf.transaction() as tx:
            post = await post_of(tx, artist_id, post_id)
            if post.state is not State.REVIEW:
                raise TooLate(f"The post is {post.state}.", post.state)
            await delete(artist_id, post_id, tx=tx)

    return await many(post_ids, one)
