"""My applications, and the begin of one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import applying, story
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.pages.standing import look_of
from admissions.web.visitor import Visitor


async def show(request: Request, visitor: Visitor) -> Response:
    found = await story.all_of(visitor.id)
    return frame.render(request, "applications.html", {"stories": [(each, look_of(each)) for each in found]})


async def begin(request: Request, visitor: Visitor) -> Response:
    """To the form; where it was sent already, to how it stands."""
    found = await applying.begin(visitor.id, (await frame.read(request))["term"])
    draft = await applying.draft_of(visitor.id, found)
    return frame.go(request, f"/applications/{found}/{'form' if draft.state == State.DRAFT else 'status'}")


routes = [frame.at("GET /applications", show), frame.at("POST /apply", begin)]
