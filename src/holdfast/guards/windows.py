"""Sliding windows: how many of the last calls failed or were slow, in the last seconds or among the last so many calls."""

from __future__ import annotations

from typing import NamedTuple, Protocol

PARTS = 10  # of a window of time: it covers between nine and ten tenths of its seconds


class Totals(NamedTuple):
    """What is in a window."""

    calls: int
    failures: int
    slow: int


class Window(Protocol):
    """Not safe for threads: whoever owns it has a lock."""

    def add(self, now: float, failed: bool, slow: bool, /) -> None: ...
    def totals(self, now: float, /) -> Totals: ...
    def clear(self) -> None: ...


class TimeWindow:
    """The calls of the last seconds, counted in ten parts, so that its size does not depend on how many there are."""

    __slots__ = ("_calls", "_failures", "_now", "_parts", "_slow", "_width")

    def __init__(self, seconds: float) -> None:
        self._width = seconds / PARTS
        self.clear()

    def clear(self) -> None:
        self._parts = [[0, 0, 0] for _ in range(PARTS)]
        self._calls = self._failures = self._slow = 0
        self._now: int | None = None  # the number of the newest part, since the clock began

    def add(self, now: float, failed: bool, slow: bool, /) -> None:
        number = int(now // self._width)
        if number != self._now:
            number = self._move(number)
        part = self._parts[number % PARTS]
        part[0] += 1
        self._calls += 1
        if failed:
            part[1] += 1
            self._failures += 1
        if slow:
            part[2] += 1
            self._slow += 1

    def totals(self, now: float, /) -> Totals:
        number = int(now // self._width)
        if number != self._now:
            self._move(number)
        return Totals(self._calls, self._failures, self._slow)

    def _move(self, number: int) -> int:
        """Forget the parts that have left the window. A thread may have looked at the clock before one that came first."""
        old = self._now
        if old is not None and number < old:
            return old
        self._now = number
        if old is None:
            return number
        for each in range(max(old + 1, number - PARTS + 1), number + 1):
            part = self._parts[each % PARTS]
            self._calls -= part[0]
            self._failures -= part[1]
            self._slow -= part[2]
            part[:] = (0, 0, 0)
        return number


class CountWindow:
    """The last so many calls, however long ago they were."""

    __slots__ = ("_failures", "_next", "_ring", "_size", "_slow")

    def __init__(self, calls: int) -> None:
        self._size = calls
        self.clear()

    def clear(self) -> None:
        self._ring = bytearray()
        self._next = 0  # where the oldest stands, once the ring is full
        self._failures = self._slow = 0

    def add(self, now: float, failed: bool, slow: bool, /) -> None:  # noqa: ARG002  a window of calls has no time
        mark = failed | slow << 1
        if len(self._ring) < self._size:
            self._ring.append(mark)
        else:
            oldest = self._ring[self._next]
            self._failures -= oldest & 1
            self._slow -= oldest >> 1
            self._ring[self._next] = mark
            self._next = (self._next + 1) % self._size
        self._failures += failed
        self._slow += slow

    def totals(self, now: float, /) -> Totals:  # noqa: ARG002  as above
        return Totals(len(self._ring), self._failures, self._slow)
