"""The app: what stands around it, from the outside in, and the routes of API, pages, logins and files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.routing import Mount

from holdfast.web import (
    BodyLimits,
    Correlation,
    IdempotencyKeys,
    Problems,
    RateLimit,
    RateLimits,
    Sessions,
    Shedding,
    SignedFiles,
)
from holdfast.web.pages import WithPages
from publisher.core import PUBLISHING, hf, settings
from publisher.desk.uploads import FILE_MOST, FORM_MOST
from publisher.outside.deviantart import DeviantArt
from publisher.probing import probe_app
from publisher.web.api import (
    account,
    automations,
    bulk,
    files,
    galleries,
    keys,
    library,
    posts,
    sales,
    uploads,
)
from publisher.web.api.answers import RESPONSES, answer_refusals
from publisher.web.login import login_routes
from publisher.web.pages import page_routes
from publisher.web.pages.deviations import PICTURES
from publisher.web.pages.frame import pages

ROUTERS = [posts, uploads, files, bulk, account, keys, library, automations, sales, galleries]
_DAY = 86_400.0
_PROXIES = [each.strip() for each in settings.proxies.split(",") if each.strip()]
_API = "/api/{rest:path}"
# Programs ask these with a key, not with a cookie. A PUT of a file is allowed by its signed link.
_BY_KEY = ["POST /api/uploads/tool", "POST /api/sales/next", "POST /api/sales/{id}/complete", "POST /api/sales/{id}/fail"]  # fmt: skip
_UPLOADS = ["POST /api/uploads", "POST /api/uploads/tool", "POST /api/posts/{id}/files", "POST /upload"]
_PLANS = [
    *(f"POST /api/posts/{{id}}/{verb}" for verb in ("schedule", "move", "publish-now", "try-again")),
    *(f"POST /posts/{{id}}/{verb}" for verb in ("schedule", "schedule-again", "move", "publish", "publish-draft", "again")),
    "POST /calendar/move",
]  # fmt: skip
_BULK = ["POST /api/bulk/{verb}", "POST /bulk"]
_NOW = ["POST /api/posts/{id}/publish-now", "POST /api/bulk/publish-now", "POST /posts/{id}/publish", "POST /posts/{id}/publish-draft"]  # fmt: skip
_LATEST = 300.0  # seconds that due posts may have waited while more of them are taken
# The answer of this one is a secret: it is not kept for who asks again.
_NEVER_KEPT = "POST /api/keys"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with hf, DeviantArt.open(settings.deviantart_url, settings.call_timeout_s) as site:
        app.state.site = site
        yield


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _allowed() -> dict[str, list[str]]:
    """Where a form may lead: the login. Where pictures are: DeviantArt's, and an S3 that serves them itself."""
    allowed = {"form-action": [_origin(settings.deviantart_url)], "img-src": [_origin(PICTURES)]}
    if settings.s3_bucket is not None and settings.s3_endpoint:
        place = _origin(settings.s3_endpoint)
        allowed |= {"img-src": [_origin(PICTURES), place], "connect-src": [place]}
    return allowed


def _outer(*, limited: bool) -> list[Middleware]:
    larger = dict.fromkeys(_UPLOADS, FORM_MOST + 1_000_000) | {"PUT /blobs/{rest:path}": FILE_MOST}
    return [
        Middleware(Correlation, deadline=False),
        Middleware(WithPages, pages=pages, allow=_allowed()),
        Middleware(Problems),
        Middleware(BodyLimits, total=2_000_000, larger=larger, parts=1000, time=600.0),
        Middleware(Shedding, hf=hf, in_flight=300),
        Middleware(Shedding, hf=hf, oldest={PUBLISHING: _LATEST}, routes=_NOW),
        *([Middleware(RateLimits, hf=hf, limits=_for_addresses(), proxies=_PROXIES)] if limited else []),
    ]


def _for_addresses() -> list[RateLimit]:
    return [
        RateLimit("all", requests=1200, seconds=60),
        RateLimit("login", requests=30, seconds=300, routes=["POST /login", "GET /login/callback"]),
        RateLimit("tools", requests=100, seconds=900, routes=_BY_KEY[:1]),
    ]


def _for_artists() -> list[RateLimit]:
    return [
        RateLimit("plans", requests=50, seconds=60, by="principal", routes=_PLANS),
        RateLimit("bulk", requests=30, seconds=300, by="principal", routes=_BULK),
    ]


def _inner(kept: list[str], *, limited: bool) -> list[Middleware]:
    return [
        Middleware(
            Sessions,
            hf=hf,
            idle=30 * _DAY,
            last=30 * _DAY,
            secure=settings.is_secure,
            exempt=[*_BY_KEY, "PUT /blobs/{rest:path}"],
            proxies=_PROXIES,
        ),
        *([Middleware(RateLimits, hf=hf, limits=_for_artists())] if limited else []),
        Middleware(IdempotencyKeys, hf=hf, routes=kept, body=FORM_MOST + 1_000_000, lease=300.0),
    ]


def make_app(*, limited: bool = True) -> FastAPI:
    """Without limits it may be asked faster than people and their tools do: for tests."""
    app = FastAPI(
        title="Publisher",
        version="1",
        lifespan=lifespan,
        responses=RESPONSES,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
    )
    for each in ROUTERS:
        app.include_router(each.router)
    answer_refusals(app)
    app.router.routes += [*login_routes, *page_routes]
    if settings.s3_bucket is None:
        app.router.routes.append(Mount("/blobs", SignedFiles(hf.blobs)))
    app.router.routes += [Mount("/probes", probe_app)]
    app.user_middleware[:0] = [
        *_outer(limited=limited),
        *_inner(unsafe_routes(), limited=limited),
    ]
    return app


def unsafe_routes() -> list[str]:
    """Those that take an Idempotency-Key."""
    found = [
        f"{method} {route.path}"
        for each in ROUTERS
        for route in each.router.routes
        if isinstance(route, APIRoute)
        for method in sorted(set(route.methods or ()) - {"GET", "HEAD"})
    ]
    return [each for each in found if each != _NEVER_KEPT]


app = make_app()
