"""A simulated operating-system process: it can be killed, paused and resumed, and its machine has a clock of its own."""

from __future__ import annotations

import asyncio
import contextvars
import warnings
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any

from holdfast.kernel import spawn, world
from holdfast.kernel.crashpoints import Crash
from holdfast.testing.simulation.loop import GATE, SeededLoop, requeue


class Killed(Crash):
    """Ends the stack of code that killed its own process; everything it could still reach is closed before."""


class Node:
    """A machine: its wall clock is off by `skew` seconds, and a fault may move it. It outlives its processes."""

    def __init__(self, name: str, skew: float) -> None:
        self.name = name
        self.skew = skew
        self.lives = 0
        self.process: Process | None = None


class Process:
    """One life of a node, from start to kill. Nothing of it runs after the kill, not even `finally`."""

    def __init__(self, loop: SeededLoop, node: Node, number: int) -> None:
        node.lives += 1
        node.process = self
        self.loop, self.node, self.number = loop, node, number
        self.name = f"{node.name}.{node.lives}"
        self.alive, self.paused = True, False
        self.draining = False
        self._kept: list[asyncio.Handle] = []  # parked while paused; a dead process's, for ever
        self._closers: dict[int, Callable[[], None]] = {}
        self._next_closer = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self.context = contextvars.copy_context()
        self.context.run(GATE.set, self)
        self._inhabited: AbstractContextManager[world.World] | None = None
        self.bodies: list[world.Body] = []  # of its threads

    def inhabit(self, its_world: world.World) -> None:
        """From now on its code asks this world for time, chance and threads."""
        self._inhabited = world.inhabit(its_world)
        self.context.run(self._inhabited.__enter__)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a coroutine in this process."""
        return self.loop.create_task(work, name=f"{self.name} {name}", context=self.context.copy())

    def keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)

    def admits(self, handle: asyncio.Handle) -> bool:
        if self.alive and not self.paused:
            return True
        self._kept.append(handle)
        return False

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        if self.paused and self.alive:
            self.paused = False
            kept, self._kept = self._kept, []
            for handle in kept:
                requeue(self.loop, handle)

    def owns(self, close: Callable[[], None]) -> Callable[[], None]:
        self._next_closer += 1
        number = self._next_closer
        self._closers[number] = close
        return lambda: self._closers.pop(number, None) and None

    def kill(self) -> None:
        """Never resume, and let the operating system close what it held: connections end without a commit."""
        if self.alive:
            self.alive = False
            while self._closers:
                self._closers.popitem()[1]()
            if self.node.process is self:
                self.node.process = None

    def bury(self) -> None:
        """After the simulation: end what hangs, so that the collector need not, and forget it."""
        self.kill()
        with warnings.catch_warnings():
            self.context.run(self._bury)

    def _bury(self) -> None:
        warnings.simplefilter("ignore", RuntimeWarning)  # a `finally` may begin what no loop will run
        for body in self.bodies:
            _end(body)
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
                _end(task.get_coro())
                spawn._tasks.discard(task)  # noqa: SLF001  it would be kept for ever
        self._tasks.clear()
        self._kept.clear()
        if self._inhabited is not None:
            self._inhabited.__exit__(None, None, None)


def _end(suspended: Any) -> None:
    """End a coroutine or generator; one that waits again on its way out is thrown out again.

    `close` would not do: it gives up on the outermost, and leaves the one that waits to the collector.
    """
    for _ in range(100):
        try:
            suspended.throw(Killed())
        except BaseException:  # noqa: BLE001  whatever it says, nobody is left to hear it
            return


def running() -> Process | None:
    """The process whose code this is."""
    process = GATE.get()
    assert process is None or isinstance(process, Process)
    return process
