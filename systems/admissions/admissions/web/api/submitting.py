"""Submissions: a whole one by one request, or a draft; and the files of a draft. Rows, events and the key's answer are one commit."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from admissions.desk import applying, story
from admissions.desk.refusals import Invalid
from admissions.domain.forms import KINDS, Answers, Wrong
from admissions.ids import new_id
from admissions.web.api.base import Id, Line, Me, Out, RowId, Strict, Text, check
from admissions.web.api.shapes import Accepted, accepted
from admissions.web.receiving import received, shown_name
from admissions.web.visitor import visitor_of
from holdfast.blobs import Staged
from holdfast.web import UploadForm, request_tx

router = APIRouter(tags=["submissions"], dependencies=[Depends(check)])
_DRAFT = "/api/applications/{application_id}"
_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}
_TEXT = {"type": "string"}
_ANYWHERE = "files"  # the field of files whose kind is not told


def _form(required: list[str], **fields: dict[str, Any]) -> dict[str, Any]:
    """For the document: the handler reads the form itself, as a stream."""
    schema = {"type": "object", "required": required, "properties": fields}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


class Submission(Strict):
    """The fields of a whole application. What is missing is told with all else that is wrong."""

    term_id: RowId
    name: Text = ""
    birth: Line = ""
    phone: Line = ""
    address: Text = ""
    statement: Text = ""
    declared: Annotated[str, Field(pattern="^(true|false)$")] = "false"

    @property
    def answers(self) -> Answers:
        return Answers(
            self.name, self.birth, self.phone, self.address, self.statement, self.declared == "true"
        )


class Added(Out):
    """Ids of documents, in the order of the form."""

    document_ids: list[str]


@router.post(
    "/applications",
    status_code=202,
    openapi_extra=_form(
        ["termId", "name", "birth", "address", "statement", "declared"],
        termId=_TEXT, name=_TEXT, birth=_TEXT, phone=_TEXT, address=_TEXT, statement=_TEXT,
        declared={"type": "string", "enum": ["true", "false"]}, files=_FILES, transcript=_FILES, identification=_FILES, other=_FILES,
    ),
)  # fmt: skip
async def submit_whole(request: Request, me: Me) -> Accepted:
    """All at once, with an Idempotency-Key. What becomes of it is told by `statusUrl`; the fee is paid at `payUrl`."""
    application_id = new_id()
    arrived_at = (await visitor_of(request)).now
    async with received(request, application_id) as form:
        files, given = _files(form), _submission(form)
        async with request_tx(request) as tx:
            receipt = await applying.submit_whole(
                me.id, given.term_id, given.answers, files, application_id=application_id, arrived_at=arrived_at, tx=tx
            )  # fmt: skip
    return accepted(receipt)


@router.post(f"{_DRAFT}/submit", status_code=202)
async def submit(request: Request, me: Me, application_id: Id) -> Accepted:
    """The draft, with an Idempotency-Key. Nothing of it can be changed afterwards."""
    arrived_at = (await visitor_of(request)).now
    async with request_tx(request) as tx:
        return accepted(await applying.submit(me.id, application_id, arrived_at=arrived_at, tx=tx))


@router.post(
    f"{_DRAFT}/documents",
    status_code=201,
    openapi_extra=_form([], files=_FILES, transcript=_FILES, identification=_FILES, other=_FILES),
)
async def add_documents(request: Request, me: Me, application_id: Id) -> Added:
    """To a draft; or in place of a refused file; or because one was asked for."""
    await story.of(me.id, application_id)  # before a byte of it is read
    async with received(request, application_id) as form:
        files = _files(form)
        if not files:
            raise Invalid([Wrong(_ANYWHERE, "files_missing")])
        async with request_tx(request) as tx:
            made = [
                await applying.add_document(me.id, application_id, kind, name, staged, tx=tx)
                for kind, name, staged in files
            ]
    return Added(document_ids=made)


@router.delete(f"{_DRAFT}/documents/{{document_id}}", status_code=204, response_class=Response)
async def remove_document(request: Request, me: Me, application_id: Id, document_id: Id) -> Response:
    async with request_tx(request) as tx:
        await applying.remove_document(me.id, application_id, document_id, tx=tx)
    return Response(status_code=204)


def _files(form: UploadForm) -> list[tuple[str, str, Staged]]:
    """Kind, name and bytes of each: the field says the kind."""
    wrong = [Wrong(each.field, "kind_wrong") for each in form.files if each.field not in (*KINDS, _ANYWHERE)]
    if wrong:
        raise Invalid(wrong)
    return [
        (each.field if each.field in KINDS else "other", shown_name(each.filename), each.staged)
        for each in form.files
    ]


def _submission(form: UploadForm) -> Submission:
    told = dict(form.fields)
    if len(told) < len(form.fields):
        raise Invalid([Wrong(name, "told_twice") for name in told if _times(form, name) > 1])
    try:
        return Submission.model_validate(told)
    except ValidationError as error:
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        ) from None


def _times(form: UploadForm, name: str) -> int:
    return sum(field == name for field, _ in form.fields)
