"""The gate before a guarded task: its guard is asked before a run begins. Whoever is refused is held, uncharged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.guards.guard import Guard
from holdfast.guards.reservations import Reservation
from holdfast.jobs.gating import is_closed, key_of
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.telemetry import note

_SOON = 0.1  # seconds that are worth waiting for at the gate, instead of holding the job
_PATIENCE = 1.0  # seconds for all of it
_COST = 1.0


class Gate:
    """Of one worker. It takes quota for each run, which the first call inside spends; it never makes the call itself."""

    def __init__(self) -> None:
        # By guard: the one that finds out, while its breaker is half open, and how many calls had ended by then.
        self._probing: dict[str, tuple[Run, int]] = {}

    async def ask(self, runs: Sequence[Run], begin: Callable[[Run], None]) -> list[Run]:
        """Begin those that may; returns those that are refused. Quota that comes soon is waited for, such as a fleet's first."""
        end = monotonic() + _PATIENCE
        while True:
            waits = [(self._wait(run, begin), run) for run in runs]
            runs = [run for wait, run in waits if wait > 0]
            soon = [wait for wait, _ in waits if 0 < wait <= _SOON]
            if not soon or monotonic() > end:
                return list(runs)
            await sleep(min(soon))

    def _wait(self, run: Run, begin: Callable[[Run], None]) -> float:
        """Seconds until it is worth asking again; 0: it has begun. A guard that fails instead of answering has not admitted it."""
        try:
            wait = self._asked(run)
        except Exception as error:  # noqa: BLE001  else the job would be held by this worker for ever
            note("gate.failed", job=run.claim.job_id, task=run.claim.task, error=repr(error))
            return math.inf
        if wait == 0.0:
            begin(run)
        return wait

    def _asked(self, run: Run) -> float:
        guard = None if run.task is None else run.task.declaration.guard
        if guard is None:
            return 0.0
        if not self._breaker_admits(guard):
            return math.inf
        if guard.limiter is not None:
            found = guard.limiter.reserved(key_of(guard, run.claim.guard), _COST, monotonic(), 0.0)
            if not isinstance(found, Reservation):
                return found
            run.reservation = found
        if not is_closed(guard):
            self._probing[guard.name] = run, 0 if guard.breaker is None else guard.breaker.calls
            run.is_probe = True
        return 0.0

    def _breaker_admits(self, guard: Guard[Any]) -> bool:
        breaker = guard.breaker
        if breaker is None or is_closed(guard):
            return True
        if breaker.retry_in() == 0.0 and not self._is_probed(guard.name, breaker.calls):
            return True
        breaker.wanted()
        return False

    def _is_probed(self, guard: str, calls: int) -> bool:
        """Whether a run finds out right now: until its call is recorded, or it is over without one."""
        run, before = self._probing.get(guard, (None, 0))
        return run is not None and not run.over and calls == before
