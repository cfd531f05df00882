"""Middleware: code around every run, and hooks for what happens to jobs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.kernel.spawn import is_cancelled
from holdfast.kernel.telemetry import note

Next = Callable[[], Awaitable[Any]]
HOOK_LIMIT = 10.0  # seconds; what a hook does beyond that is given up
HOOKS = (
    "on_enqueued",
    "on_started",
    "on_succeeded",
    "on_failed",
    "on_retried",
    "on_dead",
    "on_unknown",
    "on_cancelled",
    "on_put_off",
    "on_lease_lost",
)


class Middleware:
    """Subclass it, override what you need, and add it with `hf.use(…)`. Methods may be `async def` or `def`.

    `run` stands around every run of a task and must return what `call_next()` returns, or something instead of it. A
    hook that fails is noted and changes nothing: only `run` decides how a job ends.
    """

    async def run(self, job: Any, call_next: Next) -> Any:  # noqa: ARG002
        """Around each run of a task; the first that was added is the outermost."""
        return await call_next()

    def on_enqueued(self, job: Any) -> Any:
        """A job was stored, or will be when the caller's transaction commits; `job` is the NewJob."""

    def on_started(self, job: Any) -> Any:
        """A run begins. It ends with one of the others; one that is stopped because the worker leaves, with none."""

    def on_succeeded(self, job: Any, result: Any) -> Any: ...
    def on_failed(self, job: Any, error: BaseException) -> Any:
        """A run failed; `on_retried`, `on_dead` or `on_unknown` follows."""

    def on_retried(self, job: Any, error: BaseException, after: float) -> Any: ...
    def on_dead(self, job: Any, error: BaseException) -> Any: ...
    def on_unknown(self, job: Any, reason: str) -> Any:
        """Nobody knows whether an effect of it was done: a person must say."""

    def on_cancelled(self, job: Any, reason: str) -> Any:
        """It is cancelled: by itself, by someone, or because its time is over. Also when it never began."""

    def on_put_off(self, job: Any, reason: str, after: float | None) -> Any:
        """It goes back without having failed or ended, for `after` seconds; None: until its guard lets it go.

        It has snoozed, its lock is held, or a guard refused it: before its run began, or a call in it. No attempt is charged.
        """

    def on_lease_lost(self, job: Any) -> Any:
        """Someone else may run this job now; what this run does is refused."""


class Hooks:
    """All middleware as one. What nobody has overridden costs nothing."""

    def __init__(self) -> None:
        self._around: list[Middleware] = []
        self._listeners: dict[str, list[Callable[..., Any]]] = {name: [] for name in HOOKS}

    def use(self, middleware: Middleware) -> None:
        if not isinstance(middleware, Middleware):
            raise UsageError(
                f"hf.use takes an object of a subclass of Middleware, such as Timing(); not {show(middleware)}."
            )
        if type(middleware).run is not Middleware.run:
            self._around.append(middleware)
        for name in HOOKS:
            if getattr(type(middleware), name) is not getattr(Middleware, name):
                self._listeners[name].append(getattr(middleware, name))

    def heard(self, name: str) -> bool:
        return bool(self._listeners[name])

    async def tell(self, name: str, *details: Any) -> None:
        for listener in self._listeners[name]:
            try:
                async with timeout(HOOK_LIMIT):
                    answer = listener(*details)
                    if inspect.isawaitable(answer):
                        await answer
            except asyncio.CancelledError:
                if is_cancelled():  # from outside, and not by the hook itself
                    raise
                note("hook.failed", hook=name, error="CancelledError")
            except Exception as error:  # noqa: BLE001  who listens must not change what happens
                note("hook.failed", hook=name, error=type(error).__name__)

    @property
    def wraps(self) -> bool:
        return bool(self._around)

    async def run(self, job: Any, body: Next) -> Any:
        return await self._wrapped(0, job, body)

    async def _wrapped(self, place: int, job: Any, body: Next) -> Any:
        if place == len(self._around):
            return await body()

        async def call_next() -> Any:
            return await self._wrapped(place + 1, job, body)

        answer: Any = self._around[place].run(job, call_next)
        return await answer if inspect.isawaitable(answer) else answer
