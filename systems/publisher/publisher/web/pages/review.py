"""The inbox: what tools have sent, to be approved or rejected, by keys or many at once."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from publisher.domain.states import State
from publisher.web.pages import frame
from publisher.web.pages.listing import page_of
from publisher.web.pages.visitor import Visitor


@frame.page
async def review(request: Request, visitor: Visitor) -> Response:
    values = await page_of(request, visitor, (State.REVIEW,), 25, visitor.count("review"))
    return frame.render(request, "review.html", values)


routes = [Route("/review", review)]
