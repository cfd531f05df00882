"""The endpoints that are measured, and requests that reach them without a server between."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast import Holdfast
from holdfast.web import (
    BodyLimits,
    Correlation,
    IdempotencyKeys,
    Problems,
    RateLimit,
    RateLimits,
    Sessions,
    Shedding,
    request_tx,
)

Ask = Callable[[], Awaitable[None]]
_MANY = 100_000  # a second: a limit that nobody meets
_keys = itertools.count()


def apps(hf: Holdfast) -> dict[str, Any]:
    """By name: the endpoint that writes only its row, and two that write everything; the last one in one commit."""

    @hf.task(name="bench.ship")
    async def ship(order: int) -> None: ...

    placed = hf.event("bench.placed", dict[str, int], unheard=True)

    async def row_only(request: Request) -> JSONResponse:
        order = (await request.json())["id"]
        async with hf.transaction() as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", order)
        return JSONResponse({"id": order}, 202)

    async def whole(request: Request) -> JSONResponse:
        order = (await request.json())["id"]
        async with request_tx(request) as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", order)
            await ship.options(tx=tx).enqueue(order)
            await hf.emit(placed, {"id": order}, key=f"order:{order}", tx=tx)
        return JSONResponse({"id": order}, 202)

    writes_all = Starlette(routes=[Route("/orders", whole, methods=["POST"])])
    return {
        "row": Starlette(routes=[Route("/orders", row_only, methods=["POST"])]),
        "key first; row, job, event": IdempotencyKeys(writes_all, hf, required=True),
        "key, row, job, event in one commit": IdempotencyKeys(writes_all, hf, required=True, one_commit=True),
    }


def layers(hf: Holdfast) -> dict[str, Any]:
    """Each middleware alone around an endpoint that does nothing."""

    async def nothing(_request: Request) -> JSONResponse:
        return JSONResponse({})

    bare = Starlette(routes=[Route("/orders", nothing, methods=["POST"])])
    return {
        "bare": bare,
        "Correlation": Correlation(bare),
        "Problems": Problems(bare),
        "BodyLimits": BodyLimits(bare),
        "Shedding": Shedding(bare, hf, oldest={"default": 3600}, in_flight=1000),
        "RateLimits": RateLimits(bare, hf, [RateLimit("bench", requests=_MANY, seconds=1)]),
        "Sessions, a stranger": Sessions(bare, hf),
        "IdempotencyKeys, without a key": IdempotencyKeys(bare, hf, routes=["POST /other"]),
        "IdempotencyKeys, a new key": IdempotencyKeys(bare, hf),
    }


def asking(app: Any) -> Ask:
    """One request with a key of its own."""

    async def ask() -> None:
        number = next(_keys)
        key, body = b"key-%d" % number, b'{"id": %d}' % number
        headers = [(b"host", b"x"), (b"content-type", b"application/json"), (b"idempotency-key", key)]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/orders",
            "raw_path": b"/orders", "query_string": b"", "root_path": "", "headers": headers, "client": ("192.0.2.1", 1), "server": ("x", 80),
        }  # fmt: skip
        status = 0

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)

        await app(scope, receive, send)
        if status not in (200, 202):
            raise RuntimeError(f"answered with {status}")

    return ask
