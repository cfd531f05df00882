"""The gate before a guarded task: its guard is asked before a run begins. Whoever is refused is held, uncharged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.guards.guard import Guard
from holdfast.guards.ports import State
from holdfast.guards.reservations import Reservation
from holdfast.jobs.gating import key_of
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.telemetry import note

_MOMENT = 0.02  # seconds in which a fleet's quota arrives that nobody has asked for lately
_COST = 1.0


class Gate:
    """Of one worker. It takes quota for each run, which the first call inside spends; it never makes the call itself."""

    def __init__(self) -> None:
        self._probing: dict[
            str, Run
        ] = {}  # by guard: the one run that finds out, while its breaker is half open

    async def ask(self, runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
        """Those that may begin, and those that are refused."""
        passed, left = self._sorted(runs)
        if left:
            await sleep(_MOMENT)
            more, left = self._sorted(left)
            passed += more
        return passed, left

    def _sorted(self, runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
        passed: list[Run] = []
        refused: list[Run] = []
        for run in runs:
            (passed if self._admits(run) else refused).append(run)
        return passed, refused

    def _admits(self, run: Run) -> bool:
        """A guard that fails instead of answering has not admitted it."""
        try:
            return self._is_admitted(run)
        except Exception as error:  # noqa: BLE001  else the job would be held by this worker for ever
            note("gate.failed", job=run.claim.job_id, task=run.claim.task, error=repr(error))
            return False

    def _is_admitted(self, run: Run) -> bool:
        guard = None if run.task is None else run.task.declaration.guard
        if guard is None:
            return True
        if not self._breaker_admits(guard):
            return False
        if guard.limiter is not None:
            found = guard.limiter.reserved(key_of(guard, run.claim.guard), _COST, monotonic(), 0.0)
            if not isinstance(found, Reservation):
                return False
            run.reservation = found
        if guard.breaker is not None and guard.breaker.state is not State.CLOSED:
            self._probing[guard.name] = run
            run.is_probe = True
        return True

    def _breaker_admits(self, guard: Guard[Any]) -> bool:
        breaker, other = guard.breaker, self._probing.get(guard.name)
        if breaker is None or breaker.state is State.CLOSED:
            return True
        if breaker.retry_in() == 0.0 and (other is None or other.over):
            return True
        breaker.wanted()
        return False
