"""The slots of a worker's queues: what was claimed waits here, and runs as soon as one of its queue's slots is free.

Runs follow each other in one task until one of them waits for something; from then on that task is its own, and
another serves the queue. So a job that never waits costs no task, and one that does has one to itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial

from holdfast.jobs.executor import Executor
from holdfast.jobs.judge import Ending
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic
from holdfast.kernel.context import NO_CONTEXT, become
from holdfast.kernel.outcomes import Done
from holdfast.kernel.spawn import start
from holdfast.kernel.waits import is_clean

_TURN = 0.005  # seconds of runs one after another until whatever else the loop has to do gets its turn


class Slots:
    """`report` hears of each run that has ended; `admits` says of one that is to begin whether it may, and keeps it if not."""

    def __init__(
        self,
        numbers: Mapping[str, int],
        executor: Executor,
        report: Callable[[Run, Ending], None],
        admits: Callable[[Run], bool] = lambda _: True,
    ) -> None:
        self._numbers, self._executor, self._tell = dict(numbers), executor, report
        self._admits = admits
        self._waiting: dict[str, deque[Run]] = {queue: deque() for queue in numbers}
        self._busy: Counter[str] = Counter()
        self._moved: dict[str, float] = {}  # by queue: when a run was last begun
        self._serving: dict[str, asyncio.Task[None]] = {}  # by queue: what begins its runs
        # For every task: the one that starts it may be a job's, with its variables.
        self._clean = copy_context()
        self._clean.run(become, NO_CONTEXT)
        self._is_closed = False  # nothing more begins
        self._went_well = False  # the run that ended last

    def add(self, run: Run) -> None:
        """`begin` starts it when there is room."""
        self._waiting[run.claim.queue].append(run)

    def add_first(self, runs: Sequence[Run]) -> None:
        """They were at the head before, and keep their order."""
        for run in reversed(runs):
            self._waiting[run.claim.queue].appendleft(run)

    def begin(self) -> None:
        for queue in self._waiting:
            if queue not in self._serving and self._has_next(queue):
                self._moved[queue] = monotonic()
                task = start(self._serve(queue), name="worker-slots", context=self._clean.copy())
                self._serving[queue] = task
                # Not at the end of the task itself: one that is cancelled before its first step has no end.
                task.add_done_callback(partial(self._served, queue))

    def close(self) -> list[Run]:
        """Begin nothing more; returns what has not begun."""
        self._is_closed = True
        return [run for queue in self._waiting for run in self._let_go(queue)]

    def late(self, seconds: float) -> dict[str, list[Run]]:
        """What waits in queues where nothing has begun for so long; it is let go of."""
        now = monotonic()
        return {
            queue: self._let_go(queue)
            for queue, waiting in self._waiting.items()
            if waiting and now - self._moved.get(queue, 0.0) > seconds
        }

    def _let_go(self, queue: str) -> list[Run]:
        waiting = self._waiting[queue]
        gone = list(waiting)
        waiting.clear()
        return gone

    def _has_next(self, queue: str) -> bool:
        return bool(self._waiting[queue]) and self._busy[queue] < self._numbers[queue] and not self._is_closed

    async def _serve(self, queue: str) -> None:
        """Until a run waits, or leaves behind what the next must not find, or it is the turn of others."""
        task, until = self._serving[queue], monotonic() + _TURN
        while self._has_next(queue):
            run = self._waiting[queue].popleft()
            if self._admits(run):
                await self._run(run, task)
                if self._serving.get(queue) is not task or not self._is_as_new(task):
                    return
            if monotonic() > until:
                return

    def _is_as_new(self, task: asyncio.Task[None]) -> bool:
        """Whether the next run will find nothing of the last: neither its failure, nor a cancellation, nor its variables."""
        become(NO_CONTEXT)
        return self._went_well and not task.cancelling() and is_clean(self._clean)

    def _served(self, queue: str, task: asyncio.Task[None]) -> None:
        if self._serving.get(queue) is task:
            self._go_on(queue)

    async def _run(self, run: Run, task: asyncio.Task[None]) -> None:
        self._busy[run.claim.queue] += 1
        run.work = task
        task.set_name(run.claim.task)
        await self._executor.run(run, self._report, self._waits)

    def _waits(self, run: Run) -> None:
        """It keeps the task."""
        self._go_on(run.claim.queue)

    def _go_on(self, queue: str) -> None:
        del self._serving[queue]
        self.begin()

    def _report(self, run: Run, ending: Ending) -> None:
        self._busy[run.claim.queue] -= 1
        self._went_well = isinstance(ending, Done)
        self._tell(run, ending)
        self.begin()
