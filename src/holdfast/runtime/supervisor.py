"""Several worker processes: a dead one's claims are released at once, by token, and another takes its place."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence

from holdfast.kernel.clock import monotonic, sleep, timeout
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.ids import new_id
from holdfast.kernel.processes import Child, start_child
from holdfast.kernel.randomness import jittered
from holdfast.kernel.signals import on_signals
from holdfast.kernel.spawn import spawn
from holdfast.runtime.worker_process import EXIT_SHARE_DONE, say

_SHORT_LIFE = 5.0  # seconds; whoever dies sooner is started again after a growing pause
_LONGEST_PAUSE = 30.0
_KILL_AFTER = 12.0  # seconds beyond the grace: a store that does not answer takes some
_NOT_STARTED = 71  # as the exit code of a child that never was
SUPERVISOR = "HOLDFAST_SUPERVISOR"  # in a child's environment: the pid of who started it

Rescue = Callable[[str], Awaitable[Sequence[object]]]


class Supervisor:
    """`command` makes the command line of a worker from its name; `rescue` puts back what a dead one held."""

    def __init__(
        self, command: Callable[[str], list[str]], rescue: Rescue, *, count: int, grace: float, burst: bool
    ) -> None:
        self._command, self._rescue, self._count = command, rescue, count
        self._grace, self._burst = grace, burst
        self._leaving = asyncio.Event()
        self._children: dict[str, Child] = {}

    async def run(self) -> int:
        """Until a signal, or until all children of a burst have left. Returns the worst exit code."""
        forget = on_signals(self._on_signal)
        places = [spawn(self._keep_one(), name=f"supervise:{place}") for place in range(self._count)]
        try:
            codes = await asyncio.gather(*places)
        finally:
            forget()
        return max(codes, default=0)

    async def _keep_one(self) -> int:
        """One place: a child, and after its death the next."""
        pause = 0.0
        while True:
            name, began = f"worker-{new_id()}", monotonic()
            code = await self._live(name)
            died = code not in (0, EXIT_SHARE_DONE)
            if died:
                await self._bury(name, code)
            if self._leaving.is_set() or (self._burst and code == 0):  # nothing is left to do
                return max(code, 0) if died else 0
            short = died and monotonic() - began < _SHORT_LIFE
            pause = min(_LONGEST_PAUSE, max(0.2, pause * 2)) if short else 0.0
            await self._pause(jittered(pause))
            if self._leaving.is_set():
                return 0

    async def _live(self, name: str) -> int:
        try:
            child = await start_child(self._command(name), {SUPERVISOR: str(os.getpid())})
        except OSError as error:  # no memory, no descriptors: there may be some later
            say(f"no process could be started: {error}")
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
        say(f"process {child.pid} did not leave in {self._grace:g} s and is ended")
        child.signal(signal.SIGKILL)

    async def _bury(self, name: str, code: int) -> None:
        """The process is dead and reaped: nobody works under its claims any more."""
        say(f"worker {name} died ({_how(code)})")
        for _ in range(5):
            try:
                rescued = await self._rescue(name)
            except HoldfastError as error:
                say(f"its jobs could not be put back yet: {error}")
                await sleep(jittered(1.0))
            else:
                if rescued:
                    say(f"{len(rescued)} of its jobs were put back")
                return

    async def _pause(self, seconds: float) -> None:
        try:
            async with timeout(seconds):
                await self._leaving.wait()
        except TimeoutError:
            return

    def _on_signal(self, number: signal.Signals) -> None:
        if self._leaving.is_set():
            say(f"{number.name} again: ending all processes at once")
            for child in self._children.values():
                child.signal(signal.SIGKILL)
            return
        say(f"{number.name}: {len(self._children)} processes are asked to leave")
        self._leaving.set()


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # real-time signals have no names
        return f"signal {-code}"
