"""Patterns of middleware fit whatever the router of the app brings to the same handler: a limit that can be walked around is none."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from holdfast.kernel.errors import UsageError
from holdfast.web.routes import Routes

PATHS = [
    "/login", "/login/", "//login", "/login%0a", "/login%0d%0a", "/%6cogin", "/login;a=b", "/login%00", "/login?next=%0a", "/login%23",
    "/files", "/files/", "/files/a", "/files/a/b%2fc", "/files/%0a", "/files/a%0ab", "/items/7", "/items/7%0a", "/items/%2f", "/items/a%0ab",
    "/numbers/7", "/numbers/-7", "/numbers/x", "/numbers/%d9%a7", "/halves/7.5", "/halves/7", "/ids/0b6f3f0e5c7d4b1f9a55a2c14c1d1e0f",
    "/ids/0B6F3F0E-5C7D-4B1F-9A55-A2C14C1D1E0F", "/in/login", "/in/login%0a", "/in//login", "/inlogin", "/./login", "/files/../login", "/LOGIN",
]  # fmt: skip
ROUTED = {
    "/login": "login", "/files/{rest:path}": "files", "/items/{id}": "items", "/numbers/{n:int}": "number", "/halves/{n:float}": "half",
    "/ids/{id:uuid}": "id", "/in/login": "mounted",
}  # fmt: skip


def served():
    def named(name):
        async def handler(request):
            return PlainTextResponse(name)

        return handler

    routes = [Route(path, named(name), methods=["POST", "GET"]) for path, name in list(ROUTED.items())[:-1]]
    routes.append(Mount("/in", routes=[Route("/login", named("mounted"), methods=["POST", "GET"])]))
    return Starlette(routes=routes)


class Told:
    """Keeps which pattern middleware around the app has found."""

    def __init__(self, app, method):
        self._app, self.found = app, None
        self._routes = Routes([f"{method} {path}" for path in ROUTED])

    async def __call__(self, scope, receive, send):
        self.found = self._routes.find(scope)
        await self._app(scope, receive, send)


@pytest.mark.parametrize("root", ["", "/shop"])
@pytest.mark.parametrize(
    ("pattern", "method"), [("POST", "POST"), ("*", "POST"), ("GET", "GET"), ("GET", "HEAD")]
)
async def test_no_spelling_of_a_path_gets_past_its_pattern(pattern, method, root):
    app = Told(served(), pattern)
    transport = httpx.ASGITransport(app=app, root_path=root)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as http:
        ran = 0
        for path in PATHS:
            answer = await http.request(method, root + path)
            if answer.status_code == 200:
                ran += 1
                assert app.found is not None, f"{path!r} runs a handler, and fits no pattern"
            elif path.startswith(("/numbers", "/halves", "/ids")):
                assert app.found is None, f"{path!r} fits a pattern, and runs no handler"
    assert ran > 12


async def test_a_root_ends_where_a_segment_does():
    routes = Routes(["POST /login"])
    assert routes.find({"method": "POST", "path": "/v1/login", "root_path": "/v1"}) == "POST /login"
    assert routes.find({"method": "POST", "path": "/v12/login", "root_path": "/v1"}) is None
    assert routes.find({"method": "POST", "path": "/login", "root_path": "/log"}) == "POST /login"


@pytest.mark.parametrize(
    "path", ["/a/{id:number}", "/a/{id:", "/a/{}", "/a/id}", "/a/{my-id}", "/a/{id:int}/{x"]
)
def test_a_pattern_that_fits_nothing_is_refused(path):
    with pytest.raises(UsageError, match=r"brace that stands for no part|of the kind"):
        Routes([f"POST {path}"])


async def test_other_methods_are_other_routes():
    routes = Routes(["POST /login"])
    assert routes.find({"method": "GET", "path": "/login"}) is None
    assert routes.find({"method": "HEAD", "path": "/login"}) is None
