"""Pages: renders templates for a request, whole or only the regions that it asks for, and redirects after a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.web.pages import readers, regions, trouble
from holdfast.web.pages.accents import Accent, accent_of, style_of
from holdfast.web.pages.assets import Assets
from holdfast.web.pages.givens import Givens, environment, root_of
from holdfast.web.problems import Problem


class Pages:
    """The pages of one app: `pages = Pages("templates", name="Shop")`, and `app = WithPages(app, pages)`.

    `templates` is a folder; its pages extend `holdfast/rail.html` or `holdfast/top.html`. `static` is a folder of more files
    for `asset("…")`; one of the same name goes before that of the kit. `accent` is a colour by name, or an `Accent`. `zone` is
    that of all times, or a function from the request to its name; without it, times are in the zone of the reader's
    browser. A page with regions asks for them every `follow` seconds. `context` gives values to every page, such as the
    person who is logged in.
    """

    def __init__(
        self,
        templates: str | Path,
        *,
        name: str = "Holdfast",
        static: str | Path | None = None,
        accent: str | Accent = "indigo",
        zone: str | Callable[[Request], str] | None = None,
        follow: float = 2.0,
        context: Callable[[Request], Mapping[str, Any]] | None = None,
    ) -> None:
        if not Path(templates).is_dir():
            raise UsageError(f"templates={show(str(templates))} is no folder.")
        self.name = name
        self.assets = Assets(Path(static) if static else None, {"accent.css": style_of(accent_of(accent))})
        self.env = environment(Path(templates))
        every = check_seconds("follow", follow, minimum=0.05)
        self._givens = Givens(self.env, self.assets, name=name, zone=zone, follow=every, more=context)
        has_own = (Path(templates) / "problem.html").is_file()
        self._problem = "problem.html" if has_own else "holdfast/problem.html"

    def render(
        self,
        request: Request,
        template: str,
        values: Mapping[str, Any] | None = None,
        *,
        status: int = 200,
        version: object = None,
    ) -> Response:
        """The page; or, for a page that follows, its regions: 204 when the reader has them already.

        `version` says when nothing has changed, and spares the rendering; without it the regions themselves are compared.
        """
        names = regions.asked(request.scope) if status == 200 else ()
        if names and version is not None and (same := self.unchanged(request, version)) is not None:
            return same
        found, told = regions.Regions(), None if names else readers.told_to(request)
        context = {**self._givens.of(request, found, version, told), **(values or {})}
        html = self.env.get_template(template).render(context)
        parts = found.parts(names) if names else None
        if parts is None:
            answer: Response = HTMLResponse(html, status, {"cache-control": "private, no-cache"})
            if told is not None:
                readers.forget_told(answer, root_of(request))
        else:
            answer = _regions_answer(request, parts, context["version"](names))
        answer.headers["vary"] = "x-holdfast-regions, cookie"
        return answer

    def problem(self, request: Request, error: BaseException) -> Response:
        """The page of an error: `Starlette(exception_handlers={HTTPException: pages.problem, Exception: pages.problem})`.

        It says what `problem_of` does, and nothing of what is inside. A template `problem.html` of the program goes before ours.
        """
        problem = trouble.problem_for(request.scope, error)
        answer = self.render(request, self._problem, {"problem": problem}, status=problem.status)
        if problem.retry_after is not None:
            answer.headers["retry-after"] = str(problem.retry_after)
        return answer

    def draw_problem(self, request: Request, problem: Problem) -> bytes:
        """The page of a problem that middleware has answered with."""
        context = self._givens.of(request, regions.Regions(), None, None)
        return self.env.get_template(self._problem).render({**context, "problem": problem}).encode()

    def unchanged(self, request: Request, version: object) -> Response | None:
        """204 for a reader who has this version already, before anything is read for the page; else None."""
        if not regions.asked(request.scope):
            return None
        told = regions.version_of(request.scope, version)
        return _regions_answer(request, "", told) if regions.seen(request.scope) == told else None

    def redirect(
        self,
        request: Request,
        path: str,
        *,
        tell: str | None = None,
        state: readers.State = "ok",
        back: str = "",
    ) -> Response:
        """303 to a page of this app, after a form. `tell` is shown there once. `back` is a query that the form has kept."""
        if not path.startswith("/") or path.startswith("//") or "\\" in path:
            raise UsageError(f"redirect goes to a path of this app, such as /orders, not to {show(path)}.")
        query = urlencode(parse_qsl(back.removeprefix("?")[:2000]))
        # No host: behind a proxy, the one that we see is not the one of the browser.
        answer = RedirectResponse(f"{root_of(request)}{path}{'?' if query else ''}{query}", 303)
        if tell is not None:
            readers.tell(answer, request.scope, root_of(request), readers.Told(tell, state))
        return answer

    def address(self, request: Request, path: str) -> str:
        """A path of this app, with the prefix under which it is mounted."""
        return root_of(request) + path


def _regions_answer(request: Request, parts: str, version: str) -> Response:
    # One address has two answers: a cache must keep neither, else "back" shows a fragment.
    fields = {
        "cache-control": "no-store",
        "vary": "x-holdfast-regions, cookie",
        "x-holdfast-version": version,
    }
    if regions.seen(request.scope) == version:
        return Response(None, 204, fields)
    return HTMLResponse(parts, 200, fields)
