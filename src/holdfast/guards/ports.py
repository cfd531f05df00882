"""Where guards of one process meet those of others: small ports, and what stands there when there are no others.

What crosses them are durations, never moments: no two machines, and no two starts of one, have the same clock.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec

SLICE = 1.0  # seconds that a slice of quota lasts at most


class State(StrEnum):
    """Of a breaker."""

    CLOSED = "closed"  # calls go through
    OPEN = "open"  # none do
    HALF_OPEN = "half_open"  # a few do, to find out


class BreakerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A breaker as others see it, and as it survives a restart."""

    state: State = State.CLOSED
    generation: int = 0  # grows by each change of state
    open_for: float = (
        0.0  # seconds that it stays open, from when the record was made; held ones have no end of their own
    )
    held: bool = False  # by a person
    told: bool = False  # it is open because others said so: no evidence of its own, so pass it on to nobody
    calls: int = 0  # in its window, and of them
    failures: int = 0
    slow: int = 0


class BreakerPeers(Protocol):
    """Hears of each change of a breaker. To tell the breaker what others found, call its `told_open`."""

    def changed(self, name: str, record: BreakerRecord, /) -> None:
        """At once, on whichever thread the change happened: do not wait, do not raise, do not call the breaker."""


class Alone:
    """There are no others."""

    def changed(self, name: str, record: BreakerRecord, /) -> None: ...


class Slice(msgspec.Struct, frozen=True):
    """A part of a fleet's quota for one key."""

    units: float  # of cost, that may be admitted; 0: none now
    lasts: float = SLICE  # seconds from now after which what is left is void
    ask_again: float = 0.05  # seconds after which it is worth asking for more


class Quota(Protocol):
    """Gives a limiter its slices. Whoever stands behind it fetches them from a store, and knows what to give without one."""

    def take(self, name: str, key: str, units: float, /) -> Slice:
        """At once, from what was fetched before: at least `units`, or none. Do not wait, raise, or call the limiter."""

    def call_when(
        self, name: str, key: str, units: float, call: Callable[[], object], /
    ) -> Callable[[], None] | None:
        """Who was refused waits: call him once, on any thread, when so many units may have come, first come, first served.

        Returns what ends his waiting, whether or not he was called. None: nobody will call, ask again in time.
        """

    def give_back(self, name: str, key: str, part: Slice, /) -> None:
        """It was taken and not used, and is good for as long as it says: not a moment longer than when it was taken."""

    def slowed(self, name: str, key: str, record: LimiterRecord, /) -> None:
        """The other side asked us for less: others may be told, by their limiter's `told_pause`. Do not call this one."""

    def calmed(self, name: str, key: str, in_row: int, /) -> None:
        """The other side has answered, after so many times in a row that it was too much: the next pause is the first again."""


class LimiterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What must not be forgotten of a key when a process ends: it would ask too much of the other side again."""

    rate: float  # calls a second
    paused_for: float = 0.0  # seconds, from when the record was made
    in_row: int = 0  # how often it was throttled in a row without being told for how long
