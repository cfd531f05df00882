"""Requests of this process that are under way with a key: who sends the same again waits here, without asking the database."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.store.idempotency import KeyScope
from holdfast.web.idempotency.answers import Answer


class Asked(msgspec.Struct, frozen=True):
    """A request with its key."""

    scope: KeyScope
    key: str
    fingerprint: str


class Flight:
    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.landed: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

    def land(self, answer: Answer | None) -> None:
        """With what was kept for the key; None: nothing was, and another may try."""
        if not self.landed.done():
            self.landed.set_result(answer)


class Flights:
    def __init__(self) -> None:
        self._under_way: dict[tuple[KeyScope, str], Flight] = {}

    def find(self, asked: Asked) -> Flight | None:
        """One of another event loop is none: it cannot be waited for here."""
        found = self._under_way.get((asked.scope, asked.key))
        is_here = found is not None and found.landed.get_loop() is asyncio.get_running_loop()
        return found if is_here else None

    def begin(self, asked: Asked) -> Flight:
        flight = self._under_way[asked.scope, asked.key] = Flight(asked)
        return flight

    def end(self, flight: Flight) -> None:
        name = (flight.asked.scope, flight.asked.key)
        if self._under_way.get(name) is flight:
            del self._under_way[name]
        flight.land(None)
