"""What a thread has done on an event loop: it waits for the end, and leaves nothing behind when it is asked to stop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from holdfast.kernel.errors import NotOpen
from holdfast.kernel.loops import result_of
from holdfast.kernel.spawn import outlast, start
from holdfast.kernel.threads import Caller, carried, exposed, this_call

T = TypeVar("T")
_LOOKS = 1.0  # seconds between looks whether the loop is still there
# The task of an errand, and who has sent it. Tasks that it starts inherit this: they are not the errand, and nobody waits for them.
_sent: ContextVar[tuple[asyncio.Task[Any] | None, object] | None] = ContextVar(
    "holdfast_errand", default=None
)


def whoever() -> object:
    """Who stands still while this runs: the thread that has sent this task as its errand, else the task itself; this thread, where no loop runs."""
    if asyncio._get_running_loop() is None:  # noqa: SLF001  the public one raises where there is none
        return _here()
    task, sent = asyncio.current_task(), _sent.get()
    return sent[1] if sent is not None and sent[0] is task else task


def _here() -> object:
    """Of one and the same call in a thread, or of a thread, always the same."""
    return this_call() or threading.current_thread()


class Errand(Generic[T]):
    """A coroutine for a loop of another thread. `cancel` may come at any time and from anywhere; the end is its real end."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None
        self._unwanted = False
        self._sender: object = None
        self._process = os.getpid()
        self.ending: Future[T] = Future()

    @property
    def is_begun(self) -> bool:
        return self._loop is not None

    @property
    def is_inherited(self) -> bool:
        """Whether it was begun in the process that forked this one."""
        return self._process != os.getpid()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._sender = loop, _here()
        loop.call_soon_threadsafe(self._start)  # in the context of this thread

    def result(self) -> T:
        self.wait_for(self.ending)
        return result_of(self.ending)

    def wait_for(self, part: Future[Any]) -> None:
        """Until this, which comes with the end at the latest, is there."""
        while not part.done():
            self.look()
            with suppress(TimeoutError, CancelledError):
                part.exception(_LOOKS)

    def look(self) -> None:
        """Whoever closes a loop without ending its tasks tells nobody who waits for them."""
        if self.is_inherited:
            raise NotOpen(
                "This was begun before the process was forked, and the parent goes on with it. "
                "Begin it anew in the child, after the fork."
            )
        if self._loop is not None and self._loop.is_closed():
            self.ending.cancel()

    def cancel(self) -> None:
        self._unwanted = True
        self.tell(self._cancel)

    def tell(self, call: Callable[[], None]) -> None:
        """Call it on the loop; at once, when this is the loop."""
        if self._loop is None or self.is_inherited:
            return
        if self._loop is asyncio._get_running_loop():  # noqa: SLF001  the public one raises where there is none
            call()
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)

    def _start(self) -> None:
        if self._unwanted:
            self.ending.cancel()
            return
        self._task = start(self._done(), name="errand")
        self._task.add_done_callback(self._ended)

    async def _done(self) -> T:
        _sent.set((asyncio.current_task(), self._sender))
        return await self._work()  # what goes wrong here is told, too

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.ending.cancel()
        elif (error := task.exception()) is not None:
            self.ending.set_exception(error)
        else:
            self.ending.set_result(task.result())


class BackCalls(Caller):
    """For a coroutine on a loop: has plain functions called on the thread that waits for its end, so it is there."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()

    async def call(self, function: Callable[[], T]) -> T:
        ending: Future[T] = Future()
        self._inbox.put((function, ending))
        answer = asyncio.wrap_future(ending)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            await outlast(answer)
            raise

    def serve(self, errand: Errand[T]) -> T:
        """In a shelter, until it has ended; returns its result. The functions are not sheltered."""
        errand.ending.add_done_callback(lambda _: self._inbox.put(None))
        stopped: BaseException | None = None
        while (asked := self._next(errand)) is not None:
            function, answer = asked
            try:
                if stopped is not None:
                    raise asyncio.CancelledError  # noqa: TRY301  nothing more is called
                answer.set_result(exposed(partial(carried, function)))
            except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
                answer.set_exception(error)
            except BaseException as error:  # noqa: BLE001  this thread was asked to stop
                stopped = stopped or error
                answer.set_exception(asyncio.CancelledError())
        if stopped is not None:
            raise stopped
        return errand.result()

    def _next(self, errand: Errand[Any]) -> tuple[Callable[[], Any], Future[Any]] | None:
        while True:
            try:
                return self._inbox.get(timeout=_LOOKS)
            except Empty:
                errand.look()
