"""One breaker of this process among those of the fleet: what it says of itself, and what it makes of what it hears.

Each decides by itself, and at once. When enough of them have opened it is open for all. When that time is over one node at a
time finds out for all whether it is well again; the others stay open until they hear of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast.fleet.quorum import is_agreed
from holdfast.guards.breaker import Breaker
from holdfast.guards.guard import Guard
from holdfast.guards.ports import State
from holdfast.kernel.clock import monotonic
from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, Probe
from holdfast.store.fleet_ports import SharedGuards

_MINUTE = 60.0  # seconds in which its calls count
_SHORTEST = 0.001  # seconds: nobody need hear of what is over before it is told
_AHEAD = 2.0  # seconds that who must not ask stays open for: longer than from one look to the next


class Member:
    """A breaker, for the fleet. Only the fleet's own loop calls it."""

    def __init__(self, guard: Guard[object], node: str, on_reset: Callable[[str], None]) -> None:
        self.name, self._node, self._on_reset = guard.name, node, on_reset
        self._breaker, self._limiter = guard.breaker, guard.limiter
        self._calls: deque[tuple[float, int]] = deque()  # when, and how many calls there had been by then
        self._hints = 0  # each is newer than the one before
        self._heard: FleetBreaker | None = None
        self._opened = -1  # the fleet's generation in which it was open, until it is well
        self._refusals = 0
        self._probe: Probe | None = None
        self._holds = False  # a person holds it, for the fleet
        self._reset: int | None = None  # the last that was heard of
        self._decides_elsewhere = False
        self._is_reset = False  # by a person, and where the fleet meets nobody knows it yet

    def report(self) -> BreakerReport:
        """Open only by what it has seen itself: what it was told would come back as news."""
        paused = 0.0 if self._limiter is None else self._limiter.paused_share
        if self._breaker is None:
            return BreakerReport(self.name, BreakerState.CLOSED, paused=paused)
        record = self._breaker.record()
        state = BreakerState(self._breaker.state.value)
        if state is BreakerState.OPEN and (record.told or record.held):
            state = BreakerState.CLOSED
        calls = self._recent(self._breaker.calls)
        return BreakerReport(
            self.name,
            state,
            generation=record.generation,
            open_for=record.open_for if state is BreakerState.OPEN else 0.0,
            calls=max(calls, record.calls, int(state is not BreakerState.CLOSED)),
            failures=record.failures,
            slow=record.slow,
            paused=paused,
        )

    def _recent(self, calls: int) -> int:
        now = monotonic()
        self._calls.append((now, calls))
        while self._calls[0][0] < now - _MINUTE:
            self._calls.popleft()
        return calls - self._calls[0][1]

    @property
    def is_busy(self) -> bool:
        """Whether others should hear of it soon, or it of them."""
        breaker = self._breaker
        return breaker is not None and (
            breaker.state is not State.CLOSED or self._probe is not None or self._opened >= 0
        )

    @property
    def is_in_use(self) -> bool:
        """Whether there were calls since the last report."""
        return self._breaker is not None and bool(self._calls) and self._breaker.calls != self._calls[-1][1]

    def hear_people(self, fleet: FleetBreaker) -> None:
        """What people have decided, when they do so elsewhere: from now on nobody else is heard about that."""
        self._decides_elsewhere = True
        self._hear_people(fleet)

    def hear(self, fleet: FleetBreaker) -> None:
        """What holds for all."""
        self._heard = fleet
        if not self._decides_elsewhere:
            self._hear_people(fleet)
        if (breaker := self._breaker) is None:
            return
        self._hear_opening(breaker, fleet)
        # From when it is open for all until it is well: then one of them finds out.
        breaker.is_agreed = self._opened >= 0 or not fleet.others

    def _hear_opening(self, breaker: Breaker, fleet: FleetBreaker) -> None:
        if fleet.generation == self._opened or self._is_reset:
            return
        if fleet.open_for > 0:
            self._opened = fleet.generation
            self._tell(breaker, fleet.open_for)
        else:  # also when the place where they meet has forgotten all of it, and counts from 0 again
            self._opened = -1  # it was closed for all: whoever is still open finds out by himself

    def _hear_people(self, fleet: FleetBreaker) -> None:
        breaker, before, self._reset = self._breaker, self._reset, fleet.reset
        is_reset = before is not None and fleet.reset > before
        if is_reset and self._limiter is not None:
            self._limiter.reset()
            self._on_reset(self._limiter.name)
        if breaker is None:
            return
        if is_reset:
            breaker.reset()
            self._opened, self._is_reset = -1, self._decides_elsewhere
        if fleet.held is None:
            if self._holds:
                self._holds = False
                breaker.let_go()
            return
        if not self._holds or breaker.state.value != fleet.held.state.value:
            self._holds = True
            (breaker.hold_open if fleet.held.state is BreakerState.OPEN else breaker.hold_closed)()

    def _tell(self, breaker: Breaker, seconds: float) -> None:
        self._hints += 1
        breaker.told_open(seconds, self._hints)

    async def decide(self, hints: SharedGuards, own: BreakerReport) -> None:
        """Open or close it for all, or ask for the right to find out."""
        breaker, fleet = self._breaker, self._heard
        if self._is_reset and fleet is not None:
            self._is_reset = False
            await hints.close_fleet(self.name, generation=fleet.generation)
        if breaker is None or fleet is None or breaker.is_held or breaker.generation != own.generation:
            return  # or it has changed since the report: by what was heard just now, perhaps
        if own.state is BreakerState.OPEN:
            await self._give_up_probe(hints)
            if fleet.open_for <= 0 and own.open_for > _SHORTEST and is_agreed(own, fleet.others):
                await hints.open_fleet(self.name, generation=fleet.generation, open_for=own.open_for)
        elif self._opened >= 0 and fleet.open_for < _AHEAD:
            await self._find_out(hints, breaker)

    async def _find_out(self, hints: SharedGuards, breaker: Breaker) -> None:
        """The fleet's time is over, or nearly: one node may ask, if it has a reason to."""
        if self._probe is not None:
            if breaker.state is State.CLOSED:
                await hints.close_fleet(self.name, generation=self._opened)
                await self._give_up_probe(hints)
                self._opened = -1
            return
        wanted, self._refusals = breaker.refusals > self._refusals, breaker.refusals
        if wanted:
            self._probe = await hints.probe(self.name, self._node, permits=1, lease=breaker.lease)
        if self._probe is None and breaker.state is not State.CLOSED:
            self._tell(breaker, _AHEAD)

    async def _give_up_probe(self, hints: SharedGuards) -> None:
        if (probe := self._probe) is not None:
            self._probe = None
            await hints.probed(probe)
