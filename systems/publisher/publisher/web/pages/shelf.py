"""Templates for words, and prices for the sale queue."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Form
from publisher.desk import presets, templates
from publisher.desk.refusals import Fault, Invalid
from publisher.web.pages import frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.visitor import Visitor

_PRICE = re.compile(r"(\d{1,5})([.,](\d{1,2}))?")


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    return await _draw(request, visitor, Form(), 200)


async def _draw(request: Request, visitor: Visitor, form: Form, status: int) -> Response:
    found = await templates.listing(visitor.id)
    values = {
        "kinds": [
            (kind, word, [each for each in found if each.kind == kind])
            for kind, word in templates.KINDS.items()
        ],
        "presets": await presets.listing(visitor.id),
        "form": form,
    }
    return frame.render(request, "shelf.html", values, status=status)


@frame.page
async def save(request: Request, visitor: Visitor) -> Response:
    """A new template, or another text for one that is there."""
    form = await frame.read(request)
    try:
        if form["id"]:
            await templates.change(visitor.id, form["id"], form["name"], form["text"])
        else:
            await templates.make(visitor.id, form["kind"], form["name"], form["text"])
    except Invalid as refusal:
        return await _refused(request, visitor, form, refusal)
    return frame.go(request, "/templates", Notice(f"“{form['name'].strip()}” is saved."))


@frame.page
async def delete(request: Request, visitor: Visitor) -> Response:
    await templates.delete(visitor.id, request.path_params["template_id"])
    return frame.go(
        request, "/templates", Notice("Deleted. Posts that were made with it keep what they have.", "off")
    )


@frame.page
async def save_price(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        low = _cents(form["low"], "low")
        high = _cents(form["high"], "high") if form["high"].strip() else low
        is_default = form["is_default"] == "yes"
        if form["id"]:
            await presets.change(visitor.id, form["id"], form["name"], low, high, is_default=is_default)
        else:
            await presets.make(visitor.id, form["name"], low, high, is_default=is_default)
    except Invalid as refusal:
        return await _refused(request, visitor, form, refusal)
    return frame.go(request, "/templates", Notice(f"“{form['name'].strip()}” is saved."))


@frame.page
async def delete_price(request: Request, visitor: Visitor) -> Response:
    await presets.delete(visitor.id, request.path_params["preset_id"])
    return frame.go(
        request, "/templates", Notice("Deleted. Entries of the sale queue keep their price.", "off")
    )


async def _refused(request: Request, visitor: Visitor, form: Form, refusal: Invalid) -> Response:
    for fault in refusal.faults:
        form.error(fault.field, fault.words)
    return await _draw(request, visitor, form, 422)


def _cents(text: str, field: str) -> int:
    """75, 75.5 and 75,50 are prices."""
    found = _PRICE.fullmatch(text.strip().removeprefix("USD").strip())
    if found is None:
        raise Invalid([Fault(field, f"{text[:20]!r} is no price. Write dollars, such as 75 or 75.50.")])
    return 100 * int(found[1]) + int((found[3] or "0").ljust(2, "0"))


routes = [
    Route("/templates", show),
    Route("/templates", save, methods=["POST"]),
    Route("/templates/{template_id}/delete", delete, methods=["POST"]),
    Route("/prices", save_price, methods=["POST"]),
    Route("/prices/{preset_id}/delete", delete_price, methods=["POST"]),
]
