"""One call of the API: the edge's demands, faults, the token, the limits, and then the endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from simulators.common.clock import Clock
from simulators.common.faults import Fault, Faults
from simulators.common.ledger import Ledger
from simulators.common.server import cut
from simulators.deviantart.answers import (
    Failed,
    error,
    expired,
    forbidden_page,
    server_error,
    unauthorized,
)
from simulators.deviantart.limits import Limits
from simulators.deviantart.settings import Settings
from simulators.deviantart.state import Artist, Grant, State

# Before the endpoint has done anything: nothing is stored.
BEFORE = frozenset({
    "refused", "server-error", "status-error", "html-403", "html-504", "empty-403", "user-429", "app-429", "expire-token",
})  # fmt: skip
# After it: what was asked for is done, and the answer lies.
AFTER = frozenset({"lost", "silent", "blank", "half", "ghost", "late"})
KINDS = BEFORE | AFTER
SILENCE = 3600.0  # seconds: longer than anybody waits


@dataclass
class World:
    """What all endpoints share."""

    state: State
    faults: Faults
    ledger: Ledger
    clock: Clock
    settings: Settings
    limits: Limits


@dataclass
class Call:
    """What an endpoint is given."""

    world: World
    request: Request
    artist: Artist
    form: FormData
    fault: Fault | None

    def text(self, name: str) -> str | None:
        value = self.form.get(name, self.request.query_params.get(name))
        return value if isinstance(value, str) else None

    def texts(self, name: str) -> list[str]:
        """`tags[]`, or `tags[0]`, `tags[1]` and so on."""
        found = [value for key, value in self.form.multi_items() if key.partition("[")[0] == name]
        return [value for value in found if isinstance(value, str)]

    def is_set(self, name: str) -> bool:
        return (self.text(name) or "").lower() in ("1", "true", "yes")

    def happens(self, kind: str) -> bool:
        return self.fault is not None and self.fault.kind == kind


Endpoint = Callable[[Call], Awaitable[dict[str, Any]]]


def endpoint(world: World, name: str, scope: str, act: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The route of one endpoint; `name` is what faults and the ledger call it."""

    async def route(request: Request) -> Response:
        with world.ledger.call(name):
            try:
                return await _answered(world, name, scope, act, request)
            except Failed as failed:
                return failed.response

    return route


async def _answered(world: World, name: str, scope: str, act: Endpoint, request: Request) -> Response:
    _check_edge(request)
    if world.settings.answers_in:
        await asyncio.sleep(world.settings.answers_in)
    async with request.form() as form:
        token = _token(request, form)
        who = world.state.grants.get(token or "")
        fault = world.faults.next(name, who.artist.username if who else None)
        if fault is not None and fault.kind in BEFORE:
            _fail_before(world, fault, request, who)
        grant = _granted(world, token, scope)
        world.limits.check(grant.artist.username)
        found = await act(Call(world, request, grant.artist, form, fault))
    return await _told(found, fault, request)


def _check_edge(request: Request) -> None:
    encodings = request.headers.get("accept-encoding", "")
    if not request.headers.get("user-agent") or "gzip" not in encodings:
        raise forbidden_page()


def _token(request: Request, form: FormData) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token
    given = form.get("access_token", request.query_params.get("access_token"))
    return given if isinstance(given, str) else None


def _granted(world: World, token: str | None, scope: str) -> Grant:
    grant = world.state.grants.get(token or "")
    if grant is None or grant.access != token or grant.is_dead:
        raise unauthorized()
    if grant.access_until <= world.clock.now():
        raise expired()
    if scope not in grant.scope.split():
        raise error(403, "insufficient_scope", f"The request requires the scope {scope}.")
    return grant


def _fail_before(world: World, fault: Fault, request: Request, grant: Grant | None) -> None:
    match fault.kind:
        case "refused":
            cut(request.scope)
        case "server-error":
            raise server_error()
        case "status-error":
            raise Failed(
                JSONResponse({"error": "server_error", "error_description": "Try again.", "status": "error"})
            )
        case "html-403":
            raise forbidden_page()
        case "html-504":
            raise Failed(HTMLResponse("<html><body>Gateway Time-out</body></html>", 504))
        case "empty-403":
            raise Failed(Response(status_code=403))
        case "user-429":
            raise world.limits.block(grant.artist.username if grant else "nobody", fault.seconds)
        case "app-429":
            raise world.limits.block(None, fault.seconds)
        case _:
            if grant is not None:
                grant.access_until = world.clock.now()
            raise expired()


async def _told(found: dict[str, Any], fault: Fault | None, request: Request) -> Response:
    match None if fault is None else fault.kind:
        case "lost":
            cut(request.scope)
        case "silent":
            await asyncio.sleep(SILENCE)
        case "blank":
            return Response(b"", 200)
        case "late":
            await asyncio.sleep(fault.seconds if fault is not None else 0)
        case "half":
            raise server_error()
    return JSONResponse(found)
