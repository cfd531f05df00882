"""What has ended for good in the pipeline, in words, and letting it go on."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import stopped
from admissions.desk.refusals import NotHere
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say


async def show(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    return frame.render(request, "desk_stopped.html", {"found": await stopped.listing()})


async def go_on(request: Request, visitor: Visitor) -> Response:
    await frame.read(request)
    try:
        await stopped.go_on(visitor.id, request.path_params["job_id"])
    except NotHere:
        return frame.go(request, "/desk/stopped", Notice(say(visitor.language, "replay_over"), "late"))
    return frame.go(request, "/desk/stopped", Notice(say(visitor.language, "replayed")))


routes = [frame.at("GET /desk/stopped", show), frame.at("POST /desk/stopped/{job_id}", go_on)]
