"""A connection to a NATS for one event loop of one process: every call in a bounded time, its failures in our words.

The driver's own way to reconnect is not used: it would send, later and on another connection, what it has kept meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from nats import errors
from nats.aio.client import Client

from holdfast.kernel.clock import patience
from holdfast.kernel.errors import NotOpen, TransportUnavailable, UsageError
from holdfast.kernel.forks import tell_child
from holdfast.kernel.masking import hide
from holdfast.kernel.spawn import end, is_cancelled, start
from holdfast.transport.inherited import leave_nats
from holdfast.transport.nats_url import Target

T = TypeVar("T")

FAILURES = (errors.Error, OSError, TimeoutError, UnicodeError)
_FAREWELL = 1.0  # seconds for closing
_PING_EVERY = 10  # seconds; two without an answer end a connection
_UNSENT = 2**31  # bytes that wait to be sent: bounded by who sends, who then waits for answers


class _Client(Client):
    """One that sends nothing to a server without TLS when TLS is asked for: the driver would go on in plain text, password and all."""

    must_encrypt = False

    def _connect_command(self) -> bytes:
        writer = getattr(self._transport, "_io_writer", None)
        if self.must_encrypt and (writer is None or writer.get_extra_info("ssl_object") is None):
            raise errors.Error("it does not speak TLS, which its URL asks for; nothing was sent to it")
        command: bytes = super()._connect_command()
        return command


class Connection:
    """One connection, and the answers that are waited for on it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._inbox: str = client.new_inbox()
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._number = 0
        self._hearers: list[Callable[[], None]] = []
        self.forbidden: Exception | None = None  # what the server said of a request that it does not answer

    async def begin(self) -> None:
        await self.client.subscribe(f"{self._inbox}.*", cb=self._answered)

    @property
    def alive(self) -> bool:
        connected: bool = self.client.is_connected
        return connected

    async def send(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None
    ) -> asyncio.Future[Any]:
        """The future is the answer."""
        self._number += 1
        reply = f"{self._inbox}.{self._number}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[reply] = future
        future.add_done_callback(lambda _: self._waiting.pop(reply, None))
        await self.client.publish(subject, payload, reply=reply, headers=headers)
        return future

    async def _answered(self, message: Any) -> None:
        future = self._waiting.get(message.subject)
        if future is not None and not future.done():
            future.set_result(message)

    def on_loss(self, hearer: Callable[[], None]) -> None:
        self._hearers.append(hearer)

    def lost(self) -> None:
        """Nobody waits for answers that will not come."""
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(errors.ConnectionClosedError())
                future.exception()  # whoever waits hears of it; nobody else has to
        for hearer in self._hearers:
            hearer()

    async def end(self, *, broken: bool) -> None:
        """A broken one without a farewell: what waits to be sent would wait for a server that does not read."""
        if broken:
            _abort(self.client)
        with suppress(*FAILURES):
            async with patience(_FAREWELL):
                await self.client.close()
        _abort(self.client)
        self.lost()


