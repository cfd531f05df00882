"""The same for many posts: each has a result of its own, and what is refused for one is done for the others."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from publisher.desk import posts, scheduling
from publisher.desk.bulk import many
from publisher.web.api.base import Artist, Moment, RowId, RowIds, Strict
from publisher.web.api.posts import wanted
from publisher.web.api.shapes import Changes, Results, told

router = APIRouter(prefix="/api", tags=["many posts"])


class Posts(Strict):
    post_ids: RowIds


class EditMany(Posts):
    changes: Changes


class Planned(Strict):
    post_id: RowId
    at: Moment


class PlanMany(Strict):
    """Each with its own time."""

    posts: Annotated[list[Planned], Field(min_length=1, max_length=500)]


class ShiftMany(Posts):
    """The same time of day, so many days later, or earlier."""

    days: Annotated[int, Field(ge=-365, le=365)]


@router.post("/bulk/edit")
async def edit_many(artist: Artist, given: EditMany) -> Results:
    return told(await posts.edit_many(artist, given.post_ids, wanted(given.changes)))


@router.post("/bulk/schedule")
async def schedule_many(artist: Artist, given: PlanMany) -> Results:
    times = {each.post_id: each.at for each in given.posts}
    return told(await many(list(times), lambda post_id: scheduling.schedule(artist, post_id, times[post_id])))


@router.post("/bulk/move")
async def move_many(artist: Artist, given: PlanMany) -> Results:
    times = {each.post_id: each.at for each in given.posts}
    return told(await many(list(times), lambda post_id: scheduling.move(artist, post_id, times[post_id])))


@router.post("/bulk/shift")
async def shift_many(artist: Artist, given: ShiftMany) -> Results:
    return told(await scheduling.shift(artist, given.post_ids, given.days))


@router.post("/bulk/publish-now", status_code=202)
async def publish_many(artist: Artist, given: Posts) -> Results:
    return told(await many(given.post_ids, lambda post_id: scheduling.publish_now(artist, post_id)))


@router.post("/bulk/cancel")
async def cancel_many(artist: Artist, given: Posts) -> Results:
    return told(await many(given.post_ids, lambda post_id: scheduling.cancel(artist, post_id)))


@router.post("/bulk/delete")
async def delete_many(artist: Artist, given: Posts) -> Results:
    return told(await posts.delete_many(artist, given.post_ids))


@router.post("/review/approve")
async def approve(artist: Artist, given: Posts) -> Results:
    """What tools have sent becomes drafts."""
    return told(await posts.approve(artist, given.post_ids))


@router.post("/review/reject")
async def reject(artist: Artist, given: Posts) -> Results:
    """It is deleted; its files rest for a week."""
    return told(await posts.reject(artist, given.post_ids))
