"""Await a coroutine and hear of it when it first waits: one that never does needs no timer, and no task of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any, Generic, TypeVar

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


def is_clean(before: Context) -> bool:
    """Whether the variables of the context have the values that they had."""
    try:
        return copy_context() == before
    except Exception:  # noqa: BLE001  two values that cannot be compared are not the same
        return False
