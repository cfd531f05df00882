"""Files of posts: see, order, describe, delete, have back; and the room that they take."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from holdfast.web import request_tx
from publisher.desk import files
from publisher.web.api.base import Artist, Id, RowId, Strict, Text
from publisher.web.api.shapes import File, shown_file

router = APIRouter(prefix="/api", tags=["files"])
# What was uploaded is never run, whatever it may be taken for.
_SAFE = {
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "private, max-age=86400, immutable",
    "x-content-type-options": "nosniff",
}


class Order(Strict):
    file_ids: Annotated[list[RowId], Field(min_length=1, max_length=100)]


class Description(Strict):
    alt: Text


class Link(BaseModel):
    url: str
    expires: float


class Usage(BaseModel):
    """Bytes. `used` has what is deleted and can still be had back."""

    used: int
    deleted: int
    quota: int
    files: int


@router.get("/usage")
async def usage(artist: Artist) -> Usage:
    return Usage(**asdict(await files.usage(artist)))


@router.get("/files/largest")
async def largest(artist: Artist, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> list[File]:
    return [shown_file(each) for each in await files.largest(artist, limit)]


@router.get("/files/deleted")
async def deleted(artist: Artist) -> list[File]:
    return [shown_file(each) for each in await files.deleted(artist)]


@router.get("/posts/{post_id}/files")
async def list_files(artist: Artist, post_id: Id) -> list[File]:
    """What is there already: an upload of many goes on with the rest."""
    return [shown_file(each) for each in await files.of_post(artist, post_id)]


@router.put("/posts/{post_id}/files/order")
async def order_files(request: Request, artist: Artist, post_id: Id, order: Order) -> list[File]:
    async with request_tx(request) as tx:
        return [shown_file(each) for each in await files.reorder(artist, post_id, order.file_ids, tx=tx)]


@router.get("/files/{file_id}")
async def get_file(artist: Artist, file_id: Id) -> File:
    return shown_file(await files.get(artist, file_id))


@router.patch("/files/{file_id}")
async def describe_file(request: Request, artist: Artist, file_id: Id, given: Description) -> File:
    async with request_tx(request) as tx:
        return shown_file(await files.describe(artist, file_id, given.alt, tx=tx))


@router.delete("/files/{file_id}")
async def delete_file(request: Request, artist: Artist, file_id: Id) -> File:
    """For a week it can be had back."""
    async with request_tx(request) as tx:
        return shown_file(await files.delete(artist, file_id, tx=tx))


@router.post("/files/{file_id}/restore")
async def restore_file(request: Request, artist: Artist, file_id: Id) -> File:
    async with request_tx(request) as tx:
        return shown_file(await files.restore(artist, file_id, tx=tx))


@router.get("/files/{file_id}/link")
async def link_to_file(artist: Artist, file_id: Id) -> Link:
    """Good for a quarter of an hour, for whoever has it."""
    found = await files.link(artist, file_id)
    return Link(url=found.url, expires=found.expires)


@router.get(
    "/files/{file_id}/preview",
    response_class=StreamingResponse,
    responses={200: {"content": {"image/webp": {}, "image/jpeg": {}}}},
)
async def preview(artist: Artist, file_id: Id) -> StreamingResponse:
    reading = await files.preview(artist, file_id)
    kind = reading.stat.content_type or "image/webp"
    return StreamingResponse(aiter(reading), media_type=kind, headers=_SAFE)
