"""The broker between programs, opened when it is first needed: a program goes on emitting while it is away."""

from __future__ import annotations

import asyncio

from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.forks import tell_child
from holdfast.kernel.telemetry import note
from holdfast.transport.port import Transport


class Wire:
    """A transport that is opened once, by whoever needs it first, and again after that has failed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._turn: asyncio.Lock | None = None  # of the loop that is running
        self._is_open = False
        self.joined: set[str] = set()  # groups of which the store knows that the broker knew them
        tell_child(self)

    def forked(self) -> None:
        """A child of the process opens it for itself."""
        self._is_open, self._turn = False, None

    @property
    def name(self) -> str:
        return self._transport.name

    @property
    def loss(self) -> str:
        return self._transport.loss

    async def ready(self) -> Transport:
        """The open transport. Raises TransportUnavailable when the broker does not answer."""
        if not self._is_open:
            self._turn = self._turn or asyncio.Lock()
            async with self._turn:
                if not self._is_open:
                    await self._transport.open()
                    self._is_open = True
        return self._transport

    async def close(self) -> None:
        """Not before all that uses it has ended."""
        was_open, self._is_open, self._turn = self._is_open, False, None
        if not was_open:
            return
        try:
            await self._transport.close()
        except HoldfastError as error:  # there is nothing that it would keep
            note("transport.not_closed", transport=self.name, error=repr(error))
