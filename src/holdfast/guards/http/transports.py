"""Transports that send each request of a client through a guard, for async clients and for those in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias

from holdfast.guards.guard import Guard
from holdfast.guards.http.bodies import AsyncBody, SyncBody, keep, keep_sync
from holdfast.guards.http.errors import Failed, translated
from holdfast.guards.http.exchange import Exchange
from holdfast.guards.http.library import AsyncBaseTransport, BaseTransport, Request, Response, library_of
from holdfast.guards.http.terms import Terms, Until
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.loops import new_lock

Key: TypeAlias = Callable[[Any], Any]  # of a Request
Cost: TypeAlias = Callable[[Any], float]


class _Inner:
    """What sends the requests: what was given, else the usual one of the library that the first request is of."""

    __slots__ = ("_lock", "_name", "found")

    def __init__(self, given: Any, name: str) -> None:
        self.found, self._name, self._lock = given, name, new_lock()

    def for_(self, request: Request) -> Any:
        with self._lock:
            if self.found is None:
                self.found = getattr(library_of(request), self._name)()
            return self.found


class GuardedTransport(AsyncBaseTransport):
    """`httpx2.AsyncClient(transport=GuardedTransport(guard))`: every request of this client is a call of the guard.

    `transport` sends them; when not given, the library's own. `key` and `cost` say of a request which key of the limiter it has,
    and what it takes; a request's `extensions` go before. A call is over with the answer's `"body"`, or with its `"headers"`.
    `tell_deadline` sends the seconds left as `Holdfast-Deadline`, `tell_story` the story's `X-Correlation-Id` and `traceparent`.
    """

    def __init__(
        self,
        guard: Guard[Any],
        transport: Any = None,
        *,
        key: Key | None = None,
        cost: Cost | None = None,
        until: Until = "body",
        tell_deadline: bool = True,
        tell_story: bool = True,
    ) -> None:
        self._terms = Terms(
            guard, key=key, cost=cost, until=until, tell_deadline=tell_deadline, tell_story=tell_story
        )
        self._inner = _Inner(transport, "AsyncHTTPTransport")

    async def handle_async_request(self, request: Request) -> Response:
        exchange = Exchange(self._terms, request, AsyncBody)
        try:
            found = await exchange.calls.open(
                partial(self._send, exchange), once=exchange.once, discard=partial(_discard, exchange)
            )
            return exchange.handed_out(found)
        except Failed as failed:
            return exchange.failed(failed)
        except HoldfastError as error:
            raise translated(error) from error
        finally:
            if (stream := exchange.left_over()) is not None:
                await stream.aclose()

    async def _send(self, exchange: Exchange) -> Response:
        inner = self._inner.for_(exchange.request)
        return exchange.answered(await inner.handle_async_request(exchange.outgoing()))

    async def __aenter__(self) -> Self:
        if self._inner.found is not None:
            await self._inner.found.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._inner.found is not None:
            await self._inner.found.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        if self._inner.found is not None:
            await self._inner.found.aclose()


class SyncGuardedTransport(BaseTransport):
    """`httpx2.Client(transport=SyncGuardedTransport(guard))`: the same for plain code in threads.

    A thread cannot be cut off: the guard's times are the client's for each reading and writing.
    """

    def __init__(
        self,
        guard: Guard[Any],
        transport: Any = None,
        *,
        key: Key | None = None,
        cost: Cost | None = None,
        until: Until = "body",
        tell_deadline: bool = True,
        tell_story: bool = True,
    ) -> None:
        self._terms = Terms(
            guard, key=key, cost=cost, until=until, tell_deadline=tell_deadline, tell_story=tell_story
        )
        self._inner = _Inner(transport, "HTTPTransport")

    def handle_request(self, request: Request) -> Response:
        exchange = Exchange(self._terms, request, SyncBody)
        try:
            found = exchange.calls.open_sync(
                partial(self._send, exchange), once=exchange.once, discard=partial(_discard_sync, exchange)
            )
            return exchange.handed_out(found)
        except Failed as failed:
            return exchange.failed(failed)
        except HoldfastError as error:
            raise translated(error) from error
        finally:
            if (stream := exchange.left_over()) is not None:
                stream.close()

    def _send(self, exchange: Exchange) -> Response:
        inner = self._inner.for_(exchange.request)
        return exchange.answered(inner.handle_request(exchange.outgoing()))

    def __enter__(self) -> Self:
        if self._inner.found is not None:
            self._inner.found.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self._inner.found is not None:
            self._inner.found.__exit__(exc_type, exc_value, traceback)

    def close(self) -> None:
        if self._inner.found is not None:
            self._inner.found.close()


async def _discard(exchange: Exchange, error: Exception, seconds: float) -> None:
    """Another attempt follows: the connection of this one must not wait for it."""
    if isinstance(error, Failed):
        await keep(error.response, exchange.hurry(seconds))


def _discard_sync(exchange: Exchange, error: Exception, seconds: float) -> None:
    if isinstance(error, Failed):
        keep_sync(error.response, exchange.hurry(seconds))
