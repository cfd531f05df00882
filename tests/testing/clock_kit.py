"""A stand-in for another service, whose calls a test counts, lets fail, and has hang."""

from __future__ import annotations

import asyncio

from holdfast import Backoff
from holdfast.testing import ManualClock

THRICE, ONCE = Backoff(attempts=3, first=10, ceiling=10), Backoff(attempts=1)


class Refused(Exception):
    """By a stand-in for another service."""


class Service:
    """Fails as often as it is told, and remembers when it was called."""

    def __init__(self, clock: ManualClock, failures: int = 0) -> None:
        self.clock, self.failures, self.calls = clock, failures, []

    async def call(self, value: int = 0) -> int:
        self.calls.append(self.clock.monotonic())
        if len(self.calls) <= self.failures:
            raise Refused
        return value + 1

    def call_sync(self, value: int = 0) -> int:
        self.calls.append(self.clock.monotonic())
        if len(self.calls) <= self.failures:
            raise Refused
        return value + 1

    async def hang(self) -> None:
        self.calls.append(self.clock.monotonic())
        await asyncio.Event().wait()
