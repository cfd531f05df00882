"""Transports of httpx that send each request through a guard, for async clients and for those in threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias

import httpx

from holdfast.guards.guard import Guard
from holdfast.guards.http.bodies import keep, keep_sync
from holdfast.guards.http.errors import Failed, translated
from holdfast.guards.http.exchange import Exchange
from holdfast.guards.http.terms import Terms, Until
from holdfast.kernel.errors import HoldfastError

Key: TypeAlias = Callable[[httpx.Request], Any]
Cost: TypeAlias = Callable[[httpx.Request], float]


class GuardedTransport(httpx.AsyncBaseTransport):
    """`httpx.AsyncClient(transport=GuardedTransport(guard))`: every request of this client is a call of the guard.

    `transport` sends them; when not given, httpx's own. `key` and `cost` say of a request which key of the limiter it has, and
    what it takes; a request's `extensions` go before. A call is over with the answer's `"body"`, or with its `"headers"`.
    `tell_deadline` sends the seconds left as `Holdfast-Deadline`.
    """

    def __init__(
        self,
        guard: Guard[Any],
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        key: Key | None = None,
        cost: Cost | None = None,
        until: Until = "body",
        tell_deadline: bool = True,
    ) -> None:
        self._terms = Terms(guard, key=key, cost=cost, until=until, tell_deadline=tell_deadline)
        self._transport = transport or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(self._terms, request)
        try:
            found = await exchange.calls.open(
                partial(self._send, exchange), once=exchange.once, discard=_discard
            )
            return exchange.handed_out(found)
        except Failed as failed:
            return exchange.failed(failed)
        except HoldfastError as error:
            raise translated(error) from error
        finally:
            if exchange.last is not None:
                assert isinstance(exchange.last.stream, httpx.AsyncByteStream)
                await exchange.last.stream.aclose()

    async def _send(self, exchange: Exchange) -> httpx.Response:
        return exchange.answered(await self._transport.handle_async_request(exchange.outgoing()))

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._transport.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        await self._transport.aclose()


class SyncGuardedTransport(httpx.BaseTransport):
    """`httpx.Client(transport=SyncGuardedTransport(guard))`: the same for plain code in threads.

    A thread cannot be cut off: the guard's times are those of httpx for each reading and writing.
    """

    def __init__(
        self,
        guard: Guard[Any],
        transport: httpx.BaseTransport | None = None,
        *,
        key: Key | None = None,
        cost: Cost | None = None,
        until: Until = "body",
        tell_deadline: bool = True,
    ) -> None:
        self._terms = Terms(guard, key=key, cost=cost, until=until, tell_deadline=tell_deadline)
        self._transport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(self._terms, request)
        try:
            found = exchange.calls.open_sync(
                partial(self._send, exchange), once=exchange.once, discard=_discard_sync
            )
            return exchange.handed_out(found)
        except Failed as failed:
            return exchange.failed(failed)
        except HoldfastError as error:
            raise translated(error) from error
        finally:
            if exchange.last is not None:
                assert isinstance(exchange.last.stream, httpx.SyncByteStream)
                exchange.last.stream.close()

    def _send(self, exchange: Exchange) -> httpx.Response:
        return exchange.answered(self._transport.handle_request(exchange.outgoing()))

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._transport.__exit__(exc_type, exc_value, traceback)

    def close(self) -> None:
        self._transport.close()


async def _discard(error: Exception) -> None:
    """Another attempt follows: the connection of this one must not wait for it."""
    if isinstance(error, Failed):
        await keep(error.response)


def _discard_sync(error: Exception) -> None:
    if isinstance(error, Failed):
        keep_sync(error.response)
