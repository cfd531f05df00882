"""The two ways to wait: on an event loop, or by letting a thread stand still. All else in guards is written once, for both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, Protocol, TypeVar

from holdfast.kernel.clock import look_after, news_within, pause, sleep
from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import new_flag
from holdfast.kernel.show import show
from holdfast.kernel.threads import exposed, sheltered
from holdfast.kernel.waits import Limited, at_once, in_time

T = TypeVar("T")
_ASYNC = (
    "Something here is async, such as the fallback, and no thread can wait for it. Give it a plain function."
)


class Turn(Protocol):
    """Someone in a line who is called when it is his turn."""

    def call(self) -> bool:
        """From any thread. False: nobody will hear it, for his event loop is gone."""

    async def wait(self, seconds: float | None, /) -> None:
        """Return when called, or when the time is over."""


class Way(Protocol):
    def turn(self) -> Turn: ...
    async def sleep(self, seconds: float, /) -> None: ...
    async def look_after(self, seconds: float, /) -> None:
        """Sleep before looking again at what others may change."""

    async def attempt(self, work: partial[Any], seconds: float | None, /) -> Any:
        """Make the call, and cut it off after so many seconds."""


class _LoopTurn:
    __slots__ = ("_future", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def call(self) -> bool:
        if self._loop is asyncio._get_running_loop():  # noqa: SLF001  the public one raises where there is none
            self._called()
            return True
        try:
            self._loop.call_soon_threadsafe(self._called)
        except RuntimeError:  # it is closed
            return False
        return True

    def _called(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float | None, /) -> None:
        if seconds is None:
            await self._future
            return
        limit = news_within(seconds)
        try:
            async with limit:
                await self._future
        except TimeoutError:
            if not limit.expired():
                raise


class _OnLoop:
    def turn(self) -> Turn:
        return _LoopTurn()

    async def sleep(self, seconds: float, /) -> None:
        await sleep(seconds)

    async def look_after(self, seconds: float, /) -> None:
        await look_after(seconds)

    async def attempt(self, work: partial[Any], seconds: float | None, /) -> Any:
        begun = work()
        if type(begun) is CoroutineType:  # it needs no timer unless it waits
            return await (begun if seconds is None else Limited(begun, seconds))
        if not isinstance(begun, Awaitable):
            raise UsageError(
                f"{show(work.func)} is no async function: it has run and returned {show(begun)}. Use call_sync."
            )
        return await (begun if seconds is None else in_time(begun, seconds))


class _ThreadTurn:
    __slots__ = ("_flag",)

    def __init__(self) -> None:
        self._flag = new_flag()

    def call(self) -> bool:
        self._flag.set()
        return True

    async def wait(self, seconds: float | None, /) -> None:
        exposed(partial(pause, seconds, self._flag))


class _InThread:
    def turn(self) -> Turn:
        return _ThreadTurn()

    async def sleep(self, seconds: float, /) -> None:
        exposed(partial(pause, seconds))

    async def look_after(self, seconds: float, /) -> None:
        exposed(partial(new_flag().wait, seconds))

    async def attempt(self, work: partial[Any], _: float | None, /) -> Any:
        """A plain function cannot be cut off; it may ask `time_left()`."""
        result = exposed(work)
        if type(result) is CoroutineType:
            result.close()
            raise UsageError(
                f"{show(work.func)} is an async function, and nobody here can await it. Use `await guard.call`."
            )
        return result


ON_LOOP: Way = _OnLoop()
IN_THREAD: Way = _InThread()


def finished(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that goes the way of threads: it waits by standing still, and never suspends.

    A thread that is asked to stop hears of it only where it waits or calls a stranger, so no permit is lost.
    """
    return sheltered(partial(at_once, work, _ASYNC))


def refuse_on_loop(name: str, instead: str) -> None:
    """A thread that runs an event loop must not stand still."""
    if asyncio._get_running_loop() is not None:  # noqa: SLF001  the public one raises where there is none
        raise UsageError(f"{name} would block the event loop of this thread. Use `{instead}`.")
