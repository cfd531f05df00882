"""The app: what stands around it, from the outside in, and the routes of API, pages and files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.routing import Mount

from admissions.core import MAIL, PAY, VERIFY, settings
from admissions.desk.applying import FLAG
from admissions.probing import probe_app
from admissions.program import hf  # all of it: what enqueues a job must know what its worker gives it
from admissions.web import limits
from admissions.web.api import (
    account,
    applications,
    cases,
    decisions,
    figures,
    payments,
    people,
    session,
    submitting,
    webhooks,
)
from admissions.web.api.answers import RESPONSES, answer_refusals
from admissions.web.arrival import Arrivals
from admissions.web.complete import check_routes
from admissions.web.pages import page_routes, pages
from admissions.web.receiving import FORM_MOST
from holdfast.web import (
    BodyLimits,
    Correlation,
    IdempotencyKeys,
    Problems,
    RateLimits,
    Sessions,
    Shedding,
    SignedFiles,
)
from holdfast.web.pages import WithPages

ROUTERS = [session, account, applications, submitting, cases, decisions, payments, figures, people, webhooks]
SUBMISSIONS = [
    "POST /applications",
    "POST /api/applications/{application_id}/submit",
]  # they need an Idempotency-Key
_DAY = 86_400.0
_PROXIES = [each.strip() for each in settings.proxies.split(",") if each.strip()]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with hf:
        await begin()
        yield


async def begin() -> None:
    """The first question for a flag reads the database: not from the transactions of the first requests, which have all connections."""
    await hf.flag(FLAG, default=True)


def make_app(*, limited: bool = True) -> FastAPI:
    """Without limits it may be asked faster than people do: for tests, and for measuring."""
    app = FastAPI(
        title="Admissions",
        version="1",
        lifespan=lifespan,
        responses=RESPONSES,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
    )
    check_routes([*(route for each in ROUTERS for route in each.router.routes), *page_routes])
    for each in ROUTERS:
        app.include_router(each.router)
    answer_refusals(app)
    app.router.routes += page_routes
    if settings.s3_bucket is None:
        app.router.routes.append(Mount("/blobs", SignedFiles(hf.blobs)))
    app.router.routes.append(Mount("/probes", probe_app))
    app.user_middleware[:0] = [*_outer(limited=limited), *_inner(limited=limited)]
    return app


def _outer(*, limited: bool) -> list[Middleware]:
    return [
        Middleware(Arrivals),
        Middleware(Correlation, deadline=False),
        Middleware(WithPages, pages=pages),
        Middleware(Problems),
        Middleware(BodyLimits, total=limits.TOTAL, larger=limits.LARGER, parts=100, time=600.0),
        Middleware(Shedding, hf=hf, in_flight=300),
        Middleware(
            Shedding,
            hf=hf,
            oldest=_oldest(),
            routes=[*SUBMISSIONS, "POST /applications/{application_id}/check"],
        ),
        Middleware(RateLimits, hf=hf, limits=limits.for_addresses(limited=limited), proxies=_PROXIES),
    ]


def _oldest() -> dict[str, float]:
    """How long the work of each stage may have waited, while more is taken."""
    return dict.fromkeys((VERIFY, PAY, MAIL), settings.oldest_s)


def _inner(*, limited: bool) -> list[Middleware]:
    exempt = ["POST /webhooks/stripe", "PUT /blobs/{rest:path}"]
    return [
        Middleware(
            Sessions, hf=hf, idle=_DAY, last=30 * _DAY, secure=settings.is_secure, exempt=exempt, proxies=_PROXIES
        ),
        Middleware(RateLimits, hf=hf, limits=limits.for_people(limited=limited)),
        Middleware(
            IdempotencyKeys, hf=hf, routes=SUBMISSIONS, required=True, one_commit=True, body=FORM_MOST + 100_000
        ),
        Middleware(IdempotencyKeys, hf=hf, routes=keyed_routes(), one_commit=True, body=FORM_MOST + 100_000),
    ]  # fmt: skip


def keyed_routes() -> list[str]:
    """Those that take an Idempotency-Key when one is sent: what changes an application, a case or a payment."""
    found = [
        f"{method} {route.path}"
        for each in (applications, submitting, cases, decisions, payments)
        for route in each.router.routes
        if isinstance(route, APIRoute)
        for method in sorted(set(route.methods or ()) - {"GET", "HEAD"})
    ]
    return [each for each in found if each not in SUBMISSIONS]


app = make_app()
