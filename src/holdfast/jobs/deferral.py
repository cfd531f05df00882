"""Which failures of a run are no fault of the job: its guard refused, the other side asked for less, or a probe has failed."""

from __future__ import annotations

from holdfast.guards.faults import Fault, fault_of
from holdfast.guards.headers import clamped
from holdfast.guards.ports import State
from holdfast.jobs.run import Run
from holdfast.kernel.errors import DeadlinePassed, Refused
from holdfast.kernel.randomness import jittered

_MOMENT = 0.1  # seconds: the gate before a guarded task knows better when to go on
_LONGEST = 60.0  # seconds, for tasks without a gate


def deferral(run: Run, error: BaseException) -> float | None:
    """Seconds until it may be tried again, uncharged; None: it has failed."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if not isinstance(error, Exception) or isinstance(error, DeadlinePassed):
        return None
    if run.is_guarded:
        return jittered(_MOMENT, 0.5) if isinstance(error, Refused) or _is_guards(run, error) else None
    if isinstance(error, Refused):
        return jittered(max(_MOMENT, clamped(error.retry_after, _LONGEST) or 1.0))
    return None


def _is_guards(run: Run, error: Exception) -> bool:
    """Whether it was told to come later, or has found out for all that the other side is not well yet."""
    assert run.task is not None
    guard = run.task.declaration.guard
    assert guard is not None
    fault = fault_of(error, guard.classify)
    if fault is Fault.THROTTLED:
        return True
    is_open = guard.breaker is not None and guard.breaker.state is not State.CLOSED
    return run.is_probe and is_open and fault is not Fault.PERMANENT
