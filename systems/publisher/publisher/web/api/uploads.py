"""Files come in: by a form, by a link past us, and from tools by API key, whose posts wait in review."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from holdfast import within
from holdfast.web import UploadForm, request_tx
from publisher.desk import posts
from publisher.desk import uploads as desk
from publisher.desk.refusals import Fault, Invalid
from publisher.domain.posts import Details
from publisher.domain.states import State
from publisher.web.api.base import Artist, Id, KeyArtist, Line, RowId, Strict

router = APIRouter(prefix="/api", tags=["uploads"])
_FILES = {
    "type": "array",
    "items": {"type": "string", "format": "binary"},
    "description": ", ".join(desk.TYPES),
}


def _form(**fields: dict[str, Any]) -> dict[str, Any]:
    """For the document: the handler reads the form itself, as a stream."""
    schema = {"type": "object", "required": ["files"], "properties": {"files": _FILES, **fields}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_MODE = {"type": "string", "enum": ["each", "one"], "description": "A post for each file, or one for all"}
_AGAIN = {"type": "string", "enum": ["true", "false"], "description": "Also what is there already"}
_TEXT = {"type": "string"}


class Arrival(BaseModel):
    """`same_as`: the post that has the very same bytes. Without a file_id it was left out for that."""

    name: str
    file_id: str | None
    post_id: str | None
    same_as: str | None


class Arrivals(BaseModel):
    files: list[Arrival]


class Announced(Strict):
    name: Line
    type: Line
    size: Annotated[int, Field(ge=1, le=desk.FILE_MOST)]


class Allowed(BaseModel):
    """Send the file so; then say that it is complete."""

    upload_id: str
    method: str
    url: str
    headers: dict[str, str]
    expires: float


class Complete(Announced):
    upload_id: Annotated[str, Field(pattern="^[0-9A-Za-z_-]{1,64}$")]
    post_id: RowId | None = None
    again: bool = False


# --- by a form ---


@router.post("/uploads", status_code=201, openapi_extra=_form(mode=_MODE, again=_AGAIN))
async def upload(request: Request, artist: Artist) -> Arrivals:
    """New posts."""
    async with _received(request, artist) as form:
        mode = _choice(form, "mode", ("each", "one"))
        async with request_tx(request) as tx:
            found = await desk.receive(
                artist, _files(form), mode="one" if mode == "one" else "each", again=_is_again(form), tx=tx
            )
    return Arrivals(files=[Arrival(**asdict(each)) for each in found])


@router.post("/posts/{post_id}/files", status_code=201, openapi_extra=_form(again=_AGAIN))
async def add_files(request: Request, artist: Artist, post_id: Id) -> Arrivals:
    await posts.get(artist, post_id)  # before a byte of it is read
    async with _received(request, artist) as form, request_tx(request) as tx:
        found = await desk.receive(artist, _files(form), post_id=post_id, again=_is_again(form), tx=tx)
    return Arrivals(files=[Arrival(**asdict(each)) for each in found])


@router.post(
    "/uploads/tool",
    status_code=201,
    openapi_extra=_form(
        title=_TEXT, description=_TEXT, tags=_TEXT, mature=_AGAIN, ai_made=_AGAIN, again=_AGAIN
    ),
)
async def upload_by_tool(request: Request, artist: KeyArtist) -> Arrivals:
    """What a tool has made, into the review of its artist. `tags` is a JSON list; made with AI unless it says otherwise."""
    async with _received(request, artist) as form:
        details = _details(form)
        async with request_tx(request) as tx:
            found = await desk.receive(
                artist,
                _files(form),
                source="tool",
                state=State.REVIEW,
                details=details,
                again=_is_again(form),
                tx=tx,
            )
    return Arrivals(files=[Arrival(**asdict(each)) for each in found])


# --- past us ---


@router.post("/uploads/begin")
async def begin_upload(artist: Artist, given: Announced) -> Allowed:
    allowed = await desk.begin(artist, kind=given.type, size=given.size)
    link = allowed.link
    return Allowed(
        upload_id=allowed.id, method=link.method, url=link.url, headers=link.headers, expires=link.expires
    )


@router.post("/uploads/complete", status_code=201)
async def complete_upload(request: Request, artist: Artist, given: Complete) -> Arrivals:
    """Of what was sent by the link: a new post, or one more file of `post_id`."""
    arriving = await desk.sent(artist, given.upload_id, given.name, kind=given.type, size=given.size)
    async with request_tx(request) as tx:
        found = await desk.receive(artist, [arriving], post_id=given.post_id, again=given.again, tx=tx)
    return Arrivals(files=[Arrival(**asdict(each)) for each in found])


# --- what a form says ---


@asynccontextmanager
async def _received(request: Request, artist: str) -> AsyncIterator[UploadForm]:
    """A form that is refused for what it says leaves no file behind."""
    with within(tenant=artist):
        form = await desk.uploads.receive(request)
        if not form.files:
            raise Invalid([Fault("files", "Choose a file.")])
        try:
            yield form
        except Invalid:
            for each in form.files:
                await desk.discard(each.staged)
            raise


def _files(form: UploadForm) -> list[desk.Arriving]:
    return [desk.Arriving(desk.shown_name(each.filename), each.staged) for each in form.files]


def _choice(form: UploadForm, name: str, choices: tuple[str, ...]) -> str:
    told = form.field(name) or choices[0]
    if told not in choices:
        raise Invalid([Fault(name, f"It is one of {', '.join(choices)}.")])
    return told


def _is_again(form: UploadForm) -> bool:
    return _choice(form, "again", ("false", "true")) == "true"


def _details(form: UploadForm) -> Details:
    said = {name: form.field(name) for name in ("title", "description", "tags")}
    if faults := [
        Fault(name, "A text cannot have the character NUL.")
        for name, text in said.items()
        if text and "\x00" in text
    ]:
        raise Invalid(faults)
    try:
        names = msgspec.json.decode(said["tags"] or "[]", type=list[str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise Invalid([Fault("tags", 'Tags are a JSON list of texts, such as ["ink", "harbour"].')]) from None
    mature = _choice(form, "mature", ("", "false", "true"))
    changes = {
        "title": said["title"] or "",
        "description": said["description"] or "",
        "tags": names,
        "mature": None if mature == "" else mature == "true",
        "ai_made": _choice(form, "ai_made", ("true", "false")) == "true",
    }
    return posts.changed_details(Details(), changes)
