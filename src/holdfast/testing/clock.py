"""A World whose clocks stand still until a test moves them. Threads and chance stay real."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

from holdfast.kernel.reality import REALITY
from holdfast.kernel.world import Beside, Body, Flag, Mailbox, Thread

_GLANCE = 0.001  # real seconds after which a thread that stands still looks at the clock again
START = 1_900_000_000.0  # a Sunday in March 2030: a moment that no real clock shows by chance


class ManualClock:
    """`with inhabit(ManualClock()) as clock:` and then `clock.advance(31)` instead of waiting half a minute."""

    def __init__(self, start: float = START) -> None:
        self._wall = start
        self._host = start
        self._monotonic = 0.0
        self._lock = threading.Lock()  # stores read the clock on threads of their own
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def advance(self, seconds: float) -> None:
        """Let time pass for everyone, and wake whoever has slept long enough."""
        with self._lock:
            self._wall += seconds
            self._host += seconds
            self._monotonic += seconds
            due = []
            while self._sleepers and self._sleepers[0][0] <= self._monotonic:
                due.append(heapq.heappop(self._sleepers))
        for _, _, loop, sleeper in due:
            loop.call_soon_threadsafe(_wake, sleeper)

    def skew(self, seconds: float) -> None:
        """Set this process's wall clock wrong. The host's clock goes on: no promise may depend on ours."""
        with self._lock:
            self._wall += seconds

    def now(self) -> float:
        return self._wall

    def host_now(self) -> float:
        return self._host

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float, /) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        with self._lock:
            heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), loop, sleeper))
        await sleeper

    def pause(self, seconds: float | None, flag: Flag | None, /) -> bool:
        until = None if seconds is None else self._monotonic + seconds
        flag = flag or threading.Event()
        while not flag.is_set() and (until is None or self._monotonic < until):
            flag.wait(_GLANCE)
        return flag.is_set()

    def random(self) -> float:
        return REALITY.random()

    def random_bytes(self, count: int, /) -> bytes:
        return REALITY.random_bytes(count)

    def mailbox(self) -> Mailbox[object]:
        return REALITY.mailbox()

    def start_thread(self, name: str, body: Body, /) -> Thread:
        return REALITY.start_thread(name, body)

    def start_beside(self, name: str, main: Callable[[], Coroutine[Any, Any, None]], /) -> Beside:
        return REALITY.start_beside(name, main)

    def owns(self, close: Callable[[], None], /) -> Callable[[], None]:
        return REALITY.owns(close)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
