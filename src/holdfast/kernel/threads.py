"""Threads for plain functions: each call gets one, carries the caller's context, and can be asked to stop."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import TypeVar

from holdfast.kernel.clock import patience
from holdfast.kernel.spawn import outlast

T = TypeVar("T")
OnStop = Callable[[], None] | None
# For each task that a worker runs at once: so many of its steps may call plain functions side by side. Most tasks call one;
# a thread that waits costs little, but a task with a thousand steps at once must not start a thousand threads.
CALLS_BESIDE = 8
_MOST_THREADS = 10_000  # of a crowd
_in_crowd: contextvars.ContextVar[bool] = contextvars.ContextVar("holdfast_in_crowd", default=False)
_STANDSTILL = 0.1  # seconds without an end after which a crowd grows


class Stopped(BaseException):
    """Raised inside a thread that was asked to stop. Not an Exception: `except Exception` must not swallow it."""


class ThreadCall:
    """One call in a thread. `stop` raises Stopped in it at its next line of Python; C code is not interrupted.

    That may be between any two of its instructions, so what must not be torn is done in a shelter: there Stopped waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ident: int | None = None
        self._over = False
        self._asked = False
        self._sheltered = False
        self._late = False  # it was asked to stop in a shelter, and has not heard of it yet
        self._on_stop: OnStop = None
        self.at_end: set[Callable[[], None]] = (
            set()
        )  # called on the loop, once the thread can do nothing more

    @property
    def is_running(self) -> bool:
        return self._ident is not None and not self._over

    def run(self, call: Callable[[], T]) -> T:
        with self._lock:
            if self._asked:
                raise Stopped
            self._ident = threading.get_ident()
        try:
            _here.call = self
            return carried(call)
        finally:
            try:
                self._end()
            except Stopped:  # it came before this was done, and a later one must not strike whoever has this thread's number next
                self._end()
                raise

    def _end(self) -> None:
        with self._lock:
            self._over, _here.call = True, None

    def stop(self) -> None:
        with self._lock:
            self._asked = True
            if self._ident is None or self._over:
                return
            if not self._sheltered:
                ident, kind = ctypes.c_ulong(self._ident), ctypes.py_object(Stopped)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, kind)
                return
            self._late, on_stop = True, self._on_stop
        if on_stop is not None:
            on_stop()

    def sheltered(self, work: Callable[[], T], on_stop: OnStop) -> T:
        outer = self._sheltered, self._on_stop
        try:
            self._be(True, on_stop)
            return work()
        finally:
            self._be(*outer)

    def exposed(self, work: Callable[[], T]) -> T:
        outer = self._sheltered, self._on_stop
        try:
            self._be(False, None)
            return work()
        finally:
            try:
                self._be(*outer)
            except Stopped:  # it came before this was done
                self._be(*outer)
                raise

    def _be(self, sheltered: bool, on_stop: OnStop) -> None:
        """Who was asked to stop in a shelter hears of it outside. What was raised just before it is heard in here."""
        with self._lock:
            self._sheltered, self._on_stop = sheltered, on_stop
            late = self._late and not sheltered
            self._late = self._late and sheltered
        if late:
            raise Stopped

    def ended(self) -> None:
        for each in tuple(self.at_end):
            each()


_here = threading.local()


def this_call() -> ThreadCall | None:
    """The call that this thread makes, when it is one of ours."""
    call: ThreadCall | None = getattr(_here, "call", None)
    return call


def this_work() -> object:
    """What this thread was started for; in a ThreadPoolExecutor, which does one thing after the other, what it does now."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  no other way leads to what a pool was given
    while frame is not None:
        if frame.f_globals.get("__name__") == ThreadPoolExecutor.__module__:
            found = frame.f_locals.get("self")
            if hasattr(found, "future"):
                return found
        frame = frame.f_back
    return threading.current_thread()


def is_over(work: object) -> bool:
    """Of what `this_work` tells, or of a coroutine's task: whether it can do nothing more."""
    if isinstance(work, threading.Thread):
        return not work.is_alive()
    ending = getattr(work, "future", work)  # what a pool was given, or a task
    return isinstance(ending, asyncio.Future | Future) and ending.done()


