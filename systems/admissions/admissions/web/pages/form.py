"""The form of three steps, saved as one types. What was typed is kept, right or not; only sending asks for all of it to be right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from admissions.core import hf
from admissions.desk import applying, story
from admissions.desk.refusals import Changed, NotHere, TooLate
from admissions.desk.story import Story
from admissions.domain.forms import (
    FILE_MOST,
    FILES_MOST,
    KINDS,
    STATEMENT_LEAST,
    STATEMENT_MOST,
    STEPS,
    Wrong,
)
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.pages.texts import clock
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast import within
from holdfast.web.pages import Form

LIMITS = {"least": STATEMENT_LEAST, "most": STATEMENT_MOST, "files": FILES_MOST, "file": FILE_MOST}


async def begin(request: Request, visitor: Visitor) -> Response:
    """Where there is something to do: the first step that is not finished."""
    found = request.path_params["application_id"]
    wrongs = await applying.wrongs(visitor.id, found)
    step = next((step for step in STEPS if any(_is_of(step, each) for each in wrongs)), None)
    return frame.go(request, f"/applications/{found}/{f'form/{step}' if step else 'check'}")


async def show(request: Request, visitor: Visitor) -> Response:
    its, step = await _its(request, visitor)
    if its.state is not State.DRAFT:
        return frame.go(request, f"/applications/{its.id}/status")
    return await _draw(request, visitor, step, _filled(its))


async def _its(request: Request, visitor: Visitor) -> tuple[Story, str]:
    step = request.path_params["step"]
    if step not in STEPS:
        raise NotHere
    return await story.of(visitor.id, request.path_params["application_id"]), step


def _filled(its: Story) -> Form:
    answers = {name: value for name, value in asdict(its.draft.answers).items() if name != "declared"}
    declared = {"declared": "yes"} if its.draft.answers.declared else {}
    return Form({**answers, **declared, "version": str(its.draft.version)})


async def _draw(request: Request, visitor: Visitor, step: str, form: Form, *, status: int = 200) -> Response:
    its = await story.of(visitor.id, request.path_params["application_id"])
    values = {"its": its, "step": step, "form": form, "limits": LIMITS, "kinds": KINDS}
    return frame.render(request, f"form_{step}.html", values | await steps_of(visitor, its), status=status)


async def steps_of(visitor: Visitor, its: Story) -> dict[str, Any]:
    """For the list of steps beside the form: which are finished."""
    wrongs = await applying.wrongs(visitor.id, its.id)
    done = {step: not any(_is_of(step, each) for each in wrongs) for step in STEPS}
    length = len(its.draft.answers.statement.strip())
    kinds = {each.kind for each in its.documents}
    missing = next((kind for kind in KINDS if kind not in kinds), "other")
    closes = clock(its.choice.closes_at, visitor.language)
    return {
        "steps": STEPS,
        "done": done,
        "length": length,
        "wrongs": wrongs,
        "missing_kind": missing,
        "closes_words": closes,
    }


def _is_of(step: str, wrong: Wrong) -> bool:
    fields = {
        "person": ("name", "birth", "phone", "address"),
        "statement": ("statement",),
        "documents": ("files", "declared"),
    }
    return wrong.field in fields[step]


async def save(request: Request, visitor: Visitor) -> Response:
    """Also asked by a script while somebody types: it takes JSON, and is not told what is still missing."""
    its, step = await _its(request, visitor)
    form = await frame.read(request)
    answers, version = _answers(step, form), _number(form["version"])
    try:
        draft = await applying.save(visitor.id, its.id, step, answers, version=version)
    except Changed:
        return _late(request, f"form/{step}", say(visitor.language, "changed_elsewhere"))
    except TooLate as refusal:
        return _late(request, "status", frame.refused(visitor, refusal))
    if frame.is_script(request):
        saved = say(visitor.language, "draft_saved", clock(draft.changed_at, visitor.language, visitor.now))
        return JSONResponse({"version": draft.version, "words": saved})
    return await _next(request, visitor, its.id, step)


def _late(request: Request, place: str, words: str) -> Response:
    """Nothing of what is there is overwritten."""
    if frame.is_script(request):
        return JSONResponse({"words": words}, 409)
    return frame.go(
        request, f"/applications/{request.path_params['application_id']}/{place}", Notice(words, "late")
    )


async def _next(request: Request, visitor: Visitor, application_id: str, step: str) -> Response:
    """The next step; or this one again, with what is wrong in it."""
    wrongs = await applying.wrongs(visitor.id, application_id, step)
    if not wrongs:
        return frame.go(request, f"/applications/{application_id}/{_after(step)}")
    form = _filled(await story.of(visitor.id, application_id))
    for each in wrongs:
        form.error(each.field, frame.wrong_words(visitor, each))
    return await _draw(request, visitor, step, form, status=422)


def _answers(step: str, form: Form) -> dict[str, Any]:
    """A box that is not ticked is not sent."""
    found: dict[str, Any] = {name: form[name] for name in form if name not in ("version", "declared")}
    return {**found, "declared": form["declared"] == "yes"} if step == "documents" else found


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _after(step: str) -> str:
    number = STEPS.index(step) + 1
    return f"form/{STEPS[number]}" if number < len(STEPS) else "check"


async def look(request: Request, visitor: Visitor) -> Response:
    """One of their own files, as a download: what is in it is not run here."""
    application_id = request.path_params["application_id"]
    found = await story.document(visitor.id, application_id, request.path_params["document_id"])
    return RedirectResponse(await link_to(application_id, found.key, found.name), 303)


async def link_to(application_id: str, key: str, name: str) -> str:
    """Good for some minutes."""
    with within(tenant=application_id):
        link = await hf.blobs.link_get(key, download=name)
    return link.url


_OWN = "/applications/{application_id}"
routes = [
    frame.at(f"GET {_OWN}/form", begin), frame.at(f"GET {_OWN}/form/{{step}}", show), frame.at(f"POST {_OWN}/form/{{step}}", save),
    frame.at(f"GET {_OWN}/files/{{document_id}}", look),
]  # fmt: skip
