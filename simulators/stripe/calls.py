"""One call: the key of the account, faults, the idempotency key, and then the endpoint."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from simulators.common.clock import Clock
from simulators.common.faults import Fault, Faults
from simulators.common.ledger import Ledger
from simulators.common.server import cut
from simulators.stripe.answers import Failed, broken, key_in_use, key_of_another, too_many, unauthorized
from simulators.stripe.form import decoded
from simulators.stripe.settings import Settings
from simulators.stripe.state import API_KEY, Kept, State
from simulators.stripe.webhooks import Webhooks

BEFORE = frozenset({"refused", "unavailable", "429"})  # nothing is done
AFTER = frozenset({"lost", "silent", "late"})  # it is done, and the answer lies
# `server-error` is a 500 after it has begun: its key keeps that answer.
KINDS = BEFORE | AFTER | {"server-error", "slow"}
SILENCE = 3600.0


@dataclass
class World:
    """What all endpoints share."""

    state: State
    faults: Faults
    ledger: Ledger
    clock: Clock
    settings: Settings
    webhooks: Webhooks
    recent: deque[float] = field(default_factory=deque)


@dataclass
class Call:
    """What an endpoint is given."""

    world: World
    told: dict[str, Any]
    query: dict[str, str]
    path: dict[str, str]
    key: str | None
    request_id: str
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def now(self) -> int:
        return int(self.world.clock.now())

    def tell(self, kind: str, thing: dict[str, Any]) -> None:
        """An event, sent when the call is over."""
        self.events.append(self.world.webhooks.made(kind, thing, self.request_id, self.key))


Endpoint = Callable[[Call], dict[str, Any]]


def endpoint(world: World, name: str, act: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The route of one endpoint; `name` is what faults and the ledger call it."""

    async def route(request: Request) -> Response:
        with world.ledger.call(name):
            try:
                return await _answered(world, name, act, request)
            except Failed as failed:
                return JSONResponse(failed.body, failed.status, headers=failed.headers)

    return route


async def _answered(world: World, name: str, act: Endpoint, request: Request) -> Response:
    if request.headers.get("authorization") != f"Bearer {API_KEY}":
        raise unauthorized()
    body = (await request.body()).decode()
    fault = world.faults.next(name)
    await _before(world, fault, request)
    key = request.headers.get("idempotency-key") if request.method == "POST" else None
    asked = hashlib.sha256(f"{request.method} {request.url.path}\n{body}".encode()).hexdigest()
    if key is not None and (kept := _kept(world, key, asked)) is not None:
        world.ledger.add("replayed", key=key, endpoint=name, at=world.clock.now())
        return _as_kept(kept)
    if fault is not None and fault.kind == "slow":
        await asyncio.sleep(fault.seconds)  # its key is in use meanwhile
    call = Call(
        world,
        decoded(body),
        dict(request.query_params),
        dict(request.path_params),
        key,
        world.state.new_id("req"),
    )
    status, found = await _done(world, act, call, fault, asked)
    return await _after(fault, request, _json(status, found, call.request_id))


async def _before(world: World, fault: Fault | None, request: Request) -> None:
    now = world.clock.now()
    while world.recent and world.recent[0] <= now - 1:
        world.recent.popleft()
    world.recent.append(now)
    kind = None if fault is None else fault.kind
    if kind == "refused":
        cut(request.scope)
    if kind == "unavailable":
        raise Failed(503, "api_error", "Stripe is not available.")
    if kind == "429" or len(world.recent) > world.settings.calls_a_second:
        raise too_many()
    await asyncio.sleep(world.settings.answers_in)


def _kept(world: World, key: str, asked: str) -> Kept | None:
    """The first answer to this key; raises when it is another request, or is still being done."""
    found = world.state.keys.get(key)
    if found is None or found.at <= world.clock.now() - world.settings.key_lasts:
        world.state.keys[key] = Kept(asked, world.clock.now())
        return None
    if found.asked != asked:
        raise key_of_another(key)
    if found.status is None:
        raise key_in_use()
    return found


async def _done(
    world: World, act: Endpoint, call: Call, fault: Fault | None, asked: str
) -> tuple[int, dict[str, Any]]:
    """What is refused before it has begun gives its key back; all else keeps it."""
    try:
        found = act(call)
        status = 200
        if fault is not None and fault.kind == "server-error":
            raise broken()
    except Failed as failed:
        status, found = failed.status, failed.body
        if not failed.kept:
            world.state.keys.pop(call.key or "", None)
            raise
    finally:
        world.webhooks.send(call.events)
    if call.key is not None:
        world.state.keys[call.key] = Kept(asked, world.clock.now(), status, json.dumps(found).encode())
    return status, found


async def _after(fault: Fault | None, request: Request, answer: Response) -> Response:
    match None if fault is None else fault.kind:
        case "lost":
            cut(request.scope)
        case "silent":
            await asyncio.sleep(SILENCE)
        case "late":
            await asyncio.sleep(fault.seconds if fault is not None else 0.0)
    return answer


def _json(status: int, found: dict[str, Any], request_id: str) -> Response:
    return Response(json.dumps(found).encode(), status, {"Request-Id": request_id}, "application/json")


def _as_kept(kept: Kept) -> Response:
    return Response(kept.body, kept.status or 200, {"Idempotent-Replayed": "true"}, "application/json")
