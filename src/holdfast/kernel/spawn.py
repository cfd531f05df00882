"""Tasks and threads: started here, so that a simulation can run them and nothing is dropped by the collector."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from holdfast.kernel.telemetry import note
from holdfast.kernel.world import Beside, Body, Mailbox, Thread, current

T = TypeVar("T")

_tasks: set[asyncio.Task[Any]] = set()


def spawn(work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Run the coroutine beside the caller. asyncio keeps only weak references to tasks; this keeps strong ones."""
    task = beside(start(work, name=name))
    task.add_done_callback(_tell_failure)
    return task


def beside(task: asyncio.Task[T]) -> asyncio.Task[T]:
    """It goes on by itself, and is kept until it is over."""
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


def start(
    work: Coroutine[Any, Any, T], *, name: str, context: contextvars.Context | None = None
) -> asyncio.Task[T]:
    """`spawn` for who keeps the task and hears of its end: it costs less than half.

    It never runs before this returns: a task factory of the program may start tasks at once, and ours are not made for that.
    """
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        return loop.create_task(work, name=name, context=context)
    return asyncio.Task(work, loop=loop, name=name, context=context)


def is_spawned(task: asyncio.Task[Any]) -> bool:
    """Whether it goes on by itself."""
    return task in _tasks


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel the task and wait until it is over, however it ends."""
    task.cancel()
    await over(task)


def cancel(task: asyncio.Task[Any]) -> None:
    """Ask the task to stop, whichever loop it is of. One whose loop is gone has stopped."""
    loop = task.get_loop()
    if loop is asyncio._get_running_loop():  # noqa: SLF001  the public one raises where there is none
        task.cancel()
        return
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(task.cancel)


async def over(*waited: asyncio.Future[Any]) -> None:
    """Wait until all of them are over, however they end; who gives up waiting does not cancel them."""
    if waited:
        await asyncio.wait(waited)


async def one_over(*waited: asyncio.Future[Any]) -> None:
    """The same until one of them is over."""
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, also when whoever waits is cancelled: that comes afterwards. For what must not stay half done."""
    task = start(work, name="to-its-end")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await outlast(task)
        raise


async def outlast(waited: asyncio.Future[Any]) -> None:
    """Wait until it is over, however often the wait is cancelled; the caller says so afterwards."""
    while not waited.done():
        with suppress(asyncio.CancelledError):
            await over(waited)
    if not waited.cancelled():
        waited.exception()  # it is heard of


def is_cancelled() -> bool:
    """Whether somebody has asked the task that runs this to stop: a CancelledError may also come from what it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def start_beside(name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> Beside:
    """Run a coroutine on an event loop of its own, in a thread of its own."""
    return current().start_beside(name, main)


def _tell_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        note("task.failed", task=task.get_name(), error=repr(error))


def start_thread(name: str, body: Body) -> Thread:
    return current().start_thread(name, body)


def mailbox() -> Mailbox[Any]:
    return current().mailbox()


class Reply(Generic[T]):
    """An answer that a thread gives to a coroutine."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()

    def __await__(self) -> Generator[Any, None, T]:
        return self._future.__await__()

    def fill(self, value: T | BaseException) -> None:
        """Answer, on the loop that waits. An exception is raised there."""
        if self._future.done():
            return
        if isinstance(value, BaseException):
            self._future.set_exception(value)
        else:
            self._future.set_result(value)

    def forget(self) -> None:
        """Nobody will wait for it."""
        self._future.add_done_callback(lambda future: future.cancelled() or future.exception())

    @property
    def given_up(self) -> bool:
        """Whether whoever waited was cancelled."""
        return self._future.cancelled()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Where it is waited for; None: in a thread without a loop."""
        return self._loop


class ThreadReply(Reply[T]):
    """An answer that a thread gives to another thread, which has no loop: whoever awaits it stands still until it is there."""

    def __init__(self) -> None:
        self._ending: Future[T] = Future()

    def __await__(self) -> Generator[Any, None, T]:
        return self.wait()
        yield  # a generator that never yields: it waits inside

    def wait(self) -> T:
        return self._ending.result()

    def fill(self, value: T | BaseException) -> None:
        if self._ending.done():
            return
        if isinstance(value, BaseException):
            self._ending.set_exception(value)
        else:
            self._ending.set_result(value)

    def forget(self) -> None:
        """Nobody has to: no loop complains."""

    @property
    def given_up(self) -> bool:
        return False

    @property
    def loop(self) -> None:
        return None


def deliver(answers: Iterable[tuple[Reply[Any], Any]]) -> None:
    """Answer many, with one wake-up for each loop of another thread that waits."""
    here = asyncio._get_running_loop()  # noqa: SLF001  the public one raises where there is none
    by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[Reply[Any], Any]]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].loop, []).append(answer)
    for loop, batch in by_loop.items():
        if loop is here or loop is None:
            _fill_all(batch)
            continue
        try:
            loop.call_soon_threadsafe(_fill_all, batch)
        except RuntimeError:  # the loop was closed: nobody waits any more
            note("reply.unheard", count=len(batch))


def _fill_all(batch: list[tuple[Reply[Any], Any]]) -> None:
    for reply, value in batch:
        reply.fill(value)
