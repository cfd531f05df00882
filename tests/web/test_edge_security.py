"""What docs/security.md promises of the whole edge: headers on every answer, errors that tell nothing, logs that cannot be forged."""

from __future__ import annotations

import ast
import asyncio
import logging
import re
from pathlib import Path

import httpx
import pytest
from edge import client
from members import Browser
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from holdfast.kernel import floods, logged
from holdfast.observe import ConsoleFormatter, JsonFormatter
from holdfast.web import (
    BodyLimits,
    Correlation,
    IdempotencyKeys,
    Problems,
    RateLimit,
    RateLimits,
    Sessions,
    session_of,
)
from holdfast.web.pages import Pages, WithPages
from holdfast.web.problems import _PROBLEMS

ROOT = Path(__file__).parents[2]
CANARY = "hunter2-of-the-inside"


class Front:
    """An app behind the whole edge, in the order of docs/web.md."""

    def __init__(self, hf, templates, error=None):
        self.error, self.runs = error, 0
        pages = Pages(templates)
        routes = [
            Route("/", self.show),
            Route("/fail", self.fail, methods=["GET", "POST"]),
            Route("/gone", self.gone),
            Route("/login", self.login, methods=["POST"]),
            Route("/order", self.order, methods=["POST"]),
        ]
        edge = [
            Middleware(Correlation),
            Middleware(WithPages, pages),
            Middleware(Problems),
            Middleware(BodyLimits, total=1000),
            Middleware(RateLimits, hf, [RateLimit("few", requests=1, routes=["GET /few"])]),
            Middleware(Sessions, hf, exempt=["POST /order"]),
            Middleware(IdempotencyKeys, hf, routes=["POST /order"]),
        ]
        self.app = Starlette(routes=routes, middleware=edge)

    async def show(self, request):
        return PlainTextResponse("hello")

    async def fail(self, request):
        raise self.error

    async def gone(self, request):
        raise HTTPException(404)

    async def login(self, request):
        await session_of(request).login(
            request.query_params["who"], tenant=request.query_params.get("tenant")
        )
        return PlainTextResponse("in")

    async def order(self, request):
        self.runs += 1
        return JSONResponse({"for": session_of(request).principal, "run": self.runs})


@pytest.fixture
def front(hf, tmp_path):
    return Front(hf, tmp_path)


