"""Cases: the officers' queue, one case with its documents, and what officers do with it."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from admissions.desk import cases
from admissions.domain.states import State
from admissions.web.api.base import (
    Cursor,
    Id,
    Line,
    Me,
    Out,
    RowId,
    Strict,
    Text,
    Version,
    check,
    cursor_for,
    cursor_of,
)
from admissions.web.api.shapes import Answers, Document
from holdfast.web import request_tx

router = APIRouter(prefix="/api/cases", tags=["cases"], dependencies=[Depends(check)])
# It is saved, and never shown by a browser as a part of this site, whatever it may be taken for.
_SAFE = {
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "private, no-store",
    "x-content-type-options": "nosniff",
}


class CaseRow(Out):
    id: str
    number: str
    state: str
    progress: int
    submitted_at: float
    officer_id: str | None
    officer: str | None
    name: str
    mail: str
    term_id: str
    programme: str
    term: str
    version: int
    reason: str
    outcome: str | None
    stage: str | None


class CasePage(Out):
    """`next` is the cursor of the page behind this one; null: there is none."""

    cases: list[CaseRow]
    next: str | None


class Note(Out):
    officer: str
    text: str
    at: float


class Happening(Out):
    """`isInner`: for officers alone."""

    at: float
    kind: str
    values: dict[str, Any]
    is_inner: bool


class Letter(Out):
    kind: str
    recipient: str
    state: str
    at: float
    message_id: str


class CaseDocument(Document):
    """`found`: what the scanner has found."""

    found: str


class Case(Out):
    row: CaseRow
    answers: Answers
    documents: list[CaseDocument]
    notes: list[Note]
    history: list[Happening]
    letters: list[Letter]


class Assignment(Strict):
    """To nobody: null."""

    officer_id: RowId | None
    version: Version


class Text_(Strict):  # noqa: N801  Text is a type of texts
    text: Text


class Wanted(Strict):
    kind: Line
    words: Text


class Many(Strict):
    application_ids: Annotated[list[RowId], Field(min_length=1, max_length=200)]


class Made(Out):
    id: str


@router.get("")
async def queue(
    *,
    state: Annotated[list[State] | None, Query()] = None,
    term: Annotated[RowId | None, Query()] = None,
    officer: Annotated[Line | None, Query()] = None,
    decision: Annotated[Line | None, Query()] = None,
    search: Annotated[Line, Query()] = "",
    cursor: Annotated[Cursor, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> CasePage:
    """The oldest first. `officer` is an id or "nobody"; `decision` is drafted, checked, released or "none"."""
    found = await cases.queue(
        states=state or (), term_id=term, officer_id=officer, decision=decision, search=search, after=cursor_of(cursor), limit=limit + 1,
    )  # fmt: skip
    page, more = found[:limit], found[limit:]
    last = cursor_for(page[-1].submitted_at, page[-1].id) if more else None
    return CasePage(cases=[CaseRow.model_validate(each) for each in page], next=last)


@router.get("/{application_id}")
async def get_case(me: Me, application_id: Id) -> Case:
    """Who looks is logged."""
    return Case.model_validate(await cases.case(me.id, application_id))


@router.get(
    "/{application_id}/documents/{document_id}",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/pdf": {}, "image/jpeg": {}, "image/png": {}}}},
)
async def download(me: Me, application_id: Id, document_id: Id) -> StreamingResponse:
    """Only what the scanner has found clean; who looks is logged."""
    document, reading = await cases.read_file(me.id, application_id, document_id)
    told = f"attachment; filename=\"document\"; filename*=UTF-8''{quote(document.name, safe='')}"
    return StreamingResponse(
        aiter(reading), media_type=document.type, headers={**_SAFE, "content-disposition": told}
    )


@router.post("/{application_id}/assign", status_code=204, response_class=Response)
async def assign(request: Request, me: Me, application_id: Id, given: Assignment) -> Response:
    """The second of two is told, and overwrites nothing."""
    async with request_tx(request) as tx:
        await cases.assign(me.id, application_id, given.officer_id, version=given.version, tx=tx)
    return Response(status_code=204)


@router.post("/{application_id}/notes", status_code=204, response_class=Response)
async def note(request: Request, me: Me, application_id: Id, given: Text_) -> Response:
    """For officers alone."""
    async with request_tx(request) as tx:
        await cases.note(me.id, application_id, given.text, tx=tx)
    return Response(status_code=204)


@router.post("/{application_id}/requests", status_code=201)
async def ask_for(request: Request, me: Me, application_id: Id, given: Wanted) -> Made:
    """A document is asked for, by mail and on the page of its owner."""
    async with request_tx(request) as tx:
        return Made(id=await cases.ask_for(me.id, application_id, given.kind, given.words, tx=tx))


@router.post("/{application_id}/resume", status_code=202, response_class=Response)
async def resume(request: Request, me: Me, application_id: Id) -> Response:
    """What has failed goes on where it was, once its cause is mended."""
    async with request_tx(request) as tx:
        await cases.resume(me.id, application_id, tx=tx)
    return Response(status_code=202)
