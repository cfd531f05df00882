"""Event loops in threads of their own, and the way to them from sync code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Generic, TypeVar

from holdfast.kernel import forks
from holdfast.kernel.errors import CommitUnknown

T = TypeVar("T")


class LoopThread:
    """A thread that runs an event loop until it is stopped. A daemon: it keeps no interpreter alive."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        forks.tell_child(self)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(_end_others())  # else whoever waits for one would wait for ever
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def forked(self) -> None:
        """A child has no such thread."""
        forks.keep_loop(self.loop)

    def stop(self) -> None:
        """End the loop and wait for the thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class PerLoop(Generic[T]):
    """One of something for each event loop: what asyncio makes is of no use on another loop than its own."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        here = asyncio.get_running_loop()
        if (found := self._made.get(here)) is None:
            for loop in [each for each in tuple(self._made) if each.is_closed()]:
                self._made.pop(loop, None)
            found = self._made[here] = self._make()
        return found


async def _end_others() -> None:
    await asyncio.sleep(0)  # what was submitted last begins
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def new_lock() -> threading.Lock:
    """For what several threads must not do at once."""
    return forks.new_lock()


def new_flag() -> threading.Event:
    """For a thread that waits, in `clock.pause`, until another tells it."""
    return threading.Event()


def submit(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> Future[T]:
    """Begin a coroutine on a loop of another thread."""
    return asyncio.run_coroutine_threadsafe(work, loop)


def result_of(ending: Future[T]) -> T:
    """Wait for the end of what was begun on a loop of another thread. Nobody knows what was done by one that was cut off."""
    try:
        return ending.result()
    except CancelledError:
        raise CommitUnknown(
            "The loop that did this was ended meanwhile: it happened or it did not."
        ) from None


def call_from_thread(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of another thread, and wait for its end."""
    return result_of(submit(loop, work))


async def call_in_thread(call: Callable[[], T]) -> T:
    """Call what blocks, while this loop goes on. In a thread of its own: the program may keep all those of the loop busy."""
    ending: Future[T] = Future()
    inside = contextvars.copy_context()
    threading.Thread(
        target=inside.run, args=(_called, call, ending), name="holdfast-blocks", daemon=True
    ).start()
    return await asyncio.wrap_future(ending)


def _called(call: Callable[[], T], ending: Future[T]) -> None:
    if not ending.set_running_or_notify_cancel():
        return
    try:
        ending.set_result(call())
    except BaseException as error:  # noqa: BLE001  it is for whoever waits
        ending.set_exception(error)
