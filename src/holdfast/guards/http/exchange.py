"""One request on its way through a guard: from its first attempt to the answer that the caller gets."""

from __future__ import annotations

from typing import Any

import httpx

from holdfast.guards.blocks import Ending
from holdfast.guards.deadline import UNTIL
from holdfast.guards.fallback import Degraded
from holdfast.guards.http.bodies import AsyncBody, SyncBody, Watch
from holdfast.guards.http.errors import Failed
from holdfast.guards.http.terms import Terms
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show


class Exchange:
    """Knows the last answer until the caller has it: whatever happens before, it is closed."""

    __slots__ = ("_began", "_sent", "_terms", "_until", "calls", "last", "once", "request")

    def __init__(self, terms: Terms, request: httpx.Request) -> None:
        self._terms, self.request = terms, request
        self.calls, self._until, self.once = terms.calls(request), terms.until(request), terms.once(request)
        self.last: httpx.Response | None = None
        self._sent, self._began = request, 0.0

    def outgoing(self) -> httpx.Request:
        """What is sent by the attempt that begins now."""
        self._began, self._sent = monotonic(), self._terms.outgoing(self.request)
        return self._sent

    def answered(self, response: httpx.Response) -> httpx.Response:
        """The headers are here. Raises Failed when they tell of an error: the guard decides what becomes of it."""
        self.last = response
        self._terms.read_on(self._sent, self.request, self._until)
        if self._until == "body" and not response.is_closed:  # else it is in memory, and nobody reads it
            watch, stream = Watch(monotonic() - self._began, UNTIL.get()), response.stream
            response.stream = (
                AsyncBody(stream, watch)
                if isinstance(stream, httpx.AsyncByteStream)
                else SyncBody(stream, watch)
            )
        if response.status_code >= 400:
            raise Failed(self.request, response)
        return response

    def handed_out(self, found: tuple[httpx.Response, Ending] | Degraded[Any]) -> httpx.Response:
        """The answer, or what the fallback says instead. From now on it is the caller's to close."""
        if isinstance(found, Degraded):
            return self._made_up(found)
        response, ending = found
        if isinstance(response.stream, AsyncBody | SyncBody):
            response.stream.watch.ends(ending)
        else:
            ending.over(None)
        self.last = None
        return response

    def failed(self, failed: Failed) -> httpx.Response:
        """There are no more attempts: the caller gets the last answer, as from any client."""
        self.last = None
        return failed.response

    def _made_up(self, found: Degraded[Any]) -> httpx.Response:
        value = found.value
        if not isinstance(value, httpx.Response):
            raise UsageError(
                f"The fallback of a guarded transport answers with an httpx.Response, not {show(value)}."
            ) from found.error
        if value is self.last:
            self.last = None
        value.extensions = {**value.extensions, "guard_degraded": found.error}
        return value
