"""Which failures of a run are no fault of the job: its guard refused, the other side asked for less, or a probe has failed."""

from __future__ import annotations

from holdfast.guards.faults import Fault, fault_of, retry_after_of
from holdfast.guards.headers import clamped
from holdfast.jobs.child import ChildFailed
from holdfast.jobs.gating import is_closed, key_of
from holdfast.jobs.run import Run
from holdfast.kernel.errors import DeadlinePassed, Refused
from holdfast.kernel.randomness import jittered

_MOMENT = 0.1  # seconds: the gate before a guarded task knows better when to go on
_LONGEST = 60.0  # seconds, for tasks without a gate


def deferral(run: Run, error: BaseException) -> float | None:
    """Seconds until it may be tried again, uncharged; None: it has failed. Of several coroutines, when it is so of all of them."""
    if isinstance(error, BaseExceptionGroup):
        waits = [deferral(run, each) for each in error.exceptions]
        return None if None in waits else max(wait for wait in waits if wait is not None)
    if not isinstance(error, Exception) or isinstance(error, DeadlinePassed):
        return None
    has_guard = run.task is not None and run.task.declaration.guard is not None
    if not isinstance(error, Refused) and not (has_guard and _is_guards(run, error)):
        return None
    if has_guard and _gate_is_shut(run):
        return jittered(_MOMENT, 0.5)
    return jittered(max(_MOMENT, clamped(retry_after_of(error), _LONGEST) or 1.0))


def _gate_is_shut(run: Run) -> bool:
    """Whether its own guard would refuse it now, and so knows when it may go on."""
    assert run.task is not None
    guard = run.task.declaration.guard
    assert guard is not None
    key = key_of(guard, run.claim.guard)
    return not is_closed(guard) or (
        guard.limiter is not None and guard.limiter.allowance(key=key).retry_after > 0
    )


def _is_guards(run: Run, error: Exception) -> bool:
    """Whether it was told to come later, or has found out for all that the other side is not well yet."""
    assert run.task is not None
    guard = run.task.declaration.guard
    assert guard is not None
    fault = error.fault if isinstance(error, ChildFailed) else fault_of(error, guard.classify)
    if fault is Fault.THROTTLED:
        return True
    has_found_out = run.visit is not None and run.visit.has_called
    return has_found_out and not is_closed(guard) and fault is not Fault.PERMANENT
