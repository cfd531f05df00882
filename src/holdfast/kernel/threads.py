"""Threads for plain functions: each call gets one, carries the caller's context, and can be asked to stop."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.kernel.spawn import outlast

T = TypeVar("T")


class Stopped(BaseException):
    """Raised inside a thread that was asked to stop. Not an Exception: `except Exception` must not swallow it."""


class ThreadCall:
    """One call in a thread. `stop` raises Stopped in it at its next line of Python; C code is not interrupted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ident: int | None = None
        self._over = False
        self._asked = False

    @property
    def is_running(self) -> bool:
        return self._ident is not None and not self._over

    def run(self, call: Callable[[], T]) -> T:
        with self._lock:
            if self._asked:
                raise Stopped
            self._ident = threading.get_ident()
        try:
            return call()
        except StopIteration as error:  # a future cannot carry it, and whoever waits would wait for ever
            raise RuntimeError(f"the function raised StopIteration({error.value!r})") from error
        finally:
            with self._lock:
                self._over = True

    def stop(self) -> None:
        with self._lock:
            self._asked = True
            if self._ident is not None and not self._over:
                ident, kind = ctypes.c_ulong(self._ident), ctypes.py_object(Stopped)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, kind)


class Threads:
    """At most `limit` threads, started when they are needed."""

    def __init__(self, limit: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=limit, thread_name_prefix="holdfast-task")

    async def run(self, thread_call: ThreadCall, call: Callable[[], T]) -> T:
        """The function's result. When this is cancelled the thread is asked to stop, and waited for: it may still do things."""
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        ending = loop.run_in_executor(self._pool, context.run, thread_call.run, call)
        return await _outlasted(ending, thread_call)

    def close(self) -> None:
        """No further calls; those that run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)


async def call_stoppable(call: Callable[[], T]) -> T:
    """The same for one call, on a thread of the loop's own."""
    thread_call = ThreadCall()
    return await _outlasted(asyncio.ensure_future(asyncio.to_thread(thread_call.run, call)), thread_call)


async def _outlasted(ending: asyncio.Future[T], thread_call: ThreadCall) -> T:
    try:
        return await asyncio.shield(ending)
    except asyncio.CancelledError:
        thread_call.stop()
        await outlast(ending)
        raise
