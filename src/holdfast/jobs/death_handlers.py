"""Handlers of deaths: functions `(job, tx)`, async or plain; a plain one runs in a thread, and its `tx` is one of sync code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from holdfast.jobs.blocking import BlockingTx
from holdfast.jobs.job import Job, attempt_of
from holdfast.kernel.awaits import is_async
from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.show import show
from holdfast.kernel.threads import Places
from holdfast.store.ports import Tx

OnDead = Callable[[Job, Tx], Awaitable[Any]]
AnyOnDead: TypeAlias = OnDead | Callable[[Job, BlockingTx], object]
_AT_ONCE = 8  # plain ones, on each event loop
_threads = PerLoop(lambda: Places(_AT_ONCE))


def handler_of(function: Any) -> OnDead:
    """What is awaited, whichever kind it is."""
    if (
        not callable(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise UsageError(f"An on_dead handler is a function (job, tx), async or not; not {show(function)}.")
    handler: OnDead = function if is_async(function) else _in_thread(function)
    return handler


def _in_thread(function: Callable[..., Any]) -> OnDead:
    @functools.wraps(function)
    async def called(job: Job, tx: Tx) -> None:
        result = await _called(functools.partial(function, job, BlockingTx(tx, attempt_of(job).portal)))
        if inspect.isawaitable(result):  # an async function behind a plain decorator
            await result

    return called


async def _called(call: Callable[[], Any]) -> Any:
    threads = _threads.get()
    await threads.acquire()
    try:
        return await threads.call(call)
    finally:
        threads.release()
