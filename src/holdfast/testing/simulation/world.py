"""The World of one simulated process: virtual time, a skewed wall clock, seeded chance, threads as callbacks."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.kernel.world import Body, Flag, LoopTimers, Pause, Take
from holdfast.testing.simulation.loop import SeededLoop
from holdfast.testing.simulation.process import Process


class Host:
    """The machine that holds the SQLite file. Its clock is the database's; a fault may step it."""

    def __init__(self, loop: SeededLoop, epoch: float) -> None:
        self._loop = loop
        self._epoch = epoch
        self.stepped = 0.0

    def now(self) -> float:
        return self._epoch + self._loop.time() + self.stepped


class Mailbox:
    """Items for one simulated thread."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.waiting: Callable[[], None] | None = None
        self.longest = 0

    def put(self, item: Any, /) -> None:
        self.items.append(item)
        self.longest = max(self.longest, len(self.items))
        if self.waiting is not None:
            wake, self.waiting = self.waiting, None
            wake()

    def empty(self) -> list[Any]:
        items, self.items = self.items, []
        return items


class Thread:
    """Drives a thread's body on the loop: each wait of it is a point where the seed may choose another."""

    def __init__(self, process: Process, body: Body) -> None:
        self._process, self._body = process, body
        self._loop = process.loop
        self._context = contextvars.copy_context()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._box: Mailbox | None = None
        self._timer: asyncio.TimerHandle | None = None
        process.bodies.append(body)
        self._soon(None)

    def alive(self) -> bool:
        return not self._ended.done()

    async def ended(self) -> None:
        await asyncio.shield(self._ended)

    def _soon(self, box: Mailbox | None) -> None:
        self._loop.call_soon(self._step, box, context=self._context)

    def _step(self, box: Mailbox | None) -> None:
        try:
            wait = self._body.send(None if box is None else box.empty())
        except StopIteration:
            self._ended.set_result(None)
            return
        except BaseException:
            if self._process.alive:
                raise  # the loop records it: a thread of ours must not end by an exception
            return
        match wait:
            case Take(mailbox=Mailbox() as mailbox, timeout=timeout):
                self._take(mailbox, timeout)
            case Pause(seconds=seconds):
                self._loop.call_later(seconds, self._step, None, context=self._context)
            case _:
                raise AssertionError(f"a thread's body yielded {wait!r}")

    def _take(self, box: Mailbox, timeout: float | None) -> None:
        if box.items or timeout == 0:
            self._soon(box)
            return
        box.waiting = self._wake
        self._box = box
        if timeout is not None:
            self._timer = self._loop.call_later(timeout, self._late, box, context=self._context)

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._soon(self._box)

    def _late(self, box: Mailbox) -> None:
        self._timer = None
        box.waiting = None
        self._step(box)


class Beside:
    """A coroutine that has a loop of its own in production, as a task of the one loop there is."""

    def __init__(self, process: Process, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loop = process.loop
        self._task = process.start(main(), name)

    def post(self, call: Callable[[], object], /) -> None:
        self._loop.call_soon(call)

    async def ended(self) -> None:
        await asyncio.shield(self._task)


class SimulatedWorld(LoopTimers):
    """What the kernel asks, answered for one process."""

    def __init__(self, process: Process, host: Host, seed: str) -> None:
        self._process, self._host = process, host
        self._loop = process.loop
        self._random = random.Random(f"{seed}:{process.name}")
        self.mailboxes: list[Mailbox] = []

    def now(self) -> float:
        return self._host.now() + self._process.node.skew

    def host_now(self) -> float:
        return self._host.now()

    def monotonic(self) -> float:
        return self._loop.time()

    def pause(self, seconds: float | None, flag: Flag | None, /) -> bool:
        raise AssertionError(
            "A plain function wants to stand still; only coroutines can wait in a simulation"
        )

    def random(self) -> float:
        return self._random.random()

    def random_bytes(self, count: int, /) -> bytes:
        return self._random.randbytes(count)

    def mailbox(self) -> Mailbox:
        box = Mailbox()
        self.mailboxes.append(box)
        return box

    def start_thread(self, name: str, body: Body, /) -> Thread:
        return Thread(self._process, body)

    def start_beside(self, name: str, main: Callable[[], Coroutine[Any, Any, None]], /) -> Beside:
        return Beside(self._process, name, main)

    def owns(self, close: Callable[[], None], /) -> Callable[[], None]:
        return self._process.owns(close)
