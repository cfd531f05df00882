"""Several worker processes: a dead one's claims are released at once, by token, and another takes its place."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence

from holdfast.kernel.clock import monotonic, sleep, timeout
from holdfast.kernel.ids import new_id
from holdfast.kernel.processes import Child, start_child
from holdfast.kernel.randomness import jittered
from holdfast.kernel.signals import on_signals
from holdfast.kernel.spawn import one_over, spawn
from holdfast.kernel.telemetry import note
from holdfast.observe.output import last_words
from holdfast.runtime.worker_process import EXIT_SECOND_SIGNAL, EXIT_SHARE_DONE

_SHORT_LIFE = 5.0  # seconds; whoever dies sooner is started again after a growing pause
_LONGEST_PAUSE = 30.0
_KILL_AFTER = 12.0  # seconds beyond the grace: a store that does not answer takes some
_TRIES = 5  # of putting back what a dead child held
_LAST_LOOK = 5.0  # seconds to find, while we leave, what a child still held
_NOT_STARTED = 71  # as the exit code of a child that never was
SUPERVISOR = "HOLDFAST_SUPERVISOR"  # in a child's environment: the pid of who started it

Rescue = Callable[[str], Awaitable[Sequence[object]]]


class Supervisor:
    """`command` makes the command line of a worker from its name; `rescue` puts back what a dead one held."""

    def __init__(
        self,
        command: Callable[[str], list[str]],
        rescue: Rescue,
        *,
        count: int,
        grace: float,
        burst: bool,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command, self._rescue, self._count = command, rescue, count
        self._grace, self._burst = grace, burst
        self._environment = {SUPERVISOR: str(os.getpid()), **(environment or {})}  # beside our own
        self._leaving = asyncio.Event()
        self._at_once = False
        self._children: dict[str, Child] = {}

    async def run(self) -> int:
        """Until a signal, or until all children of a burst have left.

        Returns the highest exit code of the last child of each place: 0 when all have left in order, 128 and more when a
        signal ended one. Those that died and were replaced do not count. After a second signal it is that of any worker.
        """
        forget = on_signals(self._on_signal)
        places = [spawn(self._keep_one(), name=f"supervise:{place}") for place in range(self._count)]
        try:
            codes = await asyncio.gather(*places)
        finally:
            forget()
        return EXIT_SECOND_SIGNAL if self._at_once else max(codes, default=0)

    async def _keep_one(self) -> int:
        """One place: a child, and after its death the next."""
        pause = 0.0
        while True:
            name, began = f"worker-{new_id()}", monotonic()
            code = await self._live(name)
            died = await self._bury(name, code)
            if self._leaving.is_set() or (self._burst and code == 0 and not died):  # nothing is left to do
                return _exit_code(code) if died else 0
            short = died and monotonic() - began < _SHORT_LIFE
            pause = min(_LONGEST_PAUSE, max(0.2, pause * 2)) if short else 0.0
            await self._pause(jittered(pause))
            if self._leaving.is_set():
                return 0

    async def _live(self, name: str) -> int:
        try:
            child = await start_child(self._command(name), self._environment)
        except Exception as error:  # noqa: BLE001  no memory, no descriptors: there may be some later
            note("child.not_started", error=repr(error))
            return _NOT_STARTED
        self._children[name] = child
        reaper = spawn(self._end_in_time(child), name=f"reap:{child.pid}")
        try:
            return await child.ended()
        finally:
            reaper.cancel()
            del self._children[name]

    async def _end_in_time(self, child: Child) -> None:
        """After the signal to leave: ask, wait for the grace, then end it."""
        await self._leaving.wait()
        child.signal(signal.SIGTERM)
        await sleep(self._grace + _KILL_AFTER)
        child.signal(signal.SIGKILL)
        note("child.killed", process=child.pid, grace=self._grace)

    async def _bury(self, name: str, code: int) -> bool:
        """The process is dead and reaped: nobody works under its claims any more. Returns whether it died.

        Its exit code alone does not tell: a task may end the process with any, also with those of a worker that leaves.
        But who leaves holds nothing.
        """
        was_asked = self._leaving.is_set() and code == -signal.SIGTERM  # before it listened
        seems_well = code in (0, EXIT_SHARE_DONE) or was_asked
        if not seems_well:
            note("child.died", worker=name, how=_how(code))
        rescued = await self._put_back_in_time(name)
        if rescued and seems_well:
            note("child.died", worker=name, how=f"{_how(code)}, in the middle of its work")
        return bool(rescued) or not seems_well

    async def _put_back_in_time(self, name: str) -> Sequence[object]:
        """A store that does not answer must not keep us when we leave: what a child held comes back when its leases end."""
        work = spawn(self._put_back(name), name=f"put-back:{name}")
        leaving = spawn(self._leaving.wait(), name=f"leaving:{name}")
        await one_over(work, leaving)
        leaving.cancel()
        try:
            async with timeout(_LAST_LOOK):
                return await work
        except TimeoutError:
            note("child.jobs_left", worker=name)
            return ()

    async def _put_back(self, name: str) -> Sequence[object]:
        """What it held. When that fails too often, it comes back when its leases end."""
        for _ in range(_TRIES):
            try:
                rescued = await self._rescue(name)
            except (Exception, SystemExit) as error:  # noqa: BLE001  handlers of the program run there; others need us
                note("child.jobs_kept", worker=name, error=repr(error))
                await sleep(jittered(1.0))
            else:
                if rescued:
                    note("child.jobs_put_back", worker=name, number=len(rescued))
                return rescued
        return ()

    async def _pause(self, seconds: float) -> None:
        try:
            async with timeout(seconds):
                await self._leaving.wait()
        except TimeoutError:
            return

    def _on_signal(self, number: signal.Signals) -> None:
        if self._leaving.is_set():
            self._at_once = True
            for child in self._children.values():
                child.signal(signal.SIGKILL)
            last_words(f"{number.name} again: all processes are ended at once")
            return
        self._leaving.set()
        note("supervisor.leaving", signal=number.name, processes=len(self._children))


def _exit_code(code: int) -> int:
    """Of a child that died, as that of a program. A false sign of success is none."""
    if code < 0:
        return 128 - code
    return 1 if code in (0, EXIT_SHARE_DONE) else code


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # real-time signals have no names
        return f"signal {-code}"
