"""Waiting for what another's open transaction has: a moment at a time, in turns, on few connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.kernel.clock import patient
from holdfast.kernel.loops import PerLoop
from holdfast.store.postgres.failures import Blocked

T = TypeVar("T")

LIMIT = 10.0  # seconds after which whoever waits is told


class Patience:
    """`turn` is a place to try in. Whoever was blocked gives it to the next, so that few places serve many."""

    def __init__(self, places: int) -> None:
        self._turns = PerLoop(lambda: asyncio.Semaphore(places))

    @property
    def turn(self) -> asyncio.Semaphore:
        return self._turns.get()

    async def wait(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What the attempt answers, once nobody blocks it: each try waits only for a moment."""
        give_up = patient() + LIMIT
        while True:
            try:
                async with self.turn:
                    return await attempt()
            except Blocked:
                if patient() >= give_up:
                    raise
