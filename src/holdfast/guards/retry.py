"""Whether a call that failed is made again, and after how long."""

from __future__ import annotations

from holdfast.guards.backoff import Backoff
from holdfast.guards.budget import Budget
from holdfast.guards.faults import Fault, is_timeout
from holdfast.kernel.clock import monotonic
from holdfast.kernel.randomness import random
from holdfast.kernel.telemetry import note


class Retries:
    """The rule of one guard: its backoff and its budget."""

    __slots__ = ("_backoff", "_budget", "_name")

    def __init__(self, name: str, backoff: Backoff, budget: Budget) -> None:
        self._name, self._backoff, self._budget = name, backoff, budget

    def reset(self) -> None:
        """As when nothing was called yet."""
        self._budget.reset()

    def first(self) -> None:
        """A first attempt begins."""
        self._budget.earn()

    def wait(
        self,
        attempt: int,
        error: Exception,
        fault: Fault,
        *,
        retry_after: float | None,
        repeatable: bool,
        until: float | None,
    ) -> float | None:
        """Seconds until the next attempt; None: there is none, and the error stands."""
        if fault is Fault.PERMANENT or (fault is Fault.UNKNOWN and not repeatable):
            return None
        if not self._backoff.allows(attempt, error):
            return None
        wait = self._backoff.delay(attempt)
        if retry_after is not None:
            wait = max(wait, retry_after * (1 + 0.2 * random()))
        if (reason := self._objection(wait, error, retry_after, until)) is not None:
            note("guard.gave_up", guard=self._name, reason=reason, error=repr(error))
            return None
        note(
            "guard.retried",
            guard=self._name,
            attempt=attempt,
            wait=wait,
            fault=fault.value,
            error=repr(error),
        )
        return wait

    def _objection(
        self, wait: float, error: Exception, retry_after: float | None, until: float | None
    ) -> str | None:
        """Why there is no further attempt, although there might be one. The budget is asked last: it is charged."""
        if retry_after is not None and retry_after > self._backoff.ceiling:
            return "pause"  # whoever waits for us would wait too long
        if until is not None and monotonic() + wait >= until:
            return "deadline"
        if not self._budget.spend(2 if is_timeout(error) else 1):
            return "budget"
        return None
