"""Parts of guards that say what happens to them: the production code itself, with a word for the history at each turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.fleet.pots import Pot
from holdfast.fleet.slices import Slices
from holdfast.guards.breaker import FAILING, Breaker, Permit
from holdfast.guards.faults import Fault
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import LimiterRecord, Slice, State
from holdfast.kernel.clock import monotonic
from holdfast.store.breakers import Probe
from holdfast.store.quota import Grant, Pace, Want
from holdfast.store.sqlite.guards import Guards
from holdfast.store.sqlite.subject import File
from holdfast.testing.simulation.history import History
from holdfast.testing.simulation.service.recorded import RecordedStore


class WatchedBreaker(Breaker):
    """Counts what becomes of each permit: `ended`, `cut off` or `not made`, once; and failures, when it opens by their number."""

    def __init__(self, history: History, **options: Any) -> None:
        super().__init__(**options)
        self.counts: Counter[str] = Counter()
        self._history = history
        self._enough, self._within = options.get("failures", 0), options.get("window", 0.0)
        self._failed: list[float] = []  # when calls of this generation did
        self._failed_in = 0

    def admitted(self, now: float) -> Permit:
        permit = super().admitted(now)
        self.counts["admitted"] += 1
        return permit

    def ended(self, permit: Permit, fault: Fault | None, now: float) -> None:
        self.counts["ended"] += 1
        generation = self.generation
        super().ended(permit, fault, now)
        if self._enough and self._within and permit.generation == generation and fault in FAILING:
            self._look(now, generation)

    def _look(self, now: float, generation: int) -> None:
        """By a list of its own: whether it has opened when there were enough failures within its window."""
        if self._failed_in != generation:
            self._failed.clear()
        self._failed_in = generation
        self._failed.append(now)
        recent = [each for each in self._failed if now - each < self._within]
        if len(recent) >= self._enough and self.state is State.CLOSED and not self.is_held:
            self._history.event("stays closed", (self.name, len(recent), self._within))

    def given_back(self, permit: Permit, *, was_made: bool) -> None:
        self.counts["cut off" if was_made else "not made"] += 1
        super().given_back(permit, was_made=was_made)


class WatchedLimiter(Limiter):
    def __init__(self, history: History, **options: Any) -> None:
        super().__init__(**options)
        self._history = history

    def told_pause(self, seconds: float, *, key: str = "") -> None:
        self._history.event("told to pause", (self.name, key, seconds))
        super().told_pause(seconds, key=key)


class WatchedQuota:
    """Between a limiter and the slices of its process."""

    def __init__(self, slices: Slices, limiter: Limiter, history: History) -> None:
        self._slices, self._limiter, self._history = slices, limiter, history

    def take(self, name: str, key: str, units: float, /) -> Slice:
        """Written down with whose it is: of the store's grants, or the share of so many processes."""
        self._look_for_lapsed(name, key)
        slice_ = self._slices.take(name, key, units)
        if slice_.units > 0:
            nodes = self._slices.nodes if self._is_share(name, key) else 0
            self._history.event("slice", (name, key, nodes, self._limiter.rate(key=key)))
        return slice_

    def call_when(
        self, name: str, key: str, units: float, call: Callable[[], object], /
    ) -> Callable[[], None] | None:
        return self._slices.call_when(name, key, units, call)

    def give_back(self, name: str, key: str, part: Slice, /) -> None:
        self._history.event("slice back", (name, key))
        self._slices.give_back(name, key, part)

    def slowed(self, name: str, key: str, record: LimiterRecord, /) -> None:
        self._slices.slowed(name, key, record)

    def calmed(self, name: str, key: str, in_row: int, /) -> None:
        self._slices.calmed(name, key, in_row)

    def _is_share(self, name: str, key: str) -> bool:
        return self._slices.is_alone or any(monotonic() < pot.late_until for pot in self._pots(name, key))

    def _look_for_lapsed(self, name: str, key: str) -> None:
        now = monotonic()
        lots = [lot for pot in self._pots(name, key) for lot in pot._lots]  # noqa: SLF001  only to look
        if any(lot.units > 0 and lot.until <= now for lot in lots):
            self._history.event("slice lapsed", (name, key))

    def _pots(self, name: str, key: str) -> list[Pot]:
        return [pot for pot in self._slices.pots if (pot.limiter.name, pot.key) == (name, key)]


class GuardedStore(RecordedStore):
    """Writes down what a fleet's guards ask it, too."""

    def __init__(self, path: str, history: History) -> None:
        super().__init__(path, history)
        self.guards = RecordedGuards(self, history)


class RecordedGuards(Guards):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        asked = [(want.name, want.key, want.most) for want in wants]
        return await self._history.call("take", asked, partial(super().take, wants))

    async def slow(
        self,
        name: str,
        key: str,
        *,
        rate: float | None,
        pause: float = 0.0,
        version: int = 0,
        in_row: int = 0,
    ) -> Pace:
        work = partial(super().slow, name, key, rate=rate, pause=pause, version=version, in_row=in_row)
        return await self._history.call("slow", (name, key, rate, pause), work)

    async def open_fleet(self, name: str, *, generation: int, open_for: float) -> bool:
        work = partial(super().open_fleet, name, generation=generation, open_for=open_for)
        return await self._history.call("open_fleet", (name, generation, open_for), work)

    async def close_fleet(self, name: str, *, generation: int) -> bool:
        work = partial(super().close_fleet, name, generation=generation)
        return await self._history.call("close_fleet", (name, generation), work)

    async def probe(self, name: str, node: str, *, permits: int, lease: float) -> Probe | None:
        work = partial(super().probe, name, node, permits=permits, lease=lease)
        return await self._history.call("probe", name, work)
