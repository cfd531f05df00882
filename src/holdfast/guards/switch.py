"""The states of a breaker and when they change. Time is passed in; locks, people and other machines are the breaker's.

           enough failures                    cool-down over
  closed ───────────────────▶ open ───────────────────────────▶ half-open
    ▲                          ▲                                  │    │
    │                          └────── a probe failed, or was ────┘    │
    │                                  never heard of again            │
    └────────────────────────────────── all probes went well ──────────┘

Every change begins a new generation. A result counts only in the generation that its call was admitted in.
"""

from __future__ import annotations

import math
from collections import deque

from holdfast.guards.ports import BreakerRecord, State
from holdfast.guards.probes import Probes
from holdfast.guards.trips import Trip
from holdfast.guards.windows import Totals
from holdfast.kernel.randomness import jittered


class Switch:
    """Not safe for threads: the breaker has a lock."""

    __slots__ = (
        "_cooldown",
        "_heard",
        "_own_until",
        "_probes",
        "_trip",
        "changes",
        "generation",
        "held",
        "state",
        "until",
    )

    def __init__(self, trip: Trip, probes: Probes, cooldown: float) -> None:
        self._trip, self._probes, self._cooldown = trip, probes, cooldown
        self._heard = 0  # the newest generation of a hint
        self.state = State.CLOSED
        self.generation = 1
        self.held = False  # by a person
        self.until = 0.0  # when the cool-down is over
        self._own_until = 0.0  # the same by what it has seen itself; then it is open because others said so
        self.changes: deque[BreakerRecord] = deque()  # those that nobody was told of yet

    # --- calls ---

    def admit(self, now: float) -> int | None:
        """The number of a permit: 0 when closed, above when half-open; None: not now."""
        if self.state is State.CLOSED:
            return 0
        if self.state is State.OPEN and not self.held and now >= self.until:
            self._become(State.HALF_OPEN, now)
        if self.state is State.HALF_OPEN:
            self._probes.expire(now)
            self._judge(now)
        return self._probes.take(now) if self.state is State.HALF_OPEN else None

    def ended(self, number: int, now: float, *, failed: bool, slow: bool) -> None:
        """A call of this generation has ended."""
        if number:
            self._probes.ended(number, failed, slow)
            self._judge(now)
        elif self._trip.add(now, failed, slow) and not self.held:
            self._become(State.OPEN, now)

    def given_back(self, number: int, now: float, *, was_made: bool) -> None:
        """A call of this generation has ended without a result, or was not made."""
        if number:
            self._probes.given_back(number, was_made)
            self._judge(now)

    def waits(self, number: int, until: float) -> None:
        """A call of this generation begins then at the latest."""
        self._probes.waits(number, until)

    def renew(self, number: int, now: float) -> bool:
        """A call of this generation begins only now. False: its permit has expired."""
        return not number or self._probes.renew(number, now)

    def retry_in(self, now: float) -> float | None:
        """Seconds until a call may be admitted; None: nobody can say."""
        match self.state:
            case State.CLOSED:
                return 0.0
            case State.OPEN:
                return None if self.held else max(0.0, self.until - now)
            case State.HALF_OPEN:
                return 0.0 if self._probes.has_room(now) else None

    def _judge(self, now: float) -> None:
        """Leave half-open when it is decided."""
        probes = self._probes
        if self.state is not State.HALF_OPEN:
            return
        if (
            self._trip.condemns(probes.failures, probes.slow, probes.permits)
            or probes.cut_off >= probes.permits
        ):
            self._become(State.OPEN, now)
        elif probes.results >= probes.permits:
            self._become(State.CLOSED, now)

    # --- people, others and restarts ---

    def hold(self, state: State, now: float) -> None:
        self.held = True
        self._become(state, now, math.inf)

    def let_go(self, now: float) -> None:
        if self.held:
            self.held = False
            self._become(self.state, now, now)

    def reset(self, now: float) -> None:
        self.held = False
        self._become(State.CLOSED, now)

    def told_open(self, until: float, generation: int, now: float) -> bool:
        if generation <= self._heard or self.held:
            return False
        self._heard = generation
        if self.state is State.OPEN:
            self.until = max(self.until, until)
        else:
            self._become(State.OPEN, now, until, told=True)
        return True

    def is_told(self, now: float) -> bool:
        """Whether it is open only because others said so. Who would say the same again then, they would hear as news."""
        return self.state is State.OPEN and not self.held and now >= self._own_until

    def restore(self, record: BreakerRecord, left: float, now: float) -> None:
        """`left`: the seconds that it stays open."""
        self.generation = max(self.generation, record.generation)
        self.held = record.held
        if record.state is State.CLOSED:
            self._become(State.CLOSED, now)
        else:  # what was half-open asks again
            self._become(State.OPEN, now, now + left, told=record.told)

    def record(self, now: float, totals: Totals | None = None) -> BreakerRecord:
        calls, failures, slow = self._trip.totals(now) if totals is None else totals
        lasts = self.state is State.OPEN and not self.held
        return BreakerRecord(
            state=self.state,
            generation=self.generation,
            open_for=max(0.0, self.until - now) if lasts else 0.0,
            held=self.held,
            told=self.is_told(now),
            calls=calls,
            failures=failures,
            slow=slow,
        )

    def _become(self, state: State, now: float, until: float | None = None, *, told: bool = False) -> None:
        totals = self._trip.totals(now)  # those that led to it
        self.state, self.generation = state, self.generation + 1
        self._probes.clear()
        if state is State.CLOSED:
            self._trip.clear()
        elif state is State.OPEN:
            self.until = now + jittered(self._cooldown) if until is None else until
            self._own_until = now if told else self.until
        self.changes.append(self.record(now, totals))
