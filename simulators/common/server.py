"""Runs an ASGI app on a free loopback port, in a thread, with connections that a fault can cut."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

TRANSPORT = "simulator.transport"
_PATIENCE = 10.0  # seconds to start and to stop


class Cut(Exception):
    """The connection was cut: nothing is to be answered any more."""


class _Cuttable(H11Protocol):
    """Each request knows its connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app = self.app

        async def with_transport(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app({**scope, TRANSPORT: transport}, receive, send)
            except Cut:
                await send({"type": "http.response.start", "status": 500, "headers": []})  # nobody hears it
                await send({"type": "http.response.body", "body": b""})

        self.app = with_transport


def cut(scope: Any) -> None:
    """Hang up on this request, without a word."""
    scope[TRANSPORT].abort()
    raise Cut


class Running:
    """`with Running(app) as server:` `server.url` is where it answers. It accepts connections as soon as the block begins."""

    def __init__(self, app: Any, *, port: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app, http=_Cuttable, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name=f"simulator-{self.port}", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def __enter__(self) -> Self:
        self._socket.listen(512)  # who comes before the server is ready waits for it
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
        self._socket.close()

    def wait(self) -> None:
        """Until it has ended."""
        self._thread.join()
