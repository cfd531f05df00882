"""Posts: lists, one post whole, its content, and when it goes out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from holdfast.web import request_tx
from publisher.desk import posts, reading, scheduling
from publisher.desk.refusals import Fault, Invalid
from publisher.domain.states import State
from publisher.web.api.base import (
    Artist,
    Cursor,
    Id,
    Line,
    Moment,
    Search,
    Strict,
    changed,
    cursor_for,
    cursor_of,
)
from publisher.web.api.shapes import (
    NEVER_NULL,
    Changes,
    Post,
    PostPage,
    PostView,
    shown,
    shown_view,
)

router = APIRouter(prefix="/api", tags=["posts"])
Limit = Annotated[int, Query(ge=1, le=200)]


class Edit(Changes):
    """With `version`, only when nobody has changed the post since that one."""

    version: Annotated[int, Field(ge=1, le=2**53)] | None = None


class When(Strict):
    at: Moment


class Plan(When):
    """`jitter`: by so many seconds at most it may go out later; without it, as the account says."""

    jitter: Annotated[int, Field(ge=0, le=300)] | None = None


class Decision(Strict):
    """Whether it is on DeviantArt, and where."""

    done: bool
    deviationid: Line | None = None
    url: Line | None = None


class Due(BaseModel):
    due_at: float


class Started(BaseModel):
    job_id: str


class Made(BaseModel):
    post_ids: list[str]


# --- looking ---


@router.get("/posts")
async def list_posts(
    artist: Artist,
    state: Annotated[list[State] | None, Query()] = None,
    search: Annotated[Search, Query()] = "",
    cursor: Annotated[Cursor, Query()] = None,
    limit: Limit = 50,
) -> PostPage:
    """The newest first."""
    found = await reading.listing(
        artist, states=state or list(State), search=search, before=cursor_of(cursor), limit=limit + 1
    )
    page, more = found[:limit], found[limit:]
    last = cursor_for(reading.time_of(page[-1]), page[-1].id) if more else None
    return PostPage(posts=[shown(each) for each in page], next=last)


@router.get("/posts/counts")
async def count_posts(artist: Artist) -> dict[str, int]:
    return {str(state): number for state, number in (await reading.counts(artist)).items()}


@router.get("/posts/upcoming")
async def upcoming(artist: Artist, limit: Limit = 20) -> list[Post]:
    return [shown(each) for each in await reading.upcoming(artist, limit)]


@router.get("/posts/needs")
async def needs(artist: Artist, limit: Limit = 20) -> list[Post]:
    """What waits for a decision, or has failed."""
    return [shown(each) for each in await reading.needs(artist, limit)]


@router.get("/calendar")
async def calendar(
    artist: Artist, begin: Annotated[Moment, Query()], end: Annotated[Moment, Query()]
) -> list[Post]:
    return [shown(each) for each in await reading.between(artist, begin, end)]


@router.get("/posts/{post_id}")
async def get_post(artist: Artist, post_id: Id) -> PostView:
    return shown_view(await reading.story(artist, post_id))


# --- its content ---


@router.patch("/posts/{post_id}")
async def edit_post(request: Request, artist: Artist, post_id: Id, edit: Edit) -> Post:
    async with request_tx(request) as tx:
        return shown(await posts.edit(artist, post_id, wanted(edit), version=edit.version, tx=tx))


@router.delete("/posts/{post_id}", status_code=204)
async def delete_post(request: Request, artist: Artist, post_id: Id) -> Response:
    """Its files rest for a week, in which they can be had back."""
    async with request_tx(request) as tx:
        await posts.delete(artist, post_id, tx=tx)
    return Response(status_code=204)


@router.post("/posts/{post_id}/duplicate", status_code=201)
async def duplicate_post(artist: Artist, post_id: Id) -> Made:
    return Made(post_ids=[await posts.duplicate(artist, post_id)])


@router.post("/posts/{post_id}/split")
async def split_post(artist: Artist, post_id: Id) -> Made:
    """A post for each file."""
    return Made(post_ids=await posts.split(artist, post_id))


# --- when it goes out ---


@router.post("/posts/{post_id}/schedule")
async def schedule_post(request: Request, artist: Artist, post_id: Id, plan: Plan) -> Due:
    async with request_tx(request) as tx:
        return Due(due_at=await scheduling.schedule(artist, post_id, plan.at, jitter=plan.jitter, tx=tx))


@router.post("/posts/{post_id}/move")
async def move_post(request: Request, artist: Artist, post_id: Id, when: When) -> Due:
    async with request_tx(request) as tx:
        return Due(due_at=await scheduling.move(artist, post_id, when.at, tx=tx))


@router.post("/posts/{post_id}/publish-now", status_code=202)
async def publish_now(request: Request, artist: Artist, post_id: Id) -> Started:
    """It is accepted; publishing takes a while."""
    async with request_tx(request) as tx:
        return Started(job_id=await scheduling.publish_now(artist, post_id, tx=tx))


@router.post("/posts/{post_id}/cancel", status_code=204)
async def cancel_post(request: Request, artist: Artist, post_id: Id) -> Response:
    async with request_tx(request) as tx:
        await scheduling.cancel(artist, post_id, tx=tx)
    return Response(status_code=204)


@router.post("/posts/{post_id}/to-draft", status_code=204)
async def back_to_draft(request: Request, artist: Artist, post_id: Id) -> Response:
    async with request_tx(request) as tx:
        await scheduling.to_draft(artist, post_id, tx=tx)
    return Response(status_code=204)


@router.post("/posts/{post_id}/decide", status_code=204)
async def decide(request: Request, artist: Artist, post_id: Id, decision: Decision) -> Response:
    """Of a post of which nobody knows: you have looked."""
    async with request_tx(request) as tx:
        await scheduling.decide(
            artist, post_id, done=decision.done, deviationid=decision.deviationid, url=decision.url, tx=tx
        )
    return Response(status_code=204)


@router.post("/posts/{post_id}/try-again", status_code=202, response_class=Response)
async def try_again(request: Request, artist: Artist, post_id: Id) -> Response:
    async with request_tx(request) as tx:
        await scheduling.try_again(artist, post_id, tx=tx)
    return Response(status_code=202)


def wanted(edit: Changes) -> dict[str, object]:
    found = changed(edit)
    faults = [
        Fault(name, "This cannot be null; leave it out to keep it.")
        for name in NEVER_NULL
        if name in found and found[name] is None
    ]
    if faults:
        raise Invalid(faults)
    return found
