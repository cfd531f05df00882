"""The real World: the machine's clocks, its randomness and its threads. The only file that may touch them."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import random
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.kernel.forks import Turn
from holdfast.kernel.loops import LoopThread, call_in_thread
from holdfast.kernel.telemetry import note
from holdfast.kernel.world import Body, Flag, LoopTimers, Pause, Take


class _Mailbox:
    """A queue of the C library; taking empties it, so one wake-up serves all that has piled up."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, item: Any, /) -> None:
        self._items.put(item)

    def take(self, timeout: float | None) -> list[Any]:
        items: list[Any] = []
        try:
            # A wait until a moment that has passed is no wait; the queue would call it an error.
            items.append(self._items.get(timeout=None if timeout is None else max(0.0, timeout)))
            while True:
                items.append(self._items.get_nowait())
        except queue.Empty:
            return items


class _Thread:
    def __init__(self, name: str, body: Body) -> None:
        context = contextvars.copy_context()
        # A daemon: a store that nobody closed must not keep the interpreter alive.
        self._thread = threading.Thread(target=context.run, args=(_drive, body), name=name, daemon=True)
        self._thread.start()

    def alive(self) -> bool:
        return self._thread.is_alive()

    async def ended(self) -> None:
        await call_in_thread(self._thread.join)


class _Beside:
    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._thread = LoopThread(name)
        self._running = asyncio.run_coroutine_threadsafe(main(), self._thread.loop)

    def post(self, call: Callable[[], object], /) -> None:
        self._thread.loop.call_soon_threadsafe(call)

    async def ended(self) -> None:
        try:
            await asyncio.wrap_future(self._running)
        finally:
            await call_in_thread(self._thread.stop)


def _drive(body: Body) -> None:
    """Give the body what it waits for, until it returns."""
    answer: Any = None
    turn = Turn()
    while True:
        try:
            with turn.lock:
                wait = body.send(answer)
        except StopIteration:
            return
        except BaseException as error:
            note("thread.failed", thread=threading.current_thread().name, error=repr(error))
            raise
        match wait:
            case Take(mailbox=_Mailbox() as mailbox, timeout=timeout):
                answer = mailbox.take(timeout)
            case Pause(seconds=seconds):
                time.sleep(max(0.0, seconds))
                answer = None
            case _:
                raise TypeError(
                    f"A thread's body yielded {wait!r}; it may yield a Take of its own mailbox, or a Pause."
                )


class Reality(LoopTimers):
    """The World in production."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def now(self) -> float:
        return time.time()

    def host_now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float | None, flag: Flag | None, /) -> bool:
        return (flag or threading.Event()).wait(seconds if seconds is None else max(0.0, seconds))

    def random(self) -> float:
        return self._random.random()

    def random_bytes(self, count: int, /) -> bytes:
        return os.urandom(count)

    def mailbox(self) -> _Mailbox:
        return _Mailbox()

    def start_thread(self, name: str, body: Body, /) -> _Thread:
        return _Thread(name, body)

    def start_beside(self, name: str, main: Callable[[], Coroutine[Any, Any, None]], /) -> _Beside:
        return _Beside(name, main)

    def owns(self, close: Callable[[], None], /) -> Callable[[], None]:  # noqa: ARG002
        return _nothing


def _nothing() -> None:
    """The operating system closes what a dead process held."""


REALITY = Reality()
