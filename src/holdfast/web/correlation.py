"""Correlation: each request belongs to a story, and what is stored, logged and called for it says which."""

from __future__ import annotations

import re
from contextlib import nullcontext

from holdfast.guards.deadline import deadline_from
from holdfast.kernel.context import within
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import random_bytes
from holdfast.kernel.tracing import tracer
from holdfast.web.asgi import App, Message, Receive, Scope, Send, header

HEADER = b"x-correlation-id"
_ID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_TRACE = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


class Correlation:
    """Middleware: `app = Correlation(app)`. It stands outside of all others, so that their answers have the id, too.

    `X-Correlation-Id` is taken when it has 1 to 64 letters, digits or hyphens, and `traceparent` when it is one; else both are made.
    Jobs, events and log lines of the request have them, and the answer tells the id. `Holdfast-Deadline` is obeyed, up to
    `longest` seconds: guards inside start no attempt after it. `deadline=False` ignores it, as from the public.
    """

    def __init__(self, app: App, *, deadline: bool = True, longest: float = 300.0) -> None:
        self._app, self._obeys = app, deadline
        self._longest = check_seconds("longest", longest, minimum=0.001)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        correlation = correlation_of(scope)

        async def telling(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                fields = [pair for pair in message.get("headers", ()) if pair[0].lower() != HEADER]
                message = {**message, "headers": [*fields, (HEADER, correlation.encode())]}
            await send(message)

        limit = deadline_from(scope["headers"], longest=self._longest) if self._obeys else nullcontext()
        with within(correlation_id=correlation, trace=trace_of(scope)), limit:
            await self._app(scope, receive, telling)


def correlation_of(scope: Scope) -> str:
    """What the client calls the story, when that is harmless; else a new name."""
    told = header(scope, HEADER)
    return told if told is not None and _ID.fullmatch(told) else new_id()


def trace_of(scope: Scope) -> str | None:
    """The traceparent of the client, when it is one; else a new one, which is not sampled.

    Where spans are made, a span around the request goes before, and nothing is invented: whether a new trace is sampled is for the
    tracer to say.
    """
    tracing = tracer()
    if tracing is not None and (current := tracing.traceparent()) is not None:
        return current
    told = header(scope, b"traceparent")
    if told is not None and _TRACE.fullmatch(told.strip()):
        return told.strip()
    if tracing is not None:
        return None
    chance = random_bytes(24).hex()
    return f"00-{chance[:32]}-{chance[32:]}-00"
