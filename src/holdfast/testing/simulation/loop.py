"""An asyncio loop whose clock jumps to the next timer and whose next callback is chosen by a seed."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import random
from array import array
from contextvars import Context, ContextVar
from typing import Any, Protocol

_TOO_MANY = 100_000  # steps of one moment


class Deadlock(Exception):
    """Nothing is ready and no timer is set: a liveness bug, which would hang in reality."""


class Gate(Protocol):
    """Decides about the callbacks of one process."""

    number: int

    def admits(self, handle: asyncio.Handle) -> bool:
        """Whether it may run now. A handle that may not is kept by the gate: dropped for ever, or until it resumes."""

    def keep(self, task: asyncio.Task[Any]) -> None:
        """A task of this process began. Without a reference the collector would end a killed one, `finally` and all."""


# Whose code is running: set in the context of everything a simulated process starts.
GATE: ContextVar[Gate | None] = ContextVar("holdfast_simulated_process", default=None)


class SeededLoop(asyncio.BaseEventLoop):
    """Runs one callback at a time. The same seed and program give the same choices, and so the same trace."""

    _ready: Any  # asyncio's own queues, which this loop orders anew
    _scheduled: Any
    _stopping: bool

    def __init__(self, seed: str, *, fifo_after: int | None = None) -> None:
        super().__init__()
        self.steps = 0
        self.crashes: list[str] = []  # exceptions that reached the loop: no code of ours may let one out
        self._moment = 0.0
        self._steps_before = 0  # this moment
        self._draw = random.Random(seed).random
        self._fifo_after = fifo_after
        self._trace = array("q")

    def time(self) -> float:
        return self._moment

    def advance(self, seconds: float) -> None:
        """Let time pass while nobody runs: the machine that everyone waits for is slow."""
        self._moment += seconds

    def trace_hash(self) -> str:
        return hashlib.blake2b(self._trace.tobytes(), digest_size=8).hexdigest()

    def _run_once(self) -> None:
        """Run until someone stops the loop, one callback after the other."""
        ready = self._ready
        while not self._stopping:
            self._wake_due()
            if not ready:
                continue
            if self.steps - self._steps_before > _TOO_MANY:
                raise Deadlock(f"at {self._moment:.3f} s it turns in circles")
            count = len(ready)
            chosen = 0
            if count > 1 and (self._fifo_after is None or self.steps < self._fifo_after):
                chosen = int(self._draw() * count)
            handle = ready[chosen]
            del ready[chosen]
            if handle._cancelled:  # noqa: SLF001  the loop owns its handles
                continue
            gate: Gate | None = handle._context.get(GATE)  # noqa: SLF001
            if gate is not None and not gate.admits(handle):
                continue
            self.steps += 1
            self._trace.append(chosen << 8 | (gate.number if gate is not None else 0))
            handle._run()  # noqa: SLF001

    def _wake_due(self) -> None:
        """Move timers that are due to the ready; when nothing is ready, jump to the next timer first."""
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:  # noqa: SLF001
            heapq.heappop(scheduled)._scheduled = False  # noqa: SLF001
        if not ready:
            if not scheduled:
                raise Deadlock(f"at {self._moment:.3f} s nothing is ready and no timer is set")
            self._moment = max(self._moment, scheduled[0]._when)  # noqa: SLF001
            self._steps_before = self.steps
        while scheduled and scheduled[0]._when <= self._moment:  # noqa: SLF001
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # noqa: SLF001
            if not handle._cancelled:  # noqa: SLF001
                ready.append(handle)

    def create_task(
        self, coro: Any, *, name: Any = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        gate = GATE.get() if context is None else context.get(GATE)
        if gate is not None:
            gate.keep(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        # A task that nobody awaited any more is told when the collector finds it: not at a time that can be repeated.
        if "handle" in context:
            self.crashes.append(f"{context['message']}: {context.get('exception')!r}")

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        raise AssertionError(
            f"{func} wants a real thread; start it through kernel.spawn, so that the seed decides"
        )

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when they come up."""

    def _process_events(self, event_list: Any) -> None:
        """There is no I/O."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""


def requeue(loop: asyncio.AbstractEventLoop, handle: asyncio.Handle) -> None:
    """Make a handle that a gate kept ready again."""
    assert isinstance(loop, SeededLoop)
    loop._ready.append(handle)  # noqa: SLF001
