"""RateLimits: so many requests in a time, for each address or person, counted by the whole fleet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from holdfast.guards.guard import Guard
from holdfast.guards.headers import ratelimit_headers
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import SLICE
from holdfast.kernel.errors import RateLimited, UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note
from holdfast.web.asgi import App, Message, Receive, Scope, Send
from holdfast.web.idempotency.whose import principal_of
from holdfast.web.limits.addresses import Addresses
from holdfast.web.limits.counting import IN_SCOPE, key_of
from holdfast.web.limits.refusal import refusal
from holdfast.web.problems import Problem
from holdfast.web.routes import Routes

Who: TypeAlias = Callable[[Scope], str | None]
_PATIENCE = 0.5  # seconds that a request waits at most, for the first share of the fleet's quota
_KEYS = 100_000  # of each limit, in one process
_LATER = 1013  # why a socket is closed: try again later


class Program(Protocol):
    @property
    def guard(self) -> Callable[..., Guard[Any]]: ...


class RateLimit:
    """`RateLimit("api", requests=100, seconds=60, routes=["* /api/{rest:path}"], by="address")`.

    `by`: "address", "principal" (who has logged in; others are not counted), or a function of the ASGI scope that names who is
    counted, and None for who is not; or "handler": `count_request` in a handler counts, by what only the body tells. `requests` may come at once; then so many come back in so many `seconds`, evenly.
    Without `routes` it is for all.
    """

    def __init__(
        self,
        name: str,
        *,
        requests: int,
        seconds: float = 60.0,
        routes: Sequence[str] | None = None,
        by: str | Who = "address",
    ) -> None:
        self.name = check_name("limit", name)
        self.requests = check_int("requests", requests, 1, 10**9)
        self.seconds = check_seconds("seconds", seconds, minimum=0.001)
        self.routes = None if routes is None else Routes(tuple(routes))
        if by not in ("address", "principal", "handler") and not callable(by):
            raise UsageError(
                f'by is "address", "principal", "handler" or a function of the scope; not {show(by)}.'
            )
        if by == "handler" and routes is not None:
            raise UsageError(f"Limit {name!r} is counted by handlers, so it takes no routes.")
        self.by = by


class RateLimits:
    """Middleware: `app = RateLimits(app, hf, [RateLimit("api", requests=100)])`. Beyond a limit it answers 429, and when to come back.

    Limits are the guards' limiters, shared by all processes on the database (or Redis); when that is away, each process goes on with
    its share. The handshake of a WebSocket counts as a GET. `proxies` are the networks whose `X-Forwarded-For` is believed. Answers tell `RateLimit-Policy` and `RateLimit`.
    """

    def __init__(
        self, app: App, hf: Program, limits: Sequence[RateLimit], *, proxies: Sequence[str] = ()
    ) -> None:
        self._app, self._addresses = app, Addresses(proxies)
        made = [(limit, _limiter(hf, limit)) for limit in limits]
        self._limits = [
            (limit, limiter, self._who(limit.by)) for limit, limiter in made if limit.by != "handler"
        ]
        self._by_handlers = {
            limit.name: (limiter, limit.requests, limit.seconds)
            for limit, limiter in made
            if limit.by == "handler"
        }

    def _who(self, by: str | Who) -> Who:
        if callable(by):
            return by
        return self._addresses.key if by == "address" else principal_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        told: list[tuple[bytes, bytes]] = []
        for limit, limiter, who in self._limits:
            if limit.routes is not None and limit.routes.find(scope) is None:
                continue
            if (found := who(scope)) is None:
                continue
            key = key_of(found)
            try:
                await limiter.take(key=key)
            except RateLimited as refused:
                note("request.limited", limit=limit.name, key=key)
                problem = refusal(limit.requests, limit.seconds, refused.retry_after)
                await _turn_away(problem, scope, send, _told(limit, limiter, key))
                return
            told = _told(limit, limiter, key)  # of several, the last: the one named most narrowly comes last
        if self._by_handlers:
            scope = {**scope, IN_SCOPE: {**scope.get(IN_SCOPE, {}), **self._by_handlers}}
        await self._app(scope, receive, _telling(send, told) if told else send)


def _limiter(hf: Program, limit: RateLimit) -> Limiter:
    """A fleet grants less than the burst at once, by what comes back while a grant lasts: that is added here.

    People are not kept out because a Redis was started: it may have forgotten what was used.
    """
    rate = limit.requests / limit.seconds
    burst = limit.requests + rate * SLICE
    limiter = Limiter(rate=rate, burst=burst, wait=_PATIENCE, keys=_KEYS, per="{who}", lenient=True)
    hf.guard(f"web.{limit.name}", limiter=limiter)  # it is the fleet's from now on
    return limiter


def _told(limit: RateLimit, limiter: Limiter, key: str) -> list[tuple[bytes, bytes]]:
    found = limiter.allowance(key=key)
    left = max(0.0, found.remaining - (found.limit - limit.requests))
    shown = msgspec.structs.replace(found, limit=limit.requests, remaining=left, window=limit.seconds)
    fields = ratelimit_headers(limit.name, shown)
    return [
        (name.lower().encode(), value.encode()) for name, value in fields.items() if name != "Retry-After"
    ]


async def _turn_away(problem: Problem, scope: Scope, send: Send, fields: list[tuple[bytes, bytes]]) -> None:
    """A socket is closed before it opens, which servers answer with 403: scripts of a page would not see more."""
    if scope["type"] == "http":
        await problem.send(scope, send, fields=fields)
    else:
        await send({"type": "websocket.close", "code": _LATER, "reason": problem.title})


def _telling(send: Send, fields: list[tuple[bytes, bytes]]) -> Send:
    async def telling(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *fields]}
        await send(message)

    return telling
