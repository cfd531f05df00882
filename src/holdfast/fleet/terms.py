"""On what terms a limiter that a fleet shares gets its quota, so that no delay between grant and use breaks its bound."""

from __future__ import annotations

import msgspec

from holdfast.guards.ports import SLICE

_SHORTEST = 0.05  # seconds: nobody can ask much more often
_PART = 0.1  # of the time between two calls: so much of its rate a burst of one call pays for having time to make it


class Terms(msgspec.Struct, frozen=True):
    """What is granted may be used up to `lasts` seconds later, so the shared bucket is smaller than the limiter's burst.

    The store grants at most r · T + size in any T seconds. Used within `lasts`, that is r · (T + lasts) + size in the worst
    case, and must not be above rate · T + burst. With `size` = burst - rate · lasts it is not, at the whole rate. A burst too
    small for that has a bucket of one call, and a lower rate: calls are then granted 1 / rate + lasts apart at least,
    and are 1 / rate apart when they are made.
    """

    burst: float
    lasts: float  # seconds
    size: float  # units in the shared bucket, and the most that one call may cost

    def rate(self, wanted: float) -> float:
        """Units a second that the store may grant, for calls at this rate."""
        room = self.burst - self.size
        if wanted * self.lasts <= room:
            return wanted
        return min(wanted, max(wanted / (1 + wanted * self.lasts), room / self.lasts))

    def wanted(self, granted: float) -> float:
        """The rate of calls for which the store may grant this one."""
        if granted * self.lasts <= self.burst - self.size:
            return granted
        return granted / max(1 - granted * self.lasts, 1e-6)


def terms_of(fastest: float, burst: float) -> Terms:
    """For a limiter that never has more than `fastest` calls a second: half of the burst is for the delay."""
    lasts = min(SLICE, max(_SHORTEST, _PART / fastest, (burst - 1) / (2 * fastest)))
    return Terms(burst, lasts, max(1.0, burst - fastest * lasts))
