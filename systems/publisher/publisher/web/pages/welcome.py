"""The first three steps of a new artist: connect, choose pictures, pick a time."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from publisher.web.pages import frame
from publisher.web.pages.visitor import Visitor


@frame.page
async def welcome(request: Request, visitor: Visitor) -> Response:
    done = 3 if visitor.count("scheduled", "published") else 2 if visitor.has_posts else 1
    return frame.render(request, "welcome.html", {"done": done if visitor.is_connected else 0})


routes = [Route("/welcome", welcome)]
