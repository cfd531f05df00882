"""What waits for a clock that a test moves by hand: until when, what wakes it, and where in the program it stands."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self, TypeVar

import msgspec

from holdfast.kernel.spawn import is_spawned
from holdfast.kernel.world import Alarm, Kind

T = TypeVar("T")
# What the code that runs is part of, such as one run of a drain: its waits are told from those of others.
_parts: ContextVar[tuple[object, ...]] = ContextVar("holdfast_testing_parts", default=())
SERVICE = object()  # the part of the program that is the framework's own
# Beneath these frames of a task or a thread is whoever has started it.
_BELOW = ("asyncio", "threading", "concurrent")
_BESIDE = ("contextlib", "holdfast", "functools")


class Wait(msgspec.Struct, frozen=True):
    """One place of the program that waits for the clock."""

    seconds: float  # that are left
    where: str  # "shop.py:42 in pay"

    def __str__(self) -> str:
        return f"{self.where}, for {self.seconds:.6g} s"


class Waiter:
    """Whoever waits. `wake` is called, on its loop, when the moment has come; a thread looks by itself."""

    __slots__ = ("kind", "loop", "moment", "parts", "wake", "where")

    def __init__(
        self, moment: float, kind: Kind, loop: asyncio.AbstractEventLoop | None, wake: Callable[[], object]
    ) -> None:
        self.moment, self.kind, self.loop, self.wake = moment, kind, loop, wake
        self.parts, self.where = _parts.get(), _where() or _task(loop)

    def ring(self) -> None:
        if self.loop is not None:
            with suppress(RuntimeError):  # its loop is closed: nobody waits any more
                self.loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        self.wake()  # as it is by then: the alarm may have been taken back


async def part_of(part: object, work: Awaitable[T]) -> T:
    """Await it in a task of its own: it and what it starts is that part of the program."""
    _parts.set((*_parts.get(), part))
    return await work


def _where() -> str | None:
    """The innermost line of the program, or of its test; None: only the framework's own services are on this stack."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001  no other way leads to those who await
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in _BELOW:
            return None
        if package not in _BESIDE:
            code = frame.f_code
            return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back
    return None


def _task(loop: asyncio.AbstractEventLoop | None) -> str | None:
    """Its name, when a task waits in which the program has no line of its own: one that `asyncio.gather` has made of a call."""
    if loop is None:
        return f"thread {threading.current_thread().name!r}"
    task = asyncio.current_task()
    if task is None or is_spawned(task) or SERVICE in _parts.get():
        return None
    return f"task {task.get_name()!r}"


class Timers(Protocol):
    def join(self, seconds: float, kind: Kind, wake: Callable[[], object]) -> Alarm: ...


class HandLimit:
    """`asyncio.timeout` by a clock that stands still. What looks again does so in real time, too."""

    def __init__(self, timers: Timers, seconds: float, kind: Kind) -> None:
        self._timers, self._seconds, self._kind = timers, seconds, kind
        self._block = asyncio.timeout(seconds if kind is Kind.LOOK else None)
        self._alarm: Alarm | None = None

    async def __aenter__(self) -> Self:
        await self._block.__aenter__()
        self._alarm = self._timers.join(self._seconds, self._kind, self._end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        await self._block.__aexit__(kind, error, trace)

    def expired(self) -> bool:
        return self._block.expired()

    def reschedule(self, when: float | None, /) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if when is not None:
            left = when - asyncio.get_running_loop().time()
            self._alarm = self._timers.join(left, self._kind, self._end)

    def _end(self) -> None:
        with suppress(RuntimeError):  # the block was left in this very moment
            self._block.reschedule(asyncio.get_running_loop().time())
