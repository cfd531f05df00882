"""One request on its way through a guard: from its first attempt to the answer that the caller gets."""

from __future__ import annotations

from typing import Any

from holdfast.guards.blocks import Ending
from holdfast.guards.deadline import UNTIL
from holdfast.guards.fallback import Degraded
from holdfast.guards.http.bodies import PATIENCE, AsyncBody, SyncBody, Watch
from holdfast.guards.http.errors import Failed
from holdfast.guards.http.library import Request, Response, kinds
from holdfast.guards.http.terms import Terms
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show


class Exchange:
    """Knows the last answer until the caller has it: whatever happens before, it is closed."""

    __slots__ = ("_began", "_body", "_sent", "_terms", "_until", "_watch", "calls", "last", "once", "request")

    def __init__(self, terms: Terms, request: Request, body: type[AsyncBody | SyncBody]) -> None:
        self._terms, self.request, self._body = terms, request, body
        self.calls, self._until, self.once = terms.calls(request), terms.until(request), terms.once(request)
        self.last: Response | None = None
        self._watch: Watch | None = None  # of the last answer, if it has a body that streams
        self._sent, self._began = request, 0.0

    def outgoing(self) -> Request:
        """What is sent by the attempt that begins now."""
        self._began, self._sent = monotonic(), self._terms.outgoing(self.request)
        return self._sent

    def answered(self, response: Response) -> Response:
        """The headers are here. Raises Failed when they tell of an error: the guard decides what becomes of it."""
        self.last, self._watch = response, None
        self._terms.read_on(self._sent, self.request, self._until)
        if self._until == "body" and not response.is_closed:  # else it is in memory, and nobody reads it
            stream: Any = response.stream
            self._watch = Watch(monotonic() - self._began, UNTIL.get())
            response.stream = self._body(stream, self._watch)
        if response.status_code >= 400:
            raise Failed(self.request, response)
        return response

    def handed_out(self, found: tuple[Response, Ending] | Degraded[Any]) -> Response:
        """The answer, or what the fallback says instead. From now on it is the caller's to close."""
        if isinstance(found, Degraded):
            return self._made_up(found)
        response, ending = found
        ending.heed(response.headers)
        if self._watch is None:
            ending.over(None)
        else:
            self._watch.ends(ending)
        self.last = None
        return response

    def hurry(self, seconds: float) -> float:
        """How long the last answer may be read at most, when it is thrown away; a thread is cut off by httpx itself."""
        seconds = min(PATIENCE, seconds)
        self._terms.hurry(self._sent, self.request, seconds)
        return seconds

    def failed(self, failed: Failed) -> Response:
        """There are no more attempts: the caller gets the last answer, as from any client."""
        self.last = None
        return failed.response

    def left_over(self) -> Any:
        """The body of the last answer, if the caller does not get it."""
        return None if self.last is None else self.last.stream

    def _made_up(self, found: Degraded[Any]) -> Response:
        value = found.value
        if not isinstance(value, kinds("Response")):
            raise UsageError(
                f"The fallback of a guarded transport answers with a Response of the client's library, not {show(value)}."
            ) from found.error
        if value is self.last:
            self.last = None
        response: Response = value
        response.extensions = {**response.extensions, "guard_degraded": found.error}
        return response
