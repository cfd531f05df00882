"""The bulkhead: at most so many calls at a time, and a bounded line of those who wait, first come, first served."""

from __future__ import annotations

import math
from collections import deque
from types import TracebackType

from holdfast.guards.settings import Kept
from holdfast.guards.ways import IN_THREAD, ON_LOOP, Turn, Way, finished, refuse_on_loop
from holdfast.kernel.awaits import by_context, must_await
from holdfast.kernel.errors import BulkheadFull
from holdfast.kernel.loops import new_lock
from holdfast.kernel.names import check_int, check_name, check_seconds


class _Waiter:
    __slots__ = ("has_permit", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.has_permit = False  # handed over by whoever released it: nobody can step in between


class Bulkhead(metaclass=Kept):
    """`async with bulkhead:` or `with bulkhead:` around one call; raises BulkheadFull.

    At most `permits` are inside, at most `waiting` wait, and nobody waits longer than `wait` seconds (None: without end).
    """

    __slots__ = (
        "_free",
        "_lent_before",
        "_line",
        "_lock",
        "_name",
        "_permits",
        "_wait",
        "_waiting",
        "released",
        "settings",
    )

    def __init__(
        self, permits: int, *, waiting: int = 0, wait: float | None = None, name: str | None = None
    ) -> None:
        self._permits = self._free = check_int("permits", permits, 1, 1_000_000)
        self._waiting = check_int("waiting", waiting, 0, 1_000_000)
        self._wait = None if wait is None else check_seconds("wait", wait, 0.0, 86_400)
        self._name = name if name is None else check_name("bulkhead", name)
        self._line: deque[_Waiter] = deque()
        self._lent_before = (
            0  # permits that were out when this process was forked: here nobody may be left to give them back
        )
        self.released = 0  # permits that were given back, so far
        self._lock = new_lock()

    # --- permits ---

    @must_await("bulkhead.acquire", name=lambda args: args[0].name, to=by_context)
    async def acquire(self) -> None:
        """Wait for a permit. Whoever has one calls `release`, whatever becomes of the call."""
        if not self.try_acquire():
            await self.acquired(ON_LOOP, None)

    def acquire_sync(self) -> None:
        """`acquire`, for threads."""
        if not self.try_acquire():
            refuse_on_loop("acquire_sync", "await bulkhead.acquire()")
            finished(self.acquired(IN_THREAD, None))

    def try_acquire(self) -> bool:
        """A permit, if one is free and nobody waits for it."""
        with self._lock:
            if self._free and not self._line:
                self._free -= 1
                return True
            return False

    async def acquired(self, way: Way, seconds: float | None) -> None:
        """A permit after at most so many seconds."""
        if seconds is None or (self._wait is not None and self._wait < seconds):
            seconds = self._wait
        waiter = self._join(way, seconds)
        try:
            if not waiter.has_permit:
                await waiter.turn.wait(seconds)
        except BaseException:
            if not self._leave(waiter):
                self.release()  # it was handed over in this very moment
            raise
        if self._leave(waiter):
            raise BulkheadFull(
                f"The bulkhead {self.name!r} gave no permit within {seconds or 0:.6g} s: all {self._permits} are out."
            )

    def release(self) -> None:
        """Give the permit back, or rather to the first in the line."""
        self.released += 1
        while True:
            with self._lock:
                if not self._line and self._free == self._permits and self._lent_before:
                    self._lent_before -= 1
                    return
                if not self._line:
                    assert self._free < self._permits, "a permit was released twice"
                    self._free += 1
                    return
                waiter = self._line.popleft()
                waiter.has_permit = True
            if waiter.turn.call():
                return
            waiter.has_permit = False  # his loop is gone: to the next one

    def _join(self, way: Way, seconds: float | None) -> _Waiter:
        waiter = _Waiter(way.turn())
        with self._lock:
            if self._free and not self._line:
                self._free -= 1
                waiter.has_permit = True
            elif len(self._line) >= self._waiting or seconds == 0:
                raise BulkheadFull(
                    f"The bulkhead {self.name!r} is full: {self._permits} calls are under way and {len(self._line)} wait "
                    f"(at most {self._waiting}). Try again later, or give it more permits or waiting."
                )
            else:
                self._line.append(waiter)
        return waiter

    def _leave(self, waiter: _Waiter) -> bool:
        """Whether it leaves the line without a permit."""
        with self._lock:
            if not waiter.has_permit and waiter in self._line:
                self._line.remove(waiter)
            return not waiter.has_permit

    def forked(self) -> None:
        """This is a child of the process: other threads, which had permits or waited, do not exist here."""
        self._lock, self._lent_before = new_lock(), self._permits - self._free
        self._free = self._permits
        self._line.clear()

    # --- looking ---

    @property
    def name(self) -> str:
        return self._name or "bulkhead"

    def take_name(self, name: str) -> None:
        """Called by a guard; a name of its own stays."""
        self._name = self._name or name

    @property
    def longest_wait(self) -> float:
        """Seconds; infinite, when nothing was said."""
        return math.inf if self._wait is None else self._wait

    @property
    def free(self) -> int:
        """Permits that nobody has."""
        return self._free

    @property
    def room(self) -> int:
        """How many more it would take now, to call or to wait."""
        return max(0, self._free + self._waiting - len(self._line))

    @property
    def in_flight(self) -> int:
        """Permits that are out."""
        return self._permits - self._free

    @property
    def line(self) -> int:
        """How many wait."""
        return len(self._line)

    # --- blocks ---

    def __enter__(self) -> None:
        self.acquire_sync()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Bulkhead {self.name!r} {self.in_flight}/{self._permits} and {self.line} waiting>"
