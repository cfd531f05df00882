"""A process that runs one worker: until a signal, until there is no work, or until it has done its share."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec

from holdfast.events.stillness import Stillness
from holdfast.jobs.service import GRACE, LEASE, WorkerService
from holdfast.jobs.worker import Worker
from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.processes import exit_now, unless_ended
from holdfast.kernel.signals import on_signals
from holdfast.kernel.spawn import end, one_over, spawn, start
from holdfast.kernel.telemetry import note
from holdfast.kernel.watchdog import Watchdog
from holdfast.observe.output import last_words
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.runtime.port import has_metrics, served, telling

EXIT_STUCK = 70  # a run could not be stopped: the process ended itself
EXIT_SHARE_DONE = 75  # between a child and its supervisor: it has done its share, and there may be more
EXIT_SECOND_SIGNAL = 130
_MARGIN = 5.0  # seconds beyond the grace: a loop that stands still then keeps the process from leaving
_LONGEST = 11.0  # seconds beyond the grace: whoever has not left then, though its loop turns, never will
_LOOKS = 0.1  # seconds between looks whether events are on their way
_BEHIND = 2.0  # seconds for threads that tasks have left behind, also when the grace is over


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    queues: dict[str, int]
    name: str | None = None
    lease: float = LEASE
    grace: float = GRACE
    burst: bool = False  # leave when there is nothing to do
    max_tasks: int | None = None  # leave after so many runs
    probe: str | None = None  # where probes and metrics are served: host:port
    counts: bool = False  # its supervisor serves them
    watchdog: float | None = None  # seconds for which its event loop may stand still
    supervised: bool = False  # someone starts the next process, and is told why this one left


async def run_worker(hf: Holdfast, options: WorkerOptions) -> int:
    """Run until the end; returns the exit code. A second signal does not wait."""
    leaving = _Leaving(options.grace)
    forget = on_signals(
        lambda number: _leave(number, leaving),
        again=_leave_at_once,
        patience=options.grace + _MARGIN,
        stuck=lambda: _stuck("a task blocks the event loop, and the time to leave is over"),
    )
    try:
        async with _seen(hf, options), hf:
            service = hf.worker(options.queues, lease=options.lease, grace=options.grace, stuck=_stuck)
            service.name = options.name or service.name  # its supervisor has made one, and knows it by that
            if await _started(service, leaving):
                _watch(hf, service, options, leaving)
                gc.freeze()  # what is here now stays: looking through it again and again takes a twentieth of the time
                gc.set_threshold(20_000)
            code = await leaving.wait()
            try:
                await service.stop()
            finally:
                if await service.let_go():  # at the very end: from now on another may run it
                    exit_now(code)
    finally:
        forget()
    unless_ended(max(_BEHIND, leaving.until - monotonic()), partial(_end_threads, code))
    return code


@asynccontextmanager
async def _seen(hf: Holdfast, options: WorkerOptions) -> AsyncGenerator[None, None]:
    """Probes are answered before the database is: so they can say that it is not there."""
    async with AsyncExitStack() as stack:
        if options.watchdog is not None:
            why = f"the event loop has stood still for {options.watchdog:g} s"
            stack.callback(Watchdog(options.watchdog, partial(_stuck, why)).stop)
        if options.probe is not None:
            await stack.enter_async_context(served(hf, options.probe))
        if options.counts or (options.probe is not None and has_metrics()):
            await stack.enter_async_context(telling(hf))
        yield


class _Leaving:
    """The first reason to leave, as an exit code. From then on its time is limited."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self.until = 0.0  # on the monotonic clock: the end of the grace
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def set(self, code: int = 0) -> None:
        if not self.code.done():
            self.code.set_result(code)
            self.until = monotonic() + self._grace
            unless_ended(
                self._grace + _LONGEST, partial(_stuck, "a resource or the store does not let it leave")
            )

    async def wait(self) -> int:
        return await self.code


async def _started(service: WorkerService, leaving: _Leaving) -> bool:
    """Whether it was. Who is asked to leave meanwhile does not wait for a resource that cannot be opened."""
    starting = start(service.start(), name="worker-start")
    await one_over(starting, leaving.code)
    if not starting.done():
        await end(starting)
    if starting.cancelled():
        return False
    starting.result()
    return True


def _end_threads(code: int) -> None:
    """All its jobs are written or put back: what such a thread still does for one, another worker does again."""
    last_words("threads that tasks have started do not end: they end with this process")
    exit_now(code)


def _leave(number: signal.Signals, leaving: _Leaving) -> None:
    leaving.set()
    note("worker.leaving", signal=number.name)


def _leave_at_once(number: signal.Signals) -> None:
    """On the thread that hears signals: the loop may stand still."""
    last_words(f"{number.name} again: leaving at once. Leases will end by themselves.")
    exit_now(EXIT_SECOND_SIGNAL)


def _watch(hf: Holdfast, service: WorkerService, options: WorkerOptions, leaving: _Leaving) -> None:
    worker = service.worker
    assert worker is not None
    if options.burst:
        worker.on_idle = partial(_leave_when_still, Stillness(hf.store, inside(hf).bus), worker, leaving)
    if options.max_tasks is not None:
        code = EXIT_SHARE_DONE if options.supervised else 0
        worker.leave_after(options.max_tasks, partial(leaving.set, code))


def _leave_when_still(stillness: Stillness, worker: Worker, leaving: _Leaving) -> None:
    """There is no job. An event that is on its way becomes one; until then it is looked again and again."""

    async def look() -> None:
        if await stillness.is_reached():
            leaving.set()
        else:
            await sleep(_LOOKS)
            worker.look()

    spawn(look(), name="burst")


def _stuck(why: str) -> None:
    """On another thread: the loop may stand still."""
    last_words(f"leaving at once: {why}")
    exit_now(EXIT_STUCK)


def tell_exit(exit_: SystemExit) -> None:
    note("task.exited", code=exit_.code)
