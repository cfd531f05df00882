"""BodyLimits: bytes, parts and time of what a client sends, counted while it comes and before anything parses it."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.clock import monotonic, timeout
from holdfast.kernel.names import check_int, check_seconds
from holdfast.web.asgi import App, Message, Receive, Scope, Send, header
from holdfast.web.limits.lingering import refuse
from holdfast.web.limits.parts import PartCounter, TooMany
from holdfast.web.problems import Problem
from holdfast.web.routes import Routes

_MB = 1024 * 1024
_DIGITS = 19  # of a length


class BodyLimits:
    """Middleware: `app = BodyLimits(app, total=10 * 1024 * 1024)`. It refuses with 408, 413 or 431, and hangs up.

    `total` bytes in all, `parts` parts of a multipart body with at most `part` bytes each (`total`, when not said), `headers` bytes of headers,
    and `time` seconds in which the client may keep us waiting for its body. `larger`, such as `{"POST /uploads": 100 * 1024 * 1024}`, names
    routes that take more bytes.
    """

    def __init__(
        self,
        app: App,
        *,
        total: int = 10 * _MB,
        part: int | None = None,
        parts: int = 1000,
        headers: int = 32 * 1024,
        time: float = 30.0,
        larger: dict[str, int] | None = None,
    ) -> None:
        self._app = app
        self._total = check_int("total", total, 0, 2**50)
        self._part = None if part is None else check_int("part", part, 0, 2**50)
        self._parts, self._headers = (
            check_int("parts", parts, 0, 10**6),
            check_int("headers", headers, 256, 2**20),
        )
        self._time = check_seconds("time", time, minimum=0.001)
        self._larger = [
            (Routes((route,)), check_int(route, most, 0, 2**50)) for route, most in (larger or {}).items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        total = self._total_of(scope)
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > self._headers:
            await refuse(_TOO_MANY_HEADERS, scope, send)
        elif _declared(scope) > total:
            await refuse(_too_large(f"at most {total:,} bytes are taken"), scope, send, left=receive)
        else:
            counter = PartCounter.of(
                scope, parts=self._parts, part=total if self._part is None else self._part
            )
            await _Watched(self._app, total, self._time, counter).run(scope, receive, send)

    def _total_of(self, scope: Scope) -> int:
        return next((most for routes, most in self._larger if routes.find(scope)), self._total)


class _Watched:
    """One request. When a limit is passed, whatever the app answers then is replaced by the refusal."""

    def __init__(self, app: App, total: int, time: float, counter: PartCounter | None) -> None:
        self._app, self._total, self._left, self._counter = app, total, time, counter
        self._size = 0
        self._is_whole = self._began = False
        self._refusal: Problem | None = None

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched_send(message: Message) -> None:
            if self._refusal is None:
                self._began = self._began or message["type"] == "http.response.start"
                await send(message)

        try:
            await self._app(scope, partial(self._receive, receive), watched_send)
        except BaseException:
            if (
                self._refusal is None or self._began
            ):  # half an answer: the server hangs up when this is raised
                raise
        if self._refusal is not None and not self._began:
            is_late = self._refusal is _TOO_SLOW
            await refuse(self._refusal, scope, send, left=None if is_late or self._is_whole else receive)

    async def _receive(self, receive: Receive) -> Message:
        if self._refusal is not None:
            raise _Refused
        if self._is_whole:
            return await receive()
        message = await self._in_time(receive)
        if message["type"] == "http.request":
            self._count(message)
        return message

    async def _in_time(self, receive: Receive) -> Message:
        began = monotonic()
        try:
            async with timeout(self._left):
                return await receive()
        except TimeoutError:
            self._refusal = _TOO_SLOW
            raise _Refused from None
        finally:
            self._left = max(0.0, self._left - (monotonic() - began))

    def _count(self, message: Message) -> None:
        chunk = message.get("body", b"")
        self._size += len(chunk)
        self._is_whole = not message.get("more_body", False)
        if self._size > self._total:
            self._refuse(f"at most {self._total:,} bytes are taken")
        if self._counter is not None:
            try:
                self._counter.feed(chunk)
            except TooMany as error:
                self._refuse(str(error))

    def _refuse(self, why: str) -> None:
        self._refusal = _too_large(why)
        raise _Refused


class _Refused(Exception):
    """Ends the app: the client is not heard any more."""


def _declared(scope: Scope) -> int:
    told = header(scope, b"content-length")
    if told is None or not (told.isascii() and told.isdigit()):
        return 0
    return int(told) if len(told) < _DIGITS else 2**63  # Python reads no number of thousands of digits


def _too_large(why: str) -> Problem:
    return Problem(
        status=413, title="The request is too large", code="REQUEST_TOO_LARGE", detail=f"Here {why}."
    )


_TOO_SLOW = Problem(
    status=408,
    title="The request came too slowly",
    code="REQUEST_TOO_SLOW",
    detail="Send it again, in less time.",
)
_TOO_MANY_HEADERS = Problem(
    status=431,
    title="The headers of the request are too large",
    code="HEADERS_TOO_LARGE",
    detail="Send fewer or shorter headers; cookies are a part of them.",
)
