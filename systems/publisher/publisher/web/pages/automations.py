"""Automations: the list, and one of them with its rules, defaults, trial run and log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Form
from publisher.desk import automation_runs, automations, presets
from publisher.desk.refusals import Invalid
from publisher.web.pages import automation_form, frame
from publisher.web.pages.folders import folders_of
from publisher.web.pages.frame import Notice
from publisher.web.pages.numbers import whole
from publisher.web.pages.times import words_of
from publisher.web.pages.visitor import Visitor
from publisher.web.pages.waits import next_words

Act = Callable[[Visitor, str], Awaitable[tuple[str, Notice]]]


@frame.page
async def show_all(request: Request, visitor: Visitor) -> Response:
    found = await automations.listing(visitor.id)
    shown = [
        {"row": each, "rules": automation_form.in_words(each.wishes), "next": next_words(each, visitor)}
        for each in found
    ]
    return frame.render(request, "automations.html", {"automations": shown, "drafts": visitor.count("draft")})


@frame.page
async def make(request: Request, visitor: Visitor) -> Response:
    """One that posts at six in the evening, to begin with; it is off."""
    form = await frame.read(request)
    name = form["name"].strip() or "New automation"
    made = await automations.make(
        visitor.id, {"name": name, "rules": [{"kind": "fixed_time", "clock": "18:00"}]}
    )
    return frame.go(
        request, f"/automations/{made}", Notice("Made. It is off: look at its rules first.", "off")
    )


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    found = await automations.get(visitor.id, request.path_params["automation_id"])
    return await _draw(request, visitor, found, automation_form.filled(found), 200)


async def _draw(
    request: Request, visitor: Visitor, found: automations.AutomationRow, form: Form, status: int
) -> Response:
    values: dict[str, Any] = {
        "row": found,
        "form": form,
        "rules": automation_form.lines_of(form),
        "next": next_words(found, visitor),
        "log": await automation_runs.log(visitor.id, found.id, limit=10),
        "trial": await automation_runs.trial(visitor.id, found.id)
        if "trial" in request.query_params
        else None,
        "presets": await presets.listing(visitor.id),
        "folders": (await folders_of(visitor)).all,
        "labels": automation_form.LABELS,
        "days": automation_form.DAYS,
        "words_of": lambda at: words_of(at, visitor.tz),
    }
    return frame.render(request, "automation.html", values, status=status)


@frame.page
async def change(request: Request, visitor: Visitor) -> Response:
    automation_id, form = request.path_params["automation_id"], await frame.read(request)
    found = await automations.get(visitor.id, automation_id)
    if form["do"] == "add-rule":
        return await _draw(request, visitor, found, automation_form.with_rule(form, form["new_rule"]), 200)
    version = whole(form["version"])
    try:
        await automations.change(visitor.id, automation_id, automation_form.wishes_of(form), version)
    except Invalid as refusal:
        for fault in refusal.faults:
            form.error(automation_form.field_of(fault.field), fault.words)
        return await _draw(request, visitor, found, form, 422)
    return frame.go(request, f"/automations/{automation_id}", Notice("Saved."))


def _doing(act: Act) -> Callable[[Request], Awaitable[Response]]:
    @frame.page
    async def route(request: Request, visitor: Visitor) -> Response:
        where, notice = await act(visitor, request.path_params["automation_id"])
        return frame.go(request, where, notice)

    return route


async def switch_on(visitor: Visitor, automation_id: str) -> tuple[str, Notice]:
    await automations.toggle(visitor.id, automation_id, is_on=True)
    found = await automations.get(visitor.id, automation_id)
    return f"/automations/{automation_id}", Notice(f"It is on. It runs next {next_words(found, visitor)}.")


async def switch_off(visitor: Visitor, automation_id: str) -> tuple[str, Notice]:
    await automations.toggle(visitor.id, automation_id, is_on=False)
    return f"/automations/{automation_id}", Notice("It is off. What it has scheduled stays scheduled.", "off")


async def duplicate(visitor: Visitor, automation_id: str) -> tuple[str, Notice]:
    made = await automations.duplicate(visitor.id, automation_id)
    return f"/automations/{made}", Notice("This is the copy. It is off.", "off")


async def earlier(visitor: Visitor, automation_id: str) -> tuple[str, Notice]:
    """One place up in the list."""
    ids = [each.id for each in await automations.listing(visitor.id)]
    at = ids.index(automation_id) if automation_id in ids else 0
    if at > 0:
        ids[at - 1], ids[at] = ids[at], ids[at - 1]
        await automations.reorder(visitor.id, ids)
    return "/automations", Notice("The order is changed: the upper one chooses first.")


async def delete(visitor: Visitor, automation_id: str) -> tuple[str, Notice]:
    await automations.delete(visitor.id, automation_id)
    return "/automations", Notice("Deleted. What it has scheduled stays scheduled.", "off")


_DOING: dict[str, Act] = {
    "on": switch_on, "off": switch_off, "duplicate": duplicate, "earlier": earlier, "delete": delete,
}  # fmt: skip
routes = [
    Route("/automations", show_all),
    Route("/automations", make, methods=["POST"]),
    Route("/automations/{automation_id}", show),
    Route("/automations/{automation_id}", change, methods=["POST"]),
    *(
        Route(f"/automations/{{automation_id}}/{name}", _doing(act), methods=["POST"])
        for name, act in _DOING.items()
    ),
]
