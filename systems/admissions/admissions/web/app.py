"""The app: what stands around it, from the outside in, and the routes of API, pages and files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount

from admissions.core import hf, settings
from admissions.probing import probe_app
from admissions.web.api.answers import RESPONSES, answer_refusals
from holdfast.web import BodyLimits, Correlation, IdempotencyKeys, Problems, Sessions, Shedding, SignedFiles

FORM_MOST = 30_000_000  # bytes of a form with files
_DAY = 86_400.0
_PROXIES = [each.strip() for each in settings.proxies.split(",") if each.strip()]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with hf:
        yield


def make_app() -> FastAPI:
    app = FastAPI(
        title="Admissions",
        version="1",
        lifespan=lifespan,
        responses=RESPONSES,
        openapi_url="/api/openapi.json",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
    )
    answer_refusals(app)
    app.router.routes += _files()
    app.router.routes += [Mount("/probes", probe_app)]
    app.user_middleware[:0] = _around()
    return app


def _files() -> list[BaseRoute]:
    return [Mount("/blobs", SignedFiles(hf.blobs))] if settings.s3_bucket is None else []


def _around() -> list[Middleware]:
    return [
        Middleware(Correlation, deadline=False),
        Middleware(Problems),
        Middleware(BodyLimits, total=FORM_MOST, parts=100, time=600.0),
        Middleware(Shedding, hf=hf, in_flight=300),
        Middleware(
            Sessions, hf=hf, idle=_DAY, last=30 * _DAY, secure=settings.is_secure,
            exempt=["POST /webhooks/stripe", "PUT /blobs/{rest:path}"], proxies=_PROXIES,
        ),
        Middleware(IdempotencyKeys, hf=hf, routes=["POST /applications"], body=FORM_MOST, lease=60.0),
    ]  # fmt: skip


app = make_app()
