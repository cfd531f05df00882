"""The permits of a half-open breaker: at most so many, each with a lease, so that one nobody hears of is not lost."""

from __future__ import annotations


class Probes:
    """Not safe for threads: the breaker has a lock."""

    __slots__ = ("_lease", "_numbers", "_out", "cut_off", "failures", "permits", "results", "slow")

    def __init__(self, permits: int, lease: float) -> None:
        self.permits, self._lease = permits, lease
        self._numbers = 0  # goes on for ever: no two permits have the same
        self.clear()

    def clear(self) -> None:
        """A new generation begins; permits of the old one are void."""
        self._out: dict[int, float] = {}  # the permits that are out, and when their lease ends
        self.results = self.failures = self.slow = self.cut_off = 0

    def has_room(self, now: float) -> bool:
        """Whether there is a permit to take, once those that ran out are counted."""
        return any(now >= end for end in self._out.values()) or len(self._out) + self.results < self.permits

    def take(self, now: float) -> int | None:
        """A number from 1; None when all are out or have given a result."""
        if len(self._out) + self.results >= self.permits:
            return None
        self._numbers += 1
        self._out[self._numbers] = now + self._lease
        return self._numbers

    def waits(self, number: int, until: float) -> None:
        """Its call begins then at the latest: only from there on its lease runs."""
        if number in self._out:
            self._out[number] = max(self._out[number], until + self._lease)

    def renew(self, number: int, now: float) -> bool:
        """Its call begins only now. False: the lease has ended."""
        if now >= self._out.get(number, now):
            return False
        self._out[number] = now + self._lease
        return True

    def ended(self, number: int, failed: bool, slow: bool) -> None:
        if self._out.pop(number, None) is not None:
            self.results += 1
            self.failures += failed
            self.slow += slow

    def given_back(self, number: int, was_made: bool) -> None:
        """It gave no result; another may take its place."""
        if self._out.pop(number, None) is not None:
            self.cut_off += was_made

    def expire(self, now: float) -> None:
        """Those whose lease has ended have failed."""
        for number in [each for each, end in self._out.items() if now >= end]:
            self.ended(number, failed=True, slow=False)
