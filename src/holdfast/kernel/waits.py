"""Await a coroutine and hear of it when it first waits: one that never does needs no timer, and no task of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import TimedOut, UsageError

T = TypeVar("T")


class Telling(Generic[T]):
    """`await Telling(work, waits)` is `await work`, and calls `waits()` the moment that it first waits for something."""

    __slots__ = ("_waits", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waits: Callable[[], None]) -> None:
        self._work, self._waits = work, waits

    def __await__(self) -> Generator[Any, None, T]:
        work = self._work
        try:
            step = work.send(None)
        except StopIteration as over:
            value: T = over.value
            return value
        self._waits()
        return (yield from _rest(work, step))


def _rest(work: Coroutine[Any, Any, T], step: Any) -> Generator[Any, None, T]:
    """What is left of it: whoever awaits resumes it with nothing, or with an exception."""
    while True:
        try:
            yield step
        except BaseException as error:  # noqa: BLE001  it is for the work to say what becomes of it
            try:
                step = work.throw(error)
            except StopIteration as over:
                found: T = over.value
                return found
        else:
            return (yield from work.__await__())


class Limited(Generic[T]):
    """`await Limited(work, seconds)` is `await in_time(work, seconds)`; the timer is set when the work first waits."""

    __slots__ = ("_seconds", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], seconds: float) -> None:
        self._work, self._seconds = work, seconds

    def __await__(self) -> Generator[Any, None, T]:
        try:
            step = self._work.send(None)
        except StopIteration as over:
            value: T = over.value
            return value
        return (yield from in_time(_Rest(self._work, step), self._seconds).__await__())


class _Rest(Generic[T]):
    __slots__ = ("_step", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], step: Any) -> None:
        self._work, self._step = work, step

    def __await__(self) -> Generator[Any, None, T]:
        return _rest(self._work, self._step)


async def in_time(rest: Awaitable[T], seconds: float) -> T:
    """What it gives within so many seconds, else TimedOut. A TimeoutError of its own is left as it is."""
    limit = timeout(seconds)
    try:
        async with limit:
            return await rest
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimedOut(f"No answer within {seconds:.6g} s: nobody knows whether it was done.") from None


def at_once(work: Coroutine[Any, Any, T], refusal: str) -> T:
    """Its result, in a thread that cannot wait for a loop. Work that waits for something is refused in these words."""
    try:
        work.send(None)
    except StopIteration as over:
        value: T = over.value
        return value
    work.close()
    raise UsageError(refusal)


def is_clean(before: Context) -> bool:
    """Whether the variables of the context have the values that they had."""
    try:
        return copy_context() == before
    except Exception:  # noqa: BLE001  two values that cannot be compared are not the same
        return False
