"""The running job for tasks that are plain functions: each call waits for the worker's loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.jobs.backoff import Backoff
from holdfast.jobs.blocking import BlockingTx, Portal
from holdfast.jobs.calls import Call
from holdfast.jobs.effects import Manner
from holdfast.kernel.loops import BackCalls

if TYPE_CHECKING:
    from holdfast.jobs.job import Job


class BlockingJob:
    """`job.blocking`. The functions of its steps run on the thread that asks for them."""

    def __init__(self, job: Job, portal: Portal) -> None:
        self._job, self._portal = job, portal

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> None:
        self._portal.run(lambda: self._job.heartbeat(progress, note))

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry: Backoff | None = None,
        timeout: float | None = None,
    ) -> Any:
        """As `job.step`. A plain function cannot be interrupted: its timeout is noticed when it returns."""
        back = BackCalls()
        call = Call(function, args, retry=retry, limit=timeout, plain=back.call)
        return self._portal.run(lambda: self._job.do_step(name, call, branch=""), back)

    def effect(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry: Backoff | None = None,
        timeout: float | None = None,
        **manner: Any,
    ) -> Any:
        """As `job.effect`, with the same options."""
        back, how = BackCalls(), Manner.of(**manner)
        call = Call(function, args, retry=retry, limit=timeout, plain=back.call)
        return self._portal.run(lambda: self._job.do_effect(name, call, how, branch=""), back)

    @contextmanager
    def commit(self, result: Any = None) -> Generator[BlockingTx, None, None]:
        """As `job.commit`: `with job.blocking.commit() as tx:`; `tx` is also what `enqueue_sync` takes."""
        with self._portal.entered(self._job.commit(result)) as tx:
            yield tx

    def complete(self, *, tx: Any, result: Any = None) -> None:
        """As `job.complete`, with this thread's own connection or session."""
        inner = tx.inner if isinstance(tx, BlockingTx) else tx
        run = self._portal.run if inner is not tx else self._portal.run_here
        run(lambda: self._job.complete(tx=inner, result=result))
