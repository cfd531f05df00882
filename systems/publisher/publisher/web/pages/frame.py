"""What all pages share: who looks, the counts in the bar, what was just done, and refusals as words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holdfast.web import session_of
from holdfast.web.pages import Form, Pages
from publisher.core import settings
from publisher.desk.refusals import Invalid, NotHere, Refusal
from publisher.web.pages.visitor import Visitor, visitor_of
from publisher.web.pages.words import add_filters

_HERE = Path(__file__).parent.parent
_NOTICE, UNDO = "notice", "undo"  # in the session
_UNDO_MOST = 32_000  # bytes
_FORM_MOST = 1024 * 1024  # bytes: a description may have 65,000 characters, and a table many posts
Handler = Callable[[Request, Visitor], Awaitable[Response]]


class Notice(msgspec.Struct, frozen=True):
    """What the last action has done, shown once on the next page. `lines` are results of single posts, `undo` is for /undo."""

    words: str
    state: str = "ok"
    lines: list[str] = []
    undo: dict[str, Any] | None = None


def _context(request: Request) -> Mapping[str, Any]:
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    now = {"now": visitor.now} if visitor else {}
    notice = getattr(request.state, "notice", None)
    return {
        "visitor": visitor, "notice": notice, "is_simulated": settings.is_simulated, "deviantart": settings.deviantart_url, **now,
    }  # fmt: skip


def _zone(request: Request) -> str:
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    return visitor.zone if visitor else "UTC"


pages = Pages(
    _HERE / "templates",
    name="Publisher",
    static=_HERE / "static",
    accent="magenta",
    zone=_zone,
    follow=3.0,
    context=_context,
)

add_filters(pages.env)


def page(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A route for somebody who is logged in; others are led to the login."""

    async def route(request: Request) -> Response:
        check_address(request)
        who = session_of(request).principal
        visitor = await visitor_of(who) if who else None
        if visitor is None:
            return RedirectResponse(pages.address(request, "/login"), 303)
        request.state.visitor = visitor
        try:
            return await handler(request, visitor)
        except NotHere as refusal:
            raise HTTPException(404, refusal.words) from None
        except Invalid as refusal:
            return back(request, Notice(refusal.words, "dead"))
        except Refusal as refusal:
            return back(request, Notice(refusal.words, "late"))

    return route


def check_address(request: Request) -> None:
    """NUL cannot be asked for: PostgreSQL takes it in no text."""
    told = (*request.path_params.values(), *request.query_params.values(), *request.query_params.keys())
    if any("\x00" in str(each) for each in told):
        raise HTTPException(404, "There is no such page: its address has the character NUL.")


def render(
    request: Request,
    template: str,
    values: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
    version: object = None,
) -> Response:
    """The page. A notice is shown once, and not taken by a question for regions."""
    if "x-holdfast-regions" not in request.headers:
        left = session_of(request).pop(_NOTICE, None)
        request.state.notice = msgspec.convert(left, Notice) if left else None
    return pages.render(request, template, values, status=status, version=version)


def leave(request: Request, notice: Notice) -> None:
    """For the next page. What is too much for a session to keep cannot be undone."""
    if notice.undo is not None and len(msgspec.json.encode(notice.undo)) > _UNDO_MOST:
        notice = msgspec.structs.replace(notice, undo=None)
    session = session_of(request)
    session[_NOTICE] = msgspec.to_builtins(notice)
    session[UNDO] = notice.undo


def go(request: Request, path: str, notice: Notice | None = None, *, query: str = "") -> Response:
    """303 to a page of ours, after a form."""
    if notice is not None:
        leave(request, notice)
    return pages.redirect(request, path, back=query)


def back(request: Request, notice: Notice) -> Response:
    """To the page from which the form came, as its browser tells."""
    leave(request, notice)
    came_from = request.headers.get("referer", "")
    query = came_from.partition("#")[0].partition("?")[2]
    return pages.redirect(request, own_path(request, came_from), back=query)


def own_path(request: Request, address: str) -> str:
    """The path of an address of ours, without what is before it; else the first page."""
    root, rest = pages.address(request, ""), address.partition("//")[2]
    path = "/" + rest.partition("/")[2].partition("?")[0].partition("#")[0]
    path = path.removeprefix(root) if root else path
    return path if path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path else "/"  # fmt: skip


async def read(request: Request) -> Form:
    """The form that was sent."""
    return await Form.read(request, most=_FORM_MOST)
