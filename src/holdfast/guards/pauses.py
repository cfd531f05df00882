"""How much of the last hour a limiter was paused: the time in which any of its keys was."""

from __future__ import annotations

from holdfast.kernel.clock import monotonic

HOUR = 3600.0  # seconds
_SLOT = 60.0  # seconds that are counted together
_SLOTS = int(HOUR / _SLOT)


class Pauses:
    """Not safe for threads: the limiter has a lock."""

    __slots__ = ("_from", "_slots", "_until")

    def __init__(self) -> None:
        self._from = self._until = monotonic()  # the pause that was asked for last, with all that it overlaps
        self._slots: dict[int, float] = {}  # seconds of those before it, by the minute of their beginning

    def add(self, now: float, until: float) -> None:
        """No calls of some key before this moment."""
        if until <= now:
            return
        if now > self._until:
            self._count(self._until)
            self._from = now
        self._until = max(self._until, until)

    def share(self) -> float:
        """Of the last hour: 0 to 1. Before there was a limiter there was no pause."""
        now = monotonic()
        first = now - HOUR
        counted = sum(seconds for slot, seconds in self._slots.items() if slot * _SLOT >= first)
        counted += max(0.0, min(now, self._until) - max(self._from, first))
        return min(1.0, counted / HOUR)

    def forget(self) -> None:
        """A person has ended all pauses, or it begins anew, maybe under a clock that is behind the one before, as tests have it."""
        now = monotonic()
        if self._from > now:
            self._from = now
            self._slots.clear()
        self._until = min(self._until, now)

    def _count(self, until: float) -> None:
        """The pause is over: its seconds go to the minute in which it began."""
        slot = int(self._from // _SLOT)
        self._slots[slot] = self._slots.get(slot, 0.0) + until - self._from
        for old in [each for each in self._slots if each < slot - _SLOTS]:
            del self._slots[old]
