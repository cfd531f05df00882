"""A World whose clocks stand still until a test moves them. Threads and chance stay real."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Container, Coroutine
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.kernel.reality import REALITY
from holdfast.kernel.world import Alarm, Beside, Body, Flag, Kind, Limit, Mailbox, Thread, World, inhabit
from holdfast.testing.waits import SERVICE, HandLimit, Wait, Waiter, part_of

T = TypeVar("T")
WAITS = (Kind.NEWS, Kind.LOOK)  # in these nothing is done
_GLANCE = 0.001  # real seconds after which a thread that stands still looks at the clock again
_MOMENT = 0.002  # real seconds in which a program that goes on does something
_STILL = 3  # such moments without a change after which it is taken to wait,
_BUSY = 100  # and while a database is asked: a transaction may be open while the program waits
_PATIENCE = 10.0  # real seconds for which `until_waiting` waits
START = 1_900_000_000.0  # a Sunday in March 2030: a moment that no real clock shows by chance


class ManualClock:
    """`with ManualClock() as clock:` and then `clock.advance(31)` instead of waiting half a minute.

    What is opened and started in the block goes by it, and so do its threads. `skew` sets only this process's clock wrong.
    """

    def __init__(self, start: float = START) -> None:
        self._wall = start
        self._host = start
        self._monotonic = 0.0
        self._lock = threading.Lock()  # stores read the clock on threads of their own
        self._waiters: dict[Waiter, None] = {}
        self._followers: list[Callable[[float], None]] = []
        self._entered: list[AbstractContextManager[World]] = []
        self.busy: list[
            Callable[[], bool]
        ] = []  # whether something outside is being asked, of which the clock knows nothing
        self.moves = 0  # how often it was moved,
        self.changes = 0  # and how often that, or what waits for it, has changed

    def __enter__(self) -> Self:
        block = inhabit(self)
        block.__enter__()
        self._entered.append(block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)

    # --- for tests ---

    def advance(self, seconds: float) -> None:
        """Let time pass for everyone, and wake all whose time has come. They go on as soon as the test awaits something."""
        with self._lock:
            self._wall += seconds
            self._host += seconds
            self._monotonic += seconds
            self.moves += 1
            self.changes += 1
            due = [each for each in self._waiters if each.moment <= self._monotonic]
            for each in due:
                del self._waiters[each]
            now, followers = self._host, tuple(self._followers)
        for follow in followers:
            follow(now)
        for waiter in sorted(due, key=lambda each: each.moment):
            waiter.ring()

    def skew(self, seconds: float) -> None:
        """Set this process's wall clock wrong. The host's clock goes on: no promise may depend on ours."""
        with self._lock:
            self._wall += seconds

    @property
    def waiting(self) -> list[Wait]:
        """Where the program, or its test, waits for this clock; what ends first comes first. Holdfast's own services are left out."""
        return self.waits_of()

    def waits_of(self, part: object = None, kinds: Container[Kind] = frozenset(Kind)) -> list[Wait]:
        """The same of one part of the program only, and of these kinds."""
        with self._lock:
            found = [
                (each.moment - self._monotonic, each.where)
                for each in self._waiters
                if each.where is not None and each.kind in kinds and (part is None or part in each.parts)
            ]
        return [Wait(seconds, where) for seconds, where in sorted(found)]

    async def until_waiting(self, count: int = 1) -> list[Wait]:
        """Let the program go on until it waits for this clock, in so many places; returns them."""
        end = REALITY.monotonic() + _PATIENCE
        while len(self.waiting) < count or not await self._is_still():
            if REALITY.monotonic() > end:
                told = "; ".join(map(str, self.waiting)) or "nowhere"
                raise AssertionError(
                    f"After {_PATIENCE:g} s of real time the program does not wait for the clock in {count} places. It waits {told}."
                )
            await asyncio.sleep(_MOMENT)
        return self.waiting

    async def run(self, work: Awaitable[T]) -> T:
        """The result of the work; whenever it waits for this clock, time passes until its next moment.

        A function whose timeout is running is not taken to wait: it may be busy.
        """
        # What has begun before, such as what `asyncio.gather` returns, cannot be told from the rest of the program.
        part = object() if asyncio.iscoroutine(work) else None
        task = asyncio.ensure_future(part_of(part, work))
        try:
            while not task.done():
                if self.waits_of(part, WAITS) and await self._is_still():
                    self._advance_to_next()
                await asyncio.wait([task], timeout=_MOMENT)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        return task.result()

    async def _is_still(self) -> bool:
        """Whether nothing has begun or ended to wait for a few moments."""
        seen = self.changes
        for moment in range(_BUSY):
            await asyncio.sleep(_MOMENT)
            if self.changes != seen:
                return False
            if moment + 1 >= _STILL and not any(is_busy() for is_busy in self.busy):
                return True
        return True

    def _advance_to_next(self) -> None:
        with self._lock:
            moments = [each.moment for each in self._waiters if each.kind is not Kind.WORK]
            left = min(moments, default=self._monotonic) - self._monotonic
        if left > 0:
            self.advance(left)

    def follow(self, tell: Callable[[float], None]) -> Callable[[], None]:
        """Tell this clock's time to another, now and at each move; returns what ends that."""
        with self._lock:
            self._followers.append(tell)
        tell(self._host)
        return lambda: self._followers.remove(tell)

    # --- for what lives in this World ---

    def now(self) -> float:
        return self._wall

    def host_now(self) -> float:
        return self._host

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float, /) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self.join(seconds, Kind.NEWS, lambda: _wake(sleeper))
        try:
            await sleeper
        finally:
            alarm.cancel()

    def limit(self, seconds: float, kind: Kind, /) -> Limit:
        return HandLimit(self, seconds, kind)

    def after(self, seconds: float, call: Callable[..., object], /, *args: object) -> Alarm:
        return self.join(seconds, Kind.WORK, lambda: call(*args))

    def join(self, seconds: float, kind: Kind, wake: Callable[[], object]) -> Alarm:
        """Have it called on this loop when the time is over."""
        return self._join(seconds, kind, asyncio.get_running_loop(), wake)

    def _join(
        self,
        seconds: float,
        kind: Kind,
        loop: asyncio.AbstractEventLoop | None,
        wake: Callable[[], object],
    ) -> _Alarm:
        with self._lock:
            waiter = Waiter(self._monotonic + seconds, kind, loop, wake)
            self._waiters[waiter] = None
            self.changes += 1
            is_due = waiter.moment <= self._monotonic
        if is_due:
            waiter.ring()
        return _Alarm(self, waiter)

    def forget(self, waiter: Waiter) -> None:
        """It waits no more."""
        with self._lock:
            self._waiters.pop(waiter, None)
            self.changes += 1

    def pause(self, seconds: float | None, flag: Flag | None, /) -> bool:
        flag = flag or threading.Event()
        until = None if seconds is None else self._monotonic + seconds
        alarm = None if seconds is None else self._join(seconds, Kind.NEWS, None, flag.is_set)
        try:  # in short glances: a thread that is asked to stop hears of it only in between
            while not flag.is_set() and (until is None or self._monotonic < until):
                flag.wait(_GLANCE)
        finally:
            if alarm is not None:
                alarm.cancel()
        return flag.is_set()

    def random(self) -> float:
        return REALITY.random()

    def random_bytes(self, count: int, /) -> bytes:
        return REALITY.random_bytes(count)

    def mailbox(self) -> Mailbox[object]:
        return REALITY.mailbox()

    def start_thread(self, name: str, body: Body, /) -> Thread:
        return REALITY.start_thread(name, body)

    def start_beside(self, name: str, main: Callable[[], Coroutine[Any, Any, None]], /) -> Beside:
        return REALITY.start_beside(name, lambda: part_of(SERVICE, main()))

    def owns(self, close: Callable[[], None], /) -> Callable[[], None]:
        return REALITY.owns(close)


class _Alarm:
    __slots__ = ("_clock", "_waiter")

    def __init__(self, clock: ManualClock, waiter: Waiter) -> None:
        self._clock, self._waiter = clock, waiter

    def cancel(self) -> None:
        self._waiter.wake = _nothing
        self._clock.forget(self._waiter)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _nothing() -> None:
    """Its alarm was taken back."""
