"""An app of one page, wrapped, and a client for it."""

from __future__ import annotations

from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from holdfast.web.pages import Pages, WithPages

TEMPLATES = Path(__file__).parent / "templates"


class OnePage:
    """`shown` is what its regions have; `app` is made anew for other options."""

    def __init__(self):
        self.title, self.shown, self.version, self.rendered = "Title", {"one": ["a"], "two": ["b"]}, None, 0

    async def show(self, request):
        self.rendered += 1
        values = {"title": self.title, "shown": self.shown, "names": list(self.shown)}
        return self.pages.render(request, "page.html", values, version=self.version)

    async def add(self, request):
        return self.pages.redirect(
            request, "/", tell="<b>added</b>", back=request.query_params.get("back", "")
        )

    async def fail(self, request):
        raise self.error

    def app(self, *, allow=None, **options):
        options = {"context": lambda request: {"person": "ada"}} | options
        self.pages = Pages(TEMPLATES, name="Shop", **options)
        routes = [
            Route("/", self.show),
            Route("/add", self.add, methods=["POST"]),
            Route("/broken", self.fail),
        ]
        handlers = {HTTPException: self.pages.problem, Exception: self.pages.problem}
        inner = Starlette(routes=routes, exception_handlers=handlers)
        self.routes = inner.router.routes
        return WithPages(inner, self.pages, allow=allow)


def client(app, base="http://shop.test", **options):
    transport = httpx.ASGITransport(app=app, **options)
    return httpx.AsyncClient(transport=transport, base_url=base)
