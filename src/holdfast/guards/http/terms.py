"""On which terms a request goes through the guard: its key and cost, whether it may be repeated, and when it is over."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from holdfast.guards.checks import check_callable
from holdfast.guards.deadline import DEADLINE_HEADER, render_deadline, time_left
from holdfast.guards.guard import Calls, Guard
from holdfast.guards.http.library import Request, kinds, library_of
from holdfast.kernel.context import context
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.kernel.tracing import traceparent

Until: TypeAlias = Literal["body", "headers"]
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_STORY, _TRACE = "X-Correlation-Id", "traceparent"
_TOLD = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)  # of a story's name: what the other side takes over
_SHORTEST = 0.001  # seconds: httpx may take 0 for no time at all, and the guard lets nobody start without any


class Terms:
    """What a transport was told, and what a request says in its extensions: `guard_key`, `guard_cost`, `guard_repeatable`, `guard_until`."""

    __slots__ = ("_cost", "_guard", "_key", "_tell_deadline", "_tell_story", "_until")

    def __init__(
        self,
        guard: Guard[Any],
        *,
        key: Callable[[Request], Any] | None,
        cost: Callable[[Request], float] | None,
        until: Until,
        tell_deadline: bool,
        tell_story: bool,
    ) -> None:
        if not isinstance(guard, Guard):
            raise UsageError(f"guard is a Guard, not {show(guard)} ({type(guard).__name__}).")
        for name, given in (("key", key), ("cost", cost)):
            if given is not None:
                check_callable(f"{name} of a transport", given)
        self._guard, self._key, self._cost = guard, key, cost
        self._until, self._tell_deadline, self._tell_story = _check_until(until), tell_deadline, tell_story

    def calls(self, request: Request) -> Calls[Any]:
        """The guard as this request needs it."""
        told = request.extensions
        key = told["guard_key"] if "guard_key" in told else self._key and self._key(request)
        cost = told["guard_cost"] if "guard_cost" in told else self._cost(request) if self._cost else 1.0
        values, named = ((), dict(key)) if isinstance(key, Mapping) else (() if key is None else (key,), {})
        return self._guard.keyed(*values, cost=cost, repeatable=_repeatable(request), **named)

    def until(self, request: Request) -> Until:
        return _check_until(request.extensions.get("guard_until", self._until))

    def once(self, request: Request) -> bool:
        """Whether it can be sent only once: a body that is not in memory is gone then."""
        return not isinstance(request.stream, kinds("ByteStream"))

    def outgoing(self, request: Request) -> Request:
        """The request as it is sent by this attempt: it tells how much time is left, and httpx waits no longer than that."""
        headers, extensions = request.headers, request.extensions
        if (left := time_left()) is not None:
            extensions = {**extensions, "timeout": _shortened(extensions.get("timeout"), left)}
            if self._tell_deadline and DEADLINE_HEADER not in headers:
                headers = headers.copy()
                headers[DEADLINE_HEADER] = render_deadline() or "0"
        if self._tell_story and (story := _story(headers)):
            headers = headers.copy()
            headers.update(story)
        if left is None and isinstance(own := extensions.get("timeout"), dict):
            extensions = {**extensions, "timeout": {**own}}
        sent: Request = library_of(request).Request(
            request.method, request.url, headers=headers, stream=request.stream, extensions=extensions
        )
        return sent

    def read_on(self, sent: Request, request: Request, until: Until) -> None:
        """The headers are here: httpx waits for the body as long as is left now, or as the request itself says."""
        timeouts, own = sent.extensions.get("timeout"), request.extensions.get("timeout")
        if timeouts is own or timeouts is None:
            return
        if until == "headers":
            timeouts["read"] = own.get("read") if isinstance(own, Mapping) else None
        elif (left := time_left()) is not None:
            timeouts["read"] = _shortened(own, left)["read"]

    def hurry(self, sent: Request, request: Request, seconds: float) -> None:
        """Nobody wants the body: httpx waits no longer than this for each part of it, if we may tell it so."""
        timeouts = sent.extensions.get("timeout")
        if timeouts is not None and timeouts is not request.extensions.get("timeout"):
            timeouts["read"] = _shortened(timeouts, seconds)["read"]


def _repeatable(request: Request) -> bool | None:
    """False: not what may have been done. None: what the guard says."""
    told = request.extensions.get("guard_repeatable")
    if told is not None:
        return bool(told)
    is_idempotent = request.method in IDEMPOTENT or "Idempotency-Key" in request.headers
    return None if is_idempotent else False


def _story(headers: Any) -> dict[str, str]:
    """To which story it belongs, and the current span, for the other side; what the caller says goes before."""
    found, story = dict[str, str](), context().correlation_id
    if story is not None and _STORY not in headers and _TOLD.fullmatch(story):
        found[_STORY] = story
    if _TRACE not in headers and (trace := traceparent()) is not None:
        found[_TRACE] = trace
    return found


def _shortened(timeouts: Any, left: float) -> dict[str, float]:
    given = timeouts if isinstance(timeouts, Mapping) else {}
    return {
        name: max(_SHORTEST, left if given.get(name) is None else min(left, given[name]))
        for name in ("connect", "read", "write", "pool")
    }


def _check_until(until: Any) -> Until:
    if until not in ("body", "headers"):
        raise UsageError(f'A request is over with its "body" or its "headers", not with {show(until)}.')
    found: Until = until
    return found
