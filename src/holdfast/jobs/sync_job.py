"""The running job for tasks that are plain functions: each call waits for the worker's loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.guards.backoff import Backoff
from holdfast.guards.guard import Guard, Keyed
from holdfast.jobs.blocking import BlockingTx, Portal
from holdfast.jobs.calls import Call, refuse_inside
from holdfast.jobs.doors import door_of
from holdfast.jobs.effects import Manner
from holdfast.jobs.story import Story
from holdfast.kernel.awaits import Block
from holdfast.kernel.errands import BackCalls

if TYPE_CHECKING:
    from holdfast.jobs.attempt import Attempt


class BlockingJob:
    """`job.blocking`. The functions of its steps run on the thread that asks for them."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    @property
    def _portal(self) -> Portal:
        return self._attempt.portal

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> None:
        self._portal.run(lambda: self._attempt.heartbeat(progress, note), instead="`await job.heartbeat(…)`")

    def story(self) -> Story:
        """As `job.story`."""
        return self._portal.run(self._attempt.story, instead="`await job.story()`")

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        guard: Guard[Any] | Keyed[Any] | None = None,
        retry: Backoff | None = None,
        timeout: float | None = None,
    ) -> Any:
        """As `job.step`. A plain function cannot be interrupted: its timeout is noticed when it returns."""
        return self._done(name, function, args, self._attempt.step, guard=guard, retry=retry, limit=timeout)

    def effect(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        guard: Guard[Any] | Keyed[Any] | None = None,
        retry: Backoff | None = None,
        timeout: float | None = None,
        **manner: Any,
    ) -> Any:
        """As `job.effect`, with the same options."""
        do = partial(self._attempt.effect, manner=Manner.of(**manner))
        return self._done(name, function, args, do, guard=guard, retry=retry, limit=timeout)

    def _done(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        do: Callable[..., Coroutine[Any, Any, Any]],
        *,
        guard: Guard[Any] | Keyed[Any] | None,
        **how: Any,
    ) -> Any:
        """On the worker's loop, and its function here."""
        portal = self._portal
        refuse_inside(name)
        back, work = BackCalls(), self._attempt.work_beside()
        call = Call(function, args, threads=back, door=door_of(guard), **how)
        return portal.run(
            lambda: do(name, call, branch=self._attempt.branch_of(work, name)),
            back,
            instead="`await job.step(…)`, or `await job.effect(…)`,",
        )

    def commit(self, result: Any = None) -> AbstractContextManager[BlockingTx]:
        """As `job.commit`: `with job.blocking.commit() as tx:`; `tx` is also what `enqueue_sync` takes."""
        block = Block("with")
        self._attempt.awaits.add(block, "job.blocking.commit", None)
        return self._portal.entered(
            self._attempt.commit(result, block), instead="`async with job.commit() as tx`"
        )

    def complete(self, *, tx: Any, result: Any = None) -> None:
        """As `job.complete`, with this thread's own connection or session."""
        inner = tx.inner if isinstance(tx, BlockingTx) else tx
        run = self._portal.run if inner is not tx else self._portal.run_here
        run(lambda: self._attempt.complete(inner, result))