def carried(call: Callable[[], T]) -> T:
    """A future cannot carry StopIteration, and whoever waits for it would wait for ever."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError(f"the function raised StopIteration({error.value!r})") from error


def sheltered(work: Callable[[], T], on_stop: OnStop = None) -> T:
    """Do what must not be torn, or leave something open: a thread that is asked to stop meanwhile hears of it afterwards.

    `on_stop` is called at once, from another thread, so that the work comes to its end early.
    """
    call = this_call()
    return work() if call is None else call.sheltered(work, on_stop)


def exposed(work: Callable[[], T]) -> T:
    """Within a shelter: what may be torn after all."""
    call = this_call()
    return work() if call is None else call.exposed(work)


class Caller(ABC):
    """Calls plain functions for coroutines, each in a thread. Whoever has a place has a thread that is there for the call."""

    async def acquire(self) -> None:  # noqa: B027  there may be a place for everyone
        """Wait for a place."""

    def release(self) -> None:  # noqa: B027  as above
        """Give it back."""

    @abstractmethod
    async def call(self, function: Callable[[], T]) -> T:
        """The function's result. When this is cancelled, the function's end is waited for: it may still do things."""


class LoopThreads(Caller):
    """Those of the loop itself: few, and shared with whatever else the program does."""

    async def call(self, function: Callable[[], T]) -> T:
        thread_call = ThreadCall()
        ending = asyncio.ensure_future(asyncio.to_thread(thread_call.run, function))
        return await _outlasted(ending, thread_call)


class Places(Caller):
    """At most `limit` threads, started when they are needed; who comes then waits for a place, and not in a queue of calls."""

    def __init__(self, limit: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=limit, thread_name_prefix="holdfast-call")
        self._free = asyncio.Semaphore(limit)

    async def acquire(self) -> None:
        await self._free.acquire()

    def release(self) -> None:
        self._free.release()

    async def call(self, function: Callable[[], T]) -> T:
        return await _run(self._pool, ThreadCall(), function)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Crowd(Caller):
    """For functions that may wait for each other: with a fixed number of threads, those that have one could all wait for one that
    has none. So what is called from such a function has a thread at once; and when none ends for a moment, one more begins.
    """

    def __init__(self, limit: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=_MOST_THREADS, thread_name_prefix="holdfast-crowd")
        self._free = asyncio.Semaphore(limit)
        self._moves = 0  # how often one has ended, or one more has begun

    async def call(self, function: Callable[[], T]) -> T:
        has_place = not _in_crowd.get() and await self._entered()
        outer = _in_crowd.set(True)
        try:
            return await _run(self._pool, ThreadCall(), function)
        finally:
            _in_crowd.reset(outer)
            self._moves += 1
            if has_place:
                self._free.release()

    async def _entered(self) -> bool:
        """Whether it has a place; else it is one more."""
        while True:
            seen = self._moves
            try:
                async with patience(_STANDSTILL):
                    return await self._free.acquire()
            except TimeoutError:
                if self._moves == seen:
                    self._moves += 1
                    return False

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Threads:
    """At most `limit` threads for tasks, started when they are needed; `beside` are those for what tasks call."""

    def __init__(self, limit: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=limit, thread_name_prefix="holdfast-task")
        self.beside = Places(limit * CALLS_BESIDE)

    async def run(self, thread_call: ThreadCall, call: Callable[[], T]) -> T:
        """The function's result. When this is cancelled the thread is asked to stop, and waited for: it may still do things."""
        return await _run(self._pool, thread_call, call)

    def close(self) -> None:
        """No further calls; those that run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.beside.close()


async def _run(pool: ThreadPoolExecutor, thread_call: ThreadCall, call: Callable[[], T]) -> T:
    context = contextvars.copy_context()
    ending = asyncio.get_running_loop().run_in_executor(pool, context.run, thread_call.run, call)
    return await _outlasted(ending, thread_call)


async def _outlasted(ending: asyncio.Future[T], thread_call: ThreadCall) -> T:
    ending.add_done_callback(lambda _: thread_call.ended())
    try:
        return await asyncio.shield(ending)
    except asyncio.CancelledError:
        thread_call.stop()
        await outlast(ending)
        raise
