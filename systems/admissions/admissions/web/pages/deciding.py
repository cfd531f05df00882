"""Decisions by round: how far they are, and telling all that are checked at one time."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import decisions, rounds
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say


async def show(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    return frame.render(request, "desk_decisions.html", {"rounds": await rounds.listing()})


async def release(request: Request, visitor: Visitor) -> Response:
    await frame.read(request)
    await decisions.release(visitor.id, request.path_params["term_id"])
    return frame.go(request, "/desk/decisions", Notice(say(visitor.language, "released"), "run"))


routes = [frame.at("GET /desk/decisions", show), frame.at("POST /desk/decisions/{term_id}/release", release)]
