"""Withdraw an application, after a page that says what follows."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import applying, story
from admissions.domain.states import STANDING
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web.pages import Form


async def ask(request: Request, visitor: Visitor) -> Response:
    its = await story.of(visitor.id, request.path_params["application_id"])
    if its.state not in STANDING:
        return frame.go(request, f"/applications/{its.id}/status")
    return frame.render(request, "withdraw.html", {"its": its, "form": Form()})


async def withdraw(request: Request, visitor: Visitor) -> Response:
    found, form = request.path_params["application_id"], await frame.read(request)
    await applying.withdraw(visitor.id, found, form["reason"])
    return frame.go(
        request, f"/applications/{found}/status", Notice(say(visitor.language, "withdraw_begun"), "off")
    )


_OWN = "/applications/{application_id}/withdraw"
routes = [frame.at(f"GET {_OWN}", ask), frame.at(f"POST {_OWN}", withdraw)]
