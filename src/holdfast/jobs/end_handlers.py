"""Handlers of ends: functions `(job, tx)`, async or plain; a plain one runs in a thread, and its `tx` is one of sync code."""

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
from holdfast.store.states import State

OnEnd = Callable[[Job, Tx], Awaitable[Any]]
AnyOnEnd: TypeAlias = OnEnd | Callable[[Job, BlockingTx], object]
_AT_ONCE = 8  # plain ones, on each event loop
_threads = PerLoop(lambda: Places(_AT_ONCE))


class EndHandlers:
    """Those of a program, by the state that a job ends in and by the name of its task."""

    def __init__(self) -> None:
        self._by_state: dict[State, dict[str, list[OnEnd]]] = {
            State.DEAD: {}, State.UNKNOWN: {}, State.CANCELLED: {},
        }  # fmt: skip

    def add(self, state: State, task: str, function: AnyOnEnd) -> None:
        self._by_state[state].setdefault(task, []).append(_handler_of(function, state))

    def any_for(self, *states: State) -> bool:
        return any(self._by_state.get(state) for state in states)

    def of(self, state: State, names: list[str]) -> list[OnEnd]:
        found = self._by_state.get(state)
        return [handler for name in names for handler in found.get(name, ())] if found else []


def _handler_of(function: Any, state: State) -> OnEnd:
    """What is awaited, whichever kind it is."""
    if (
        not callable(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise UsageError(
            f"An on_{state} handler is a function (job, tx), async or not; not {show(function)}."
        )
    _check_parameters(function, state)
    handler: OnEnd = function if is_async(function) else _in_thread(function)
    return handler


def _check_parameters(function: Any, state: State) -> None:
    """Now, and not with the first end, when what it has to write would be lost."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of one that is written in C nobody knows
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise UsageError(
            f"An on_{state} handler is a function (job, tx), async or not; {show(function)} takes {signature}."
        ) from None


def _in_thread(function: Callable[..., Any]) -> OnEnd:
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
