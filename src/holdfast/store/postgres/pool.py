"""Connections for many callers. One is kept for those who must not wait: renewing and finishing."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from holdfast.kernel.clock import patience
from holdfast.kernel.errors import NotOpen, StoreUnavailable, UsageError
from holdfast.store.forked import FORKED
from holdfast.store.ports import PoolUse

_GOODBYE = 1.0  # seconds to close all connections politely

# Connections of the process that forked this one. Kept, because the end of one would say good-bye on the parent's socket.
_INHERITED: list[Any] = []


class Pool:
    """At most `size` connections, opened when needed. Ordinary callers never take the last one."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], *, size: int, wait: float) -> None:
        self._connect, self._size, self._wait = connect, size, wait
        self._open = self.is_forked = False
        self._process = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._time = 0  # which time this is: what was begun in an earlier one does not come into this
        self._used = 0
        self._idle: list[Any] = []
        self._lent: set[Any] = set()
        self._soiled: set[Any] = set()  # who gets one of these cleans it; never more than come for one
        self._coming = 0  # who waited and was let in, and has not taken a connection yet
        self._waiting: dict[bool, deque[asyncio.Future[None]]] = {True: deque(), False: deque()}

    @property
    def is_open(self) -> bool:
        return self._open

    def check(self) -> None:
        """Raise unless this is the process and the event loop that the connections belong to."""
        if not self._open:
            raise NotOpen(FORKED) if self.is_forked else _closed()
        self.check_process()
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "The store was opened in another event loop, and its connections belong to that one. "
                "Open a store in each event loop."
            )

    def check_process(self) -> None:
        if self.is_inherited:
            raise NotOpen(FORKED)

    def check_end(self) -> None:
        """Raise unless it may be stopped here."""
        if self._open and not (self.is_inherited or self.is_forsaken):
            self.check()

    @property
    def is_inherited(self) -> bool:
        """Whether the connections are those of the process that forked this one."""
        return self._process not in (0, os.getpid())

    @property
    def is_forsaken(self) -> bool:
        """Whether it was not stopped before its loop was closed: nobody can say good-bye on that one."""
        return self._open and not self.is_inherited and self._loop is not None and self._loop.is_closed()

    def keep_inherited(self, *things: object) -> None:
        """For ever: what belongs to the parent must not be ended here."""
        _INHERITED.append(things)

    def start(self) -> None:
        if self._open:
            self.check()
        here = asyncio.get_running_loop()
        if here is not self._loop:
            self._forget()  # what is still in use on the loop of the last time is closed when it comes back
        self._open, self._process, self._loop = True, os.getpid(), here

    def _forget(self) -> None:
        if self.is_inherited:
            self.keep_inherited(self._idle, self._lent, self._waiting)
        self._idle, self._lent, self._waiting = [], set(), {True: deque(), False: deque()}
        self._soiled, self._coming = set(), 0
        self._open, self._process, self._used = False, 0, 0
        self._time += 1

    async def stop(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        if self.is_inherited or self.is_forsaken:
            self._forget()
            return
        self.check_end()
        self._open = False
        for waiters in self._waiting.values():
            while waiters:
                _fail(waiters.popleft(), _closed())
        await self._say_goodbye()

    async def _say_goodbye(self) -> None:
        """A server that does not answer is not waited for: the process may be asked to leave just because of that."""
        idle, self._idle = self._idle, []
        self._soiled.clear()
        try:
            with suppress(OSError, TimeoutError):
                async with patience(_GOODBYE):
                    while idle:
                        await idle[-1].close()
                        idle.pop()
        finally:
            for connection in idle:
                connection.terminate()

    async def acquire(self, *, urgent: bool = False) -> Any:
        self.check()
        time = self._time
        await self._enter(urgent=urgent)
        try:
            connection = self._idle_one() or await self._connect()
        except BaseException:
            self._leave(time)
            raise
        if time != self._time:
            _end(connection)
            raise _closed()
        self._lent.add(connection)
        return connection

    def cleans(self, connection: Any) -> bool:
        """Whether who has it must clean it first of what the one before has left; asked once."""
        is_soiled = connection in self._soiled
        self._soiled.discard(connection)
        return is_soiled

    @property
    def is_awaited(self) -> bool:
        """Whether the next connection that is given back goes to somebody at once."""
        return any(
            self._used <= self._room(urgent=urgent) and any(not waiter.done() for waiter in waiters)
            for urgent, waiters in self._waiting.items()
        )

    def use(self) -> PoolUse:
        waiting = sum(not each.done() for waiters in self._waiting.values() for each in waiters)
        return PoolUse(self._used, self._size, waiting)

    @property
    def is_in_use(self) -> bool:
        """Whether somebody has a connection."""
        return bool(self._lent)

    def _idle_one(self) -> Any | None:
        """One that is soiled first: it may have locks."""
        if self._soiled:
            self._idle.sort(key=lambda each: each in self._soiled)
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._soiled.discard(connection)
        return None

    def release(self, connection: Any, *, broken: bool = False, soiled: bool = False) -> None:
        """`soiled`: whoever waits for it cleans it. It is ended when nobody does after all."""
        if self.is_inherited:
            _INHERITED.append(connection)
        elif connection not in self._lent:
            _end(connection)  # it comes from the loop of an earlier time
            return
        elif broken or not self._open:
            _end(connection)
        elif not connection.is_closed():
            self._idle.append(connection)
            if soiled:
                self._soiled.add(connection)
        self._lent.discard(connection)
        self._leave(self._time)

    async def _enter(self, *, urgent: bool) -> None:
        if self._used < self._room(urgent=urgent) and not self._waiting[urgent]:
            self._used += 1
            return
        time, waiter = self._time, asyncio.get_running_loop().create_future()
        self._waiting[urgent].append(waiter)
        try:
            async with patience(self._wait):
                await waiter
            self._came(time)
        except BaseException as error:
            self._give_up(waiter, time, urgent=urgent)
            if isinstance(error, TimeoutError):
                raise self._exhausted() from None
            raise

    def _give_up(self, waiter: asyncio.Future[None], time: int, *, urgent: bool) -> None:
        if waiter in self._waiting[urgent]:
            self._waiting[urgent].remove(waiter)
        elif not waiter.cancelled() and waiter.exception() is None:
            self._came(time)
            self._leave(time)  # we were let in just as we stopped waiting: the next one goes instead

    def _exhausted(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"All {self._size} connections of the pool were in use for {self._wait:g} s. Nothing was stored. "
            "Hold transactions for less long, or raise pool_size in the store's URL."
        )

    @property
    def has_room(self) -> bool:
        """Whether an ordinary caller would get a connection at once."""
        return self._used < self._room(urgent=False) and not self._waiting[False]

    def _room(self, *, urgent: bool) -> int:
        return self._size if urgent or self._size == 1 else self._size - 1

    def _came(self, time: int) -> None:
        if time == self._time:
            self._coming -= 1

    def _leave(self, time: int) -> None:
        """Give the place to who waits for it, those in a hurry first."""
        if time != self._time:
            return
        self._used -= 1
        for urgent in (True, False):
            waiters = self._waiting[urgent]
            while waiters and self._used < self._room(urgent=urgent):
                waiter = waiters.popleft()
                if not waiter.done():
                    self._used += 1
                    self._coming += 1
                    waiter.set_result(None)
        if self._soiled:
            self._end_unwanted()

    def _end_unwanted(self) -> None:
        """What is soiled and nobody comes for."""
        for connection in [each for each in self._idle if each in self._soiled][self._coming :]:
            self._idle.remove(connection)
            self._soiled.discard(connection)
            _end(connection)


def _end(connection: Any) -> None:
    with suppress(RuntimeError):  # its loop is closed, and it with it
        connection.terminate()


def _fail(waiter: asyncio.Future[None], error: Exception) -> None:
    if not waiter.done():
        waiter.set_exception(error)


def _closed() -> NotOpen:
    return NotOpen("The store is not open. Use it inside `async with`, or call open() first.")