# --- headers ---


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/", {}, 200),
        ("GET", "/gone", {}, 404),
        ("GET", "/nowhere", {}, 404),
        ("DELETE", "/", {}, 405),
        ("GET", "/fail", {}, 500),
        ("POST", "/fail", {"headers": {"sec-fetch-site": "cross-site"}}, 403),
        ("POST", "/login", {"content": b"x" * 1001}, 413),
        ("POST", "/order", {"headers": {"idempotency-key": '"'}}, 400),
        ("GET", "/static/none/kit.css", {}, 404),
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_every_answer_has_the_headers(front, method, path, options, status, accept):
    front.error = RuntimeError(CANARY)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=front.app, raise_app_exceptions=False), base_url="https://shop.test"
    ) as http:
        options["headers"] = {**options.get("headers", {}), "accept": accept}
        answer = await http.request(method, path, **options)
    assert answer.status_code == status
    found = answer.headers
    assert found["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
    for part in (
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ):
        assert part in found["content-security-policy"]
    assert "unsafe" not in found["content-security-policy"]
    assert (found["x-content-type-options"], found["referrer-policy"]) == ("nosniff", "same-origin")
    assert found["strict-transport-security"] == "max-age=31536000"
    assert len(found["x-correlation-id"]) > 10
    assert "server" not in found
    assert "x-powered-by" not in found


# --- errors ---


@pytest.mark.parametrize(
    "kind", [RuntimeError, KeyError, RecursionError, UnicodeError, *(kind for kind, _ in _PROBLEMS)]
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_no_error_tells_what_is_inside(front, kind, accept):
    front.error = kind.__new__(kind)
    front.error.args = (CANARY,)
    async with client(front.app) as http:
        answer = await http.get("/fail", headers={"accept": accept})
    assert answer.status_code >= 400
    assert CANARY not in answer.text + str(answer.headers)
    assert "Traceback" not in answer.text
    assert kind.__name__ not in answer.text
    assert answer.headers["x-correlation-id"] in answer.text


# --- logs ---

INJECTED = "%0d%0a2026-11-18 10:15:02.123 ERROR holdfast: forged%1b[2J%e2%80%a8%c2%85"


async def test_no_request_writes_a_line_of_its_own(front, caplog, monkeypatch):
    """By its path, its key, its correlation id or what its browser calls itself."""
    monkeypatch.setattr(logged, "_floods", floods.Floods(logged._tell_flood))
    caplog.set_level(logging.DEBUG, logger="holdfast")
    front.error = RuntimeError("a\nforged\r\u2028forged")
    headers = {
        "X-Correlation-Id": b"a\x0bforged", "traceparent": b"00-\x85forged", "Idempotency-Key": b"\xa0forged\x0b", "User-Agent": b"a\x0b\x85forged",
    }  # fmt: skip
    async with client(front.app) as http:
        await http.get("/fail", headers=headers)
        await http.get("/fail" + INJECTED, headers=headers)
        await http.post("/order" + INJECTED, headers={**headers, "Idempotency-Key": b"k"})
        await http.post("/order", headers=headers)
        answer = await http.get("/", headers=headers)
    assert re.fullmatch(r"[A-Za-z0-9-]+", answer.headers["x-correlation-id"])
    ours = [record for record in caplog.records if record.name.startswith("holdfast")]
    assert ours
    for record in ours:
        lines = ConsoleFormatter().format(record).splitlines()
        assert all(line.startswith("    ") for line in lines[1:]), lines
        assert all(line.isprintable() for line in lines), lines
        assert len(JsonFormatter().format(record).splitlines()) == 1


# --- whose answer ---


async def test_no_answer_is_given_to_somebody_else(front):
    """The same key, route and body, by another person, the same name in another tenant, and a stranger."""
    key = {"Idempotency-Key": "5f0e"}
    given = []
    for login in (
        {"who": "ada"},
        {"who": "eve"},
        {"who": "ada", "tenant": "one"},
        {"who": "ada", "tenant": "two"},
        None,
    ):
        async with Browser(front.app) as browser:
            if login is not None:
                assert (await browser.post("/login", params=login)).status_code == 200
            answers = [await browser.post("/order", json={"a": 1}, headers=key) for _ in range(2)]
            assert answers[0].content == answers[1].content
            assert ["idempotent-replayed" in answer.headers for answer in answers] == [False, True]
            given.append(answers[0].content)
    assert len(set(given)) == len(given) == front.runs


# --- a hundred at once ---


async def test_a_hundred_at_once_take_no_more_than_the_limit(hf):
    ran = []

    async def counted(scope, receive, send):
        ran.append(1)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with client(RateLimits(counted, hf, [RateLimit("api", requests=10, seconds=3600)])) as http:
        answers = await asyncio.gather(*(http.get("/") for _ in range(100)))
    passed = sum(answer.status_code == 200 for answer in answers)
    assert 1 <= passed <= 10, (
        "a request waits half a second for its share of the fleet's quota, and is refused then"
    )
    assert len(ran) == passed
    assert {answer.status_code for answer in answers} == {200, 429}


# --- the code itself ---

SECRET = re.compile(r"(^|_)(token|secret|signature|digest|password|mac|csrf|mark)s?($|_)")
PARTS = ("web", "mail", "vault", "blobs", "observe/alerts")


def plain_comparisons(source):
    """`==` and `in` with something that is called a secret."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Constant) and side.value is None for side in sides):
            continue
        if any(isinstance(each, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for each in node.ops) and any(
            SECRET.search(name_of(side)) for side in sides
        ):
            yield ast.unparse(node)


def name_of(side):
    if isinstance(side, ast.Call):
        side = side.func
    if isinstance(side, ast.Attribute):
        return side.attr
    return side.id if isinstance(side, ast.Name) else ""


def test_secrets_are_compared_in_constant_time():
    files = [file for part in PARTS for file in (ROOT / "src/holdfast" / part).rglob("*.py")]
    assert len(files) > 60
    found = {str(file.relative_to(ROOT)): list(plain_comparisons(file.read_text())) for file in files}
    assert {file: each for file, each in found.items() if each} == {}, "use hmac.compare_digest"


@pytest.mark.parametrize(
    "source",
    [
        "told == self.form_token",
        "signature(x) != given",
        "a.b.secret == c",
        "token in tokens",
        "if csrf_token == x: pass",
    ],
)
def test_that_check_sees_what_it_should(source):
    assert list(plain_comparisons(source))
