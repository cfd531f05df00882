"""WithPages: the middleware that an app with pages stands in. It serves the static files and sets the headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from holdfast.web.asgi import App, Receive, Scope, Send, path_of
from holdfast.web.pages import readers
from holdfast.web.pages.assets import serve
from holdfast.web.pages.forms import Form, FormRefused
from holdfast.web.pages.givens import ROOT
from holdfast.web.pages.headers import PageHeaders
from holdfast.web.pages.kit import Pages
from holdfast.web.problems import PAGE

_THEME = "/-/theme"


class WithPages:
    """Middleware: `app = WithPages(app, pages)`. It stands around the whole app, wherever that is mounted.

    It answers `/static/<hash>/…` and `POST /-/theme`, remembers the prefix under which it is mounted, and sets the headers of
    `PageHeaders`, which takes `allow`. What middleware inside of it refuses is a page for browsers.
    """

    def __init__(self, app: App, pages: Pages, *, allow: Mapping[str, Sequence[str]] | None = None) -> None:
        self._app, self._pages = app, pages
        self._inner = PageHeaders(self._route, allow=allow)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            # Below a Mount inside of the app, root_path is longer than where the app itself stands.
            scope = {**scope, ROOT: str(scope.get("root_path", "")).rstrip("/")}
            scope[PAGE] = partial(self._pages.draw_problem, Request({**scope, "type": "http"}))
        await self._inner(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] in ("GET", "HEAD") and (found := self._pages.assets.find(path_of(scope))):
            await serve(found, scope, send)
        elif scope["method"] == "POST" and path_of(scope) == _THEME:
            await self._choose_theme(Request(scope, receive), send)
        else:
            await self._app(scope, receive, send)

    async def _choose_theme(self, request: Request, send: Send) -> None:
        """A choice of this browser, kept in a cookie. It needs no token, but another site has no say in it."""
        answer: Response
        try:
            answer = await self._chosen(request)
        except FormRefused as error:
            answer = PlainTextResponse(error.detail, error.status_code)
        await answer(request.scope, request.receive, send)

    async def _chosen(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise FormRefused(403, "Another site has sent this form.")
        form = await Form.read(request, most=4096)
        answer = self._pages.redirect(request, _own_path(form["path"]), back=form["back"])
        readers.set_theme(answer, request.scope, str(request.scope[ROOT]), form["theme"])
        return answer


def _own_path(path: str) -> str:
    """The page on which the choice was made; the first one when that is no path of ours."""
    is_path = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if is_path else "/"
