"""The keys of a limiter: a bounded number of them, of which the one used longest ago makes room, if nothing depends on it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from itertools import islice

from holdfast.guards.meters import Meter
from holdfast.guards.paces import Pace

_GLANCE = 8  # how many of the oldest are looked at for each new key
_SWEEP = 1.0  # seconds between looking at all


class Registry:
    """Not safe for threads: the limiter has a lock."""

    __slots__ = ("_meters", "_next_sweep", "_pace", "limit")

    def __init__(self, limit: int, pace: Pace) -> None:
        self.limit, self._pace = limit, pace
        self._meters: OrderedDict[str, Meter] = OrderedDict()
        self._next_sweep = 0.0

    def __len__(self) -> int:
        return len(self._meters)

    def clear(self) -> None:
        self._meters.clear()

    @property
    def meters(self) -> Collection[Meter]:
        return self._meters.values()

    def find(self, key: str) -> Meter | None:
        return self._meters.get(key)

    def get(self, key: str, now: float) -> Meter | None:
        """The key's meter; None: it has none, and there is no room for one that could be made without forgetting another."""
        meter = self._meters.get(key)
        if meter is not None:
            self._meters.move_to_end(key)
            return meter
        if len(self._meters) >= self.limit and not self._make_room(now):
            return None
        meter = self._meters[key] = Meter(self._pace)
        return meter

    def _make_room(self, now: float) -> bool:
        """A key that is forgotten while it matters would get its whole burst again."""
        if self._forget(now, _GLANCE):
            return True
        if now < self._next_sweep:
            return False
        self._next_sweep = now + _SWEEP
        return self._forget(now, len(self._meters))

    def _forget(self, now: float, count: int) -> bool:
        oldest = list(islice(self._meters.items(), count))
        idle = [key for key, meter in oldest if not meter.matters(now)]
        for key in idle:
            del self._meters[key]
        return bool(idle)