class Link:
    """No connection is made before it is needed, and a broken one is made anew."""

    def __init__(self, target: Target, *, patience: float) -> None:
        self.shown = target.shown
        self.patience = patience  # seconds for an answer
        self._target = target
        self._connection: Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._making: asyncio.Task[Connection] | None = None
        tell_child(self)

    def forked(self) -> None:
        """A child of the process makes a connection of its own."""
        if self._connection is not None:
            leave_nats(self._connection.client)

    def open(self) -> None:
        here = asyncio.get_running_loop()
        if self._loop is not here or self._process != os.getpid():
            self._check_is_free()
            self._connection = self._making = None
            self._loop, self._process = here, os.getpid()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        making, self._making = self._making, None
        loop, self._loop = self._loop, None
        if loop is not asyncio.get_running_loop() or self._process != os.getpid():
            return
        if making is not None:
            await end(making)
        if connection is not None:
            await connection.end(broken=False)

    async def connection(self) -> Connection:
        self._check()
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._making is None or self._making.done():
            self._making = start(self._make(), name="nats-connect")
            self._making.add_done_callback(
                lambda made: made.cancelled() or made.exception()
            )  # it is heard of
        try:
            # All who need one wait for the same: one after the other, the last would wait for very long.
            return await asyncio.shield(self._making)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise NotOpen(f"The transport to NATS at {self.shown} was closed meanwhile.") from None

    async def _make(self) -> Connection:
        await self._drop(self._connection)
        self._connection = await self.in_time(self._connect())
        return self._connection

    async def broke(self, connection: Connection, error: BaseException) -> TransportUnavailable:
        """It gave no answer in time: the next call makes another. Why, in Holdfast's words."""
        if connection is self._connection:
            await self._drop(connection)
        if isinstance(error, TimeoutError) and connection.forbidden is not None:
            return self.translated(connection.forbidden)
        return self.translated(error)

    async def _drop(self, connection: Connection | None) -> None:
        self._connection = None
        if connection is not None:
            await connection.end(broken=True)

    async def _connect(self) -> Connection:
        client: Any = _Client()
        client.must_encrypt = "tls" in self._target.options
        made: list[Connection] = []
        causes: list[Exception] = []

        async def failed(error: Exception) -> None:
            causes.append(error)
            for connection in made:
                connection.forbidden = error

        async def closed() -> None:
            for connection in made:
                connection.lost()

        try:
            await client.connect(
                allow_reconnect=False,
                connect_timeout=self.patience,
                max_reconnect_attempts=1,
                reconnect_time_wait=0.05,
                ping_interval=_PING_EVERY,
                pending_size=_UNSENT,
                error_cb=failed,
                closed_cb=closed,
                name="holdfast",
                **self._target.options,
            )
            made.append(Connection(client))
            await made[0].begin()
        except BaseException as error:
            _abort(client)
            with suppress(*FAILURES):
                # Not for long, or nobody would hear what went wrong.
                async with patience(min(_FAREWELL, self.patience / 4)):
                    await client.close()
            if isinstance(error, errors.NoServersError) and causes:
                raise causes[-1] from error
            raise
        return made[0]

    def _check(self) -> None:
        if self._loop is None:
            raise NotOpen(f"The transport to NATS at {self.shown} is not open. Call open() first.")
        self._check_is_free()
        if self._process != os.getpid():
            raise NotOpen(
                "The transport was opened before this process was forked, and belongs to the parent. "
                "Open one in each process, after the fork."
            )

    def _check_is_free(self) -> None:
        """A connection belongs to one loop, unless that has ended, or to the process that forked this one."""
        if self._loop is None or self._loop.is_closed() or self._process != os.getpid():
            return
        if self._loop is not asyncio.get_running_loop():
            raise UsageError(
                "The transport was opened in another event loop, and belongs to that one. Open one in each."
            )

    async def ask(self, subject: str, payload: bytes = b"") -> Any:
        """One request and its answer."""
        connection = await self.connection()
        (answer,) = await self.answers(connection, [(subject, payload, None)])
        return answer

    async def answers(
        self, connection: Connection, requests: Iterable[tuple[str, bytes, dict[str, str] | None]]
    ) -> list[Any]:
        """Send all of them, in this order, and wait for all of the answers."""
        sent: list[asyncio.Future[Any]] = []
        try:
            async with patience(self.patience):
                for subject, payload, headers in requests:
                    sent.append(await connection.send(subject, payload, headers))
                return [await future for future in sent]
        except FAILURES as error:
            raise await self.broke(connection, error) from error
        finally:
            for future in sent:
                future.cancel()

    async def in_time(self, work: Awaitable[T]) -> T:
        try:
            async with patience(self.patience):
                return await work
        except FAILURES as error:
            raise self.translated(error) from error

    def translated(self, error: BaseException) -> TransportUnavailable:
        """The same failure in Holdfast's words. What was sent may have been done: no answer tells."""
        text = hide(str(error), self._target.secrets).removeprefix("nats: ")
        where, detail = f"NATS at {self.shown}", f" ({text})" if text else ""
        if "uthorization" in text or "uthentication" in text:
            return TransportUnavailable(f"{where} refuses the user, password or token of its URL{detail}.")
        if "ermissions" in text:
            return TransportUnavailable(f"{where} does not allow its user what is needed{detail}.")
        if isinstance(error, TimeoutError):
            return TransportUnavailable(f"{where} did not answer in time{detail}.")
        return TransportUnavailable(f"{where} cannot be reached{detail}.")


def _abort(client: Client) -> None:
    """Hang up at once. The driver has no word for it: its `close` first sends what is left, for as long as that takes."""
    client._pending, client._pending_data_size = [], 0  # noqa: SLF001
    transport = getattr(client, "_transport", None)
    for name in ("_io_writer", "_bare_io_writer"):
        if (writer := getattr(transport, name, None)) is not None:
            writer.transport.abort()
