"""A case: answers, files, notes, its decision and history; and what officers do with it. Who looks is logged."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from admissions.core import hf
from admissions.desk import cases, decisions, directory
from admissions.desk.refusals import Changed, Invalid, NotHere
from admissions.domain.decisions import Outcome
from admissions.domain.forms import KINDS
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.pages.queue import LOOKS, OUTCOMES
from admissions.web.pages.standing import LINE_LOOKS, line_words
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web.pages import Form

_SAFE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox",
}
_IN_MEMORY = 1_000_000  # bytes of a zip; more go into a file that has no name
_MAIL_LOOKS = {"stored": "wait", "sent": "ok", "refused": "dead"}


@dataclass(frozen=True)
class Decided:
    """The decision of a case, with names."""

    outcome: str
    stage: str
    words: str
    drafted_by: str
    drafted_name: str
    checked_name: str
    released_at: float | None
    version: int


async def show(request: Request, visitor: Visitor) -> Response:
    """A reader who follows is not logged again and again: the case is read when something has changed."""
    version = await cases.mark(request.path_params["application_id"])
    if (same := frame.pages.unchanged(request, version)) is not None:
        return same
    return await _draw(request, visitor, Form(), version=version)


async def _draw(
    request: Request, visitor: Visitor, form: Form, *, status: int = 200, version: object = None
) -> Response:
    application_id = request.path_params["application_id"]
    found = await cases.case(visitor.id, application_id)
    decided = await _decided(application_id)
    first = Form({"outcome": decided.outcome, "words": decided.words}) if decided else Form({"outcome": ""})
    values: dict[str, Any] = {
        "case": found, "row": found.row, "decided": decided, "form": form, "draft": form if "outcome" in form else first, "kinds": KINDS,
        "outcomes": [(str(each), say(visitor.language, f"outcome_{each}"), "") for each in Outcome], "outcome_looks": OUTCOMES,
        "officers": await directory.officers(), "looks": LOOKS, "mail_looks": _MAIL_LOOKS,
        "lines": [(LINE_LOOKS.get(each.kind, "wait"), line_words(visitor.language, each.kind, each.values), each.at, each.is_inner) for each in found.history],
    }  # fmt: skip
    return frame.render(request, "desk_case.html", values, status=status, version=version)


async def _decided(application_id: str) -> Decided | None:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT d.outcome, d.stage, d.words, d.drafted_by, coalesce(p.name, ''), coalesce(c.name, ''), d.released_at, d.version "
            "FROM decisions d LEFT JOIN people p ON p.id = d.drafted_by LEFT JOIN people c ON c.id = d.checked_by WHERE d.application_id = $1",
            application_id,
        )
    return Decided(*rows[0]) if rows else None


async def assign(request: Request, visitor: Visitor) -> Response:
    form, found = await frame.read(request), request.path_params["application_id"]
    version = _number(form["version"])
    try:
        await cases.assign(visitor.id, found, form["officer"] or None, version=version)
    except Changed as refusal:
        return _done(request, "changed_by_other", refusal.version, version, state="late")
    return _done(request, "assigned_now")


async def note(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        await cases.note(visitor.id, request.path_params["application_id"], form["text"])
    except Invalid as refusal:
        frame.add_wrongs(form, visitor, refusal)
        return await _draw(request, visitor, form, status=422)
    return _done(request, "note_added")


async def ask_for(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        await cases.ask_for(visitor.id, request.path_params["application_id"], form["kind"], form["wanted"])
    except Invalid as refusal:
        form.error("wanted", frame.refused(visitor, refusal))
        return await _draw(request, visitor, form, status=422)
    return _done(request, "asked_document")


async def draft(request: Request, visitor: Visitor) -> Response:
    form, found = await frame.read(request), request.path_params["application_id"]
    version = _number(form["version"])
    if form["outcome"] not in tuple(Outcome):
        form.error("outcome", say(visitor.language, "outcome_missing"))
        return await _draw(request, visitor, form, status=422)
    try:
        await decisions.draft(visitor.id, found, Outcome(form["outcome"]), form["words"], version=version)
    except Changed as refusal:
        return _done(request, "changed_by_other", refusal.version, version, state="late")
    except Invalid as refusal:
        frame.add_wrongs(form, visitor, refusal)
        return await _draw(request, visitor, form, status=422)
    return _done(request, "decision_saved")


async def check(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    version = _number(form["version"])
    try:
        await decisions.check(visitor.id, request.path_params["application_id"], version=version)
    except Changed as refusal:
        return _done(request, "changed_by_other", refusal.version, version, state="late")
    return _done(request, "decision_checked")


async def resume(request: Request, visitor: Visitor) -> Response:
    await frame.read(request)
    await cases.resume(visitor.id, request.path_params["application_id"])
    return _done(request, "resumed")


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _done(request: Request, key: str, *values: object, state: str = "ok") -> Response:
    words = say(request.state.visitor.language, key, *values)
    return frame.go(request, f"/desk/cases/{request.path_params['application_id']}", Notice(words, state))


# --- files: what the scanner has found clean, as downloads ---


async def file(request: Request, visitor: Visitor) -> Response:
    application_id, document_id = request.path_params["application_id"], request.path_params["document_id"]
    document, reading = await cases.read_file(visitor.id, application_id, document_id)
    return StreamingResponse(
        aiter(reading),
        media_type=document.type,
        headers={**_SAFE, "content-disposition": _attached(document.name)},
    )


async def all_files(request: Request, visitor: Visitor) -> Response:
    """Each of them is a look of its own in the audit log."""
    application_id = request.path_params["application_id"]
    found = await cases.case(visitor.id, application_id)
    clean = [each for each in found.documents if each.state == "clean"]
    if not clean:
        raise NotHere
    out = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  it is closed behind the answer
    with zipfile.ZipFile(out, "w") as archive:
        for number, each in enumerate(clean, 1):
            document, reading = await cases.read_file(visitor.id, application_id, each.id)
            content = b"".join([piece async for piece in aiter(reading)])
            await run_in_threadpool(archive.writestr, f"{number}-{document.name}", content)
    out.seek(0)
    headers = {**_SAFE, "content-disposition": _attached(f"{found.row.number}.zip")}
    return StreamingResponse(
        iter(lambda: out.read(65_536), b""), media_type="application/zip", headers=headers, background=BackgroundTask(out.close)
    )  # fmt: skip


def _attached(name: str) -> str:
    return f"attachment; filename=\"document\"; filename*=UTF-8''{quote(name, safe='')}"


_CASE = "/desk/cases/{application_id}"
routes = [
    frame.at(f"GET {_CASE}", show), frame.at(f"GET {_CASE}/files.zip", all_files), frame.at(f"GET {_CASE}/files/{{document_id}}", file),
    frame.at(f"POST {_CASE}/assign", assign), frame.at(f"POST {_CASE}/notes", note), frame.at(f"POST {_CASE}/requests", ask_for),
    frame.at(f"POST {_CASE}/decision", draft), frame.at(f"POST {_CASE}/check", check), frame.at(f"POST {_CASE}/resume", resume),
]  # fmt: skip
