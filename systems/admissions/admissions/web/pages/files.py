"""Files of an application: to a draft, in place of a refused one, or because an officer has asked."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from admissions.desk import applying, story
from admissions.desk.refusals import Invalid, Refusal
from admissions.domain.forms import Wrong
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.receiving import received, shown_name
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web import ProblemError


async def add(request: Request, visitor: Visitor) -> Response:
    """Also asked by a script, which takes JSON."""
    its = await story.of(visitor.id, request.path_params["application_id"])
    place = f"/applications/{its.id}/{'form/documents' if its.state is State.DRAFT else 'status'}"
    try:
        name = await _received(request, visitor, its.id)
    except ProblemError as error:
        return _refused(request, place, _words(visitor, error))
    except Refusal as refusal:
        return _refused(request, place, frame.refused(visitor, refusal))
    if frame.is_script(request):
        return JSONResponse({"name": name}, 201)
    return frame.go(request, place, Notice(say(visitor.language, "added", name)))


async def _received(request: Request, visitor: Visitor, application_id: str) -> str:
    async with received(request, application_id) as form:
        found = form.file("file")
        if found is None:
            raise Invalid([Wrong("file", "upload_none")])
        name, kind = shown_name(found.filename), form.field("kind") or "other"
        await applying.add_document(visitor.id, application_id, kind, name, found.staged)
    return name


def _words(visitor: Visitor, error: ProblemError) -> str:
    code = error.problem.code
    if code in ("FILE_TOO_LARGE", "REQUEST_TOO_LARGE"):
        return say(visitor.language, "upload_large")
    if code == "FILE_EMPTY":
        return say(visitor.language, "upload_empty")
    if code.startswith("TYPE_"):
        return say(visitor.language, "upload_type")
    return say(visitor.language, "upload_failed")


def _refused(request: Request, place: str, words: str) -> Response:
    if frame.is_script(request):
        return JSONResponse({"words": words}, 422)
    return frame.go(request, place, Notice(words, "dead"))


async def remove(request: Request, visitor: Visitor) -> Response:
    application_id, document_id = request.path_params["application_id"], request.path_params["document_id"]
    await frame.read(request)
    found = await story.document(visitor.id, application_id, document_id)
    await applying.remove_document(visitor.id, application_id, document_id)
    return frame.go(request, f"/applications/{application_id}/form/documents", Notice(say(visitor.language, "removed", found.name), "off"))  # fmt: skip


_OWN = "/applications/{application_id}/files"
routes = [frame.at(f"POST {_OWN}", add), frame.at(f"POST {_OWN}/{{document_id}}/remove", remove)]
