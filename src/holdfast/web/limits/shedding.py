"""Shedding: new requests are refused while too much work waits, so that what was accepted is still done in time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from holdfast.kernel.clock import monotonic, timeout
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.spawn import over, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.web.asgi import App, Receive, Scope, Send
from holdfast.web.limits.places import Places
from holdfast.web.problems import Problem
from holdfast.web.routes import Routes

_EVERY = 1.0  # seconds between two looks at the queues
_PATIENCE = 0.5  # seconds that a request waits for the first look
_FORGOTTEN = 10.0  # seconds after which what was seen says nothing any more
_LONGEST = 30  # seconds of Retry-After


class Program(Protocol):
    @property
    def store(self) -> Store: ...


class Shedding:
    """Middleware: `app = Shedding(app, hf, oldest={"mail": 30}, in_flight=200)`. It answers 503, and when to come back.

    `oldest` says for how many seconds the oldest ready job of a queue may have waited; `in_flight`, how many requests this
    process works on at once: one that waits for its client's body does not count, up to ten times as many in all. Without `routes` it is
    for all, else for those, such as `["POST /orders"]`.
    """

    def __init__(
        self,
        app: App,
        hf: Program,
        *,
        oldest: Mapping[str, float] | None = None,
        in_flight: int | None = None,
        routes: Sequence[str] | None = None,
    ) -> None:
        self._app = app
        self._waits = _Waits(hf, dict(oldest or {}))
        self._places = None if in_flight is None else Places(check_int("in_flight", in_flight, 1, 10**6))
        self._routes = None if routes is None else Routes(tuple(routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (self._routes is not None and self._routes.find(scope) is None):
            await self._app(scope, receive, send)
            return
        if (problem := await self._refusal()) is not None:
            await problem.send(scope, send)
            return
        if self._places is None:
            await self._app(scope, receive, send)
        else:
            await self._places.serve(self._app, scope, receive, send)

    async def _refusal(self) -> Problem | None:
        if self._places is not None and (why := self._places.refusal()) is not None:
            note("request.shed", why=why)
            return _overloaded(1)
        if (late := await self._waits.worst()) is None:
            return None
        queue, beyond = late
        note("request.shed", why=f"the oldest job of queue {queue} waits {beyond:.0f} s longer than it may")
        return _overloaded(min(max(1, math.ceil(beyond)), _LONGEST))


class _Waits:
    """How long jobs have waited, as it was seen a moment ago: however many ask, the database is asked once a second."""

    def __init__(self, hf: Program, marks: dict[str, float]) -> None:
        self._hf = hf
        self._marks = {
            check_name("queue", queue): check_seconds("oldest", mark) for queue, mark in marks.items()
        }
        self._seen: dict[str, float] = {}
        self._at = -math.inf
        self._look: asyncio.Task[None] | None = None

    async def worst(self) -> tuple[str, float] | None:
        """The queue that is most beyond its mark, and by how many seconds; None: none is."""
        if not self._marks:
            return None
        if self._look is None and monotonic() >= self._at + _EVERY:
            self._look = spawn(self._see(), name="web-shedding")
        if self._look is not None and self._at == -math.inf:
            with suppress(TimeoutError):
                async with timeout(_PATIENCE):
                    await over(self._look)
        if monotonic() > self._at + _FORGOTTEN:
            return None
        late = [(self._seen.get(queue, 0.0) - mark, queue) for queue, mark in self._marks.items()]
        beyond, queue = max(late)
        return (queue, beyond) if beyond > 0 else None

    async def _see(self) -> None:
        try:
            self._seen = await self._hf.store.queues.waits()
            self._at = monotonic()
        except HoldfastError as error:  # what is stored fails by itself, and says so
            note("request.not_shed", error=repr(error))
        finally:
            self._look = None


def _overloaded(after: int) -> Problem:
    return Problem(
        status=503,
        title="Too much work is waiting",
        code="OVERLOADED",
        detail=f"Nothing was done. Send the same request again in {after} s.",
        retry_after=after,
    )
