"""The gate before a guarded task: its guard is asked before a run begins. It never makes the call itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from holdfast.guards.guard import Guard
from holdfast.guards.ports import State
from holdfast.guards.reservations import Reservation
from holdfast.guards.visits import Visit
from holdfast.jobs.gating import is_closed, key_of
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic
from holdfast.kernel.telemetry import note

_COST = 1.0
_FULL = 0.01  # seconds after which a full bulkhead may have room


class Gate:
    """Of one worker. It takes quota for each run, which that has spent when it begins; it is good for its first call, too."""

    def __init__(self) -> None:
        # By breaker: the one that finds out, while its breaker is half open, and how many calls had ended by then.
        self._probing: dict[str, tuple[Run, int]] = {}

    def ask(self, run: Run) -> float:
        """Seconds until it is worth asking again; 0: it may begin. A guard that fails instead of answering admits nobody."""
        try:
            return self._asked(run)
        except Exception as error:  # noqa: BLE001  else the job would be held by this worker for ever
            note("gate.failed", job=run.claim.job_id, task=run.claim.task, error=repr(error))
            return math.inf

    def _asked(self, run: Run) -> float:
        guard = _guard_of(run)
        if guard is None:
            return 0.0
        if not self._breaker_admits(guard):
            return math.inf
        if guard.bulkhead is not None and not guard.bulkhead.room:
            return _FULL
        if guard.limiter is not None:
            found = guard.limiter.reserved(key_of(guard, run.claim.guard), _COST, monotonic(), 0.0)
            if not isinstance(found, Reservation):
                return found
            run.reservation = found
        if guard.breaker is not None and not is_closed(guard):
            self._probing[guard.breaker.name] = run, guard.breaker.calls
            run.visit = Visit(guard.breaker, guard.breaker.generation)
        return 0.0

    def _breaker_admits(self, guard: Guard[Any]) -> bool:
        breaker = guard.breaker
        if breaker is None or is_closed(guard):
            return True
        if breaker.retry_in() == 0.0 and not self._is_probed(breaker.name, breaker.calls):
            return True
        breaker.wanted()
        return False

    def over(self, run: Run) -> None:
        """It has ended well. If it was to find out, and made no call: it is all that will ever be known of this task."""
        guard, visit = _guard_of(run), run.visit
        if guard is None or guard.breaker is None or visit is None or visit.has_called:
            return
        # Not when it was closed in between: then there may have been a call which was none to find out.
        is_the_same = guard.breaker.generation <= visit.generation + 1
        if is_the_same and guard.breaker.state is State.HALF_OPEN:
            guard.breaker.vouched()

    def _is_probed(self, breaker: str, calls: int) -> bool:
        """Whether a run finds out right now: until its call is recorded, or it is over without one."""
        run, before = self._probing.get(breaker, (None, 0))
        return run is not None and not run.over and calls == before

    def call_when(self, run: Run, call: Callable[[], object]) -> Callable[[], None] | None:
        """Call once when quota for it may have come; returns what ends the waiting. None: ask again in time."""
        guard = _guard_of(run)
        if guard is None or guard.limiter is None:
            return None
        return guard.limiter.call_when(key_of(guard, run.claim.guard), _COST, call)


def _guard_of(run: Run) -> Guard[Any] | None:
    return None if run.task is None else run.task.declaration.gate
