"""`metrics(hf)`: an ASGI app that answers Prometheus. Mount it where only Prometheus comes: it asks nobody who he is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

from holdfast.observe.metrics.scrape import begin, scrape
from holdfast.store.ports import Store

Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Program(Protocol):
    """As much of Holdfast as metrics need."""

    @property
    def store(self) -> Store: ...


class Metrics:
    """What `metrics(hf)` returns. It counts from when it is made."""

    def __init__(self, hf: Program) -> None:
        self._hf = hf
        begin()

    async def __call__(self, scope: Scope, _: object, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] not in ("GET", "HEAD"):
            await _send(send, 405, b"", "text/plain; charset=utf-8", (b"allow", b"GET, HEAD"))
            return
        accept = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept")
        text, kind = await scrape(self._hf.store, accept.decode("latin-1"))
        await _send(send, 200, b"" if scope["method"] == "HEAD" else text, kind)


def metrics(hf: Program) -> Metrics:
    """An ASGI app with the metrics of this program: `Mount("/metrics", metrics(hf))`. Needs `holdfast[metrics]`."""
    return Metrics(hf)


async def _send(send: Send, status: int, body: bytes, kind: str, *fields: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store"), *fields]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
