"""API keys: made with a secret that is shown once, and revoked at once."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Column, Form
from publisher.core import settings
from publisher.desk import keys
from publisher.desk.refusals import Invalid
from publisher.web.pages import frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.visitor import Visitor


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    return await _draw(request, visitor, Form(), None, 200)


@frame.page
async def make(request: Request, visitor: Visitor) -> Response:
    """The answer has the secret; no other page ever has it again."""
    form = await frame.read(request)
    try:
        made = await keys.make(visitor.id, form["name"].strip())
    except Invalid as refusal:
        for fault in refusal.faults:
            form.error(fault.field, fault.words)
        return await _draw(request, visitor, form, None, 422)
    answer = await _draw(request, visitor, Form(), made, 200)
    answer.headers["cache-control"] = "no-store"
    return answer


async def _draw(
    request: Request, visitor: Visitor, form: Form, made: keys.NewKey | None, status: int
) -> Response:
    values = {
        "keys": await keys.listing(visitor.id),
        "form": form,
        "made": made,
        "public_url": settings.public_url.rstrip("/"),
        "columns": [Column("Name"), Column("Begins with"), Column("Last used"), Column("Made"), Column("")],
    }
    return frame.render(request, "keys.html", values, status=status)


@frame.page
async def revoke(request: Request, visitor: Visitor) -> Response:
    found = await keys.revoke(visitor.id, request.path_params["key_id"])
    return frame.go(request, "/keys", Notice(f"“{found.name}” opens nothing any more.", "off"))


@frame.page
async def delete(request: Request, visitor: Visitor) -> Response:
    await keys.delete(visitor.id, request.path_params["key_id"])
    return frame.go(request, "/keys", Notice("The key is gone from the list.", "off"))


routes = [
    Route("/keys", show),
    Route("/keys", make, methods=["POST"]),
    Route("/keys/{key_id}/revoke", revoke, methods=["POST"]),
    Route("/keys/{key_id}/delete", delete, methods=["POST"]),
]
