"""What all pages share: who looks and whether they may, the language, what was just done, and refusals as words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from admissions.core import settings
from admissions.desk.refusals import Forbidden, Invalid, NotHere, Refusal
from admissions.domain.forms import Wrong
from admissions.domain.roles import May, may
from admissions.web.allowed import PAGES, is_allowed
from admissions.web.pages.texts import add_filters, money, offset
from admissions.web.visitor import Visitor, preferred, seen_visitor, visitor_of
from admissions.web.words import NAMES, say
from holdfast.web import session_of
from holdfast.web.pages import Form, Pages

_HERE = Path(__file__).parent.parent
_NOTICE = "notice"  # in the session
_FORM_MOST = 256 * 1024  # bytes: a statement has 5,000 characters, of four bytes each and escaped
Handler = Callable[[Request, Visitor], Awaitable[Response]]


class Notice(msgspec.Struct, frozen=True):
    """What the last action has done, shown once on the next page."""

    words: str
    state: str = "ok"


def _context(request: Request) -> Mapping[str, Any]:
    visitor = seen_visitor(request)
    language = visitor.language if visitor else preferred(request.headers.get("accept-language", ""))
    person = visitor.person if visitor else None
    now = {"now": visitor.now} if visitor else {}
    return {
        "person": person, "language": language, "languages": NAMES, "t": partial(say, language), "university": settings.university,
        "is_simulated": settings.is_simulated, "notice": getattr(request.state, "notice", None),
        "may": lambda what: person is not None and may(person.role, May(what)), "is_staff": bool(visitor and visitor.is_staff),
        "zone_words": say(language, "zone", university=settings.university, zone=settings.zone, offset=offset(visitor.now)) if visitor else "",
        **now,
    }  # fmt: skip


pages = Pages(
    _HERE / "templates",
    name="Admissions",
    static=_HERE / "static",
    accent="navy",
    zone=settings.zone,
    follow=3.0,
    context=_context,
)
add_filters(pages.env)


def at(key: str, handler: Handler) -> Route:
    """A route of the table of pages; one that is not in it cannot be made. Strangers are led to the login, and from there back."""
    needs = PAGES[key]
    method, _, path = key.partition(" ")

    async def route(request: Request) -> Response:
        visitor = await visitor_of(request)
        if not is_allowed(visitor.person, needs):
            if visitor.person is None:
                return _to_login(request)
            raise Forbidden
        try:
            return await handler(request, visitor)
        except (NotHere, Forbidden):
            raise
        except Refusal as refusal:
            if request.method != "POST":
                raise
            return back(request, Notice(refused(visitor, refusal), "late"))

    return Route(path, route, methods=[method])


def _to_login(request: Request) -> Response:
    """What was asked for by POST is not asked for again by itself: they come back to the page before it."""
    address = (
        str(request.url.path)
        if request.method == "GET"
        else own_path(request, request.headers.get("referer", ""))
    )
    path = address.removeprefix(pages.address(request, ""))
    return RedirectResponse(f"{pages.address(request, '/login')}?next={quote(path or '/')}", 303)


def refused(visitor: Visitor, refusal: Refusal) -> str:
    """The sentence of a refusal; of fields, their sentences."""
    if isinstance(refusal, Invalid):
        return " ".join(wrong_words(visitor, each) for each in refusal.wrong)
    return say(visitor.language, refusal.key, *refusal.values)


def wrong_words(visitor: Visitor, wrong: Wrong) -> str:
    if wrong.key == "refund_too_much":
        wrong = Wrong(
            wrong.field, wrong.key, tuple(money(int(str(each)), settings.currency) for each in wrong.values)
        )
    return say(visitor.language, wrong.key, *wrong.values)


def add_wrongs(form: Form, visitor: Visitor, refusal: Invalid) -> None:
    """Each beside its field."""
    for each in refusal.wrong:
        form.error(each.field, wrong_words(visitor, each))


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


def go(request: Request, path: str, notice: Notice | None = None, *, query: str = "") -> Response:
    """303 to a page of ours, after a form."""
    if notice is not None:
        session_of(request)[_NOTICE] = msgspec.to_builtins(notice)
    return pages.redirect(request, path, back=query)


def back(request: Request, notice: Notice) -> Response:
    """To the page from which the form came, as its browser tells."""
    came_from = request.headers.get("referer", "")
    query = came_from.partition("#")[0].partition("?")[2]
    return go(request, own_path(request, came_from), notice, query=query)


def own_path(request: Request, address: str) -> str:
    """The path of an address of ours, without what is before it; else the first page."""
    rest = address.partition("//")[2]
    return inner_path(request, "/" + rest.partition("/")[2])


def inner_path(request: Request, address: str) -> str:
    root = pages.address(request, "")
    path = address.partition("?")[0].partition("#")[0]
    path = path.removeprefix(root) if root else path
    return path if path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path else "/"  # fmt: skip


def is_script(request: Request) -> bool:
    """Whether a script of ours asks, which takes JSON."""
    return request.headers.get("accept", "").startswith("application/json")


async def read(request: Request) -> Form:
    """The form that was sent."""
    return await Form.read(request, most=_FORM_MOST)
