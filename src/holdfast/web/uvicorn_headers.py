"""HeaderLimits: uvicorn's HTTP with a time and a size for headers, which it does not have and no ASGI app can add.

`uvicorn shop:app --http holdfast.web.uvicorn_headers:HeaderLimits`, or with limits of your own:
`uvicorn.run(app, http=header_limits(time=5, size=16_384))`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from holdfast.kernel.clock import sleep
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.spawn import start

TIME, SIZE = 20.0, 64 * 1024

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Http
else:
    _Http = object


class _Limited(_Http):
    """Stands before one of uvicorn's own protocols. A request has its time from the beginning of its connection, or from its first byte."""

    header_time, header_size = TIME, SIZE
    _timer: asyncio.Task[None] | None = None
    _received = 0  # bytes of headers that are not complete
    _in_body = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_between and self._timer is None:
            self._await_headers()
        super().data_received(data)
        if not self._is_between or self.transport.get_protocol() is not self:  # but that of a WebSocket
            self._rest()
        elif not self._has_body_left:
            self._received += len(data)
            if self._received > self.header_size:
                self._end(b"431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        """Of httptools, as is the next."""
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body, self._received = False, 0
        self._rest()  # the next request has a time of its own
        super().on_message_complete()

    @property
    def _has_body_left(self) -> bool:
        """Whether the rest of a request comes that is answered, such as with 413. It has as much time as headers."""
        conn = getattr(self, "conn", None)
        return self._in_body if conn is None else conn.their_state is h11.SEND_BODY

    @property
    def _is_between(self) -> bool:
        """Whether no request is known: none has come, or the last one is answered."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def _await_headers(self) -> None:
        self._received = 0
        self._timer = start(self._end_late(), name="uvicorn:headers")

    async def _end_late(self) -> None:
        await sleep(self.header_time)
        self._timer = None  # it is this one, and not to be cancelled
        self._end(b"408 Request Timeout")

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, status: bytes) -> None:
        self._rest()
        if not self._is_between or self.transport.is_closing():
            return
        # Browsers open connections ahead: who has said nothing is told nothing.
        if self._received and not self._has_body_left:
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()


def header_limits(
    *, time: float = TIME, size: int = SIZE, protocol: type[asyncio.Protocol] = AutoHTTPProtocol
) -> type[asyncio.Protocol]:
    """The same with limits of your own, in seconds and bytes."""
    limits = {
        "header_time": check_seconds("time", time, minimum=0.1),
        "header_size": check_int("size", size, 1024, 2**24),
    }
    return type("HeaderLimits", (_Limited, protocol), limits)


HeaderLimits = header_limits()
