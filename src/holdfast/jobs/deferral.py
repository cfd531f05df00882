"""Which failures of a run are no fault of the job: its guard refused, the other side asked for less, or a probe has failed."""

from __future__ import annotations

import msgspec

from holdfast.guards.faults import Fault, fault_of, retry_after_of
from holdfast.guards.headers import clamped
from holdfast.jobs.child import ChildFailed
from holdfast.jobs.doors import GuardDoor
from holdfast.jobs.gating import is_closed, key_of
from holdfast.jobs.run import Run
from holdfast.kernel.errors import DeadlinePassed, Refused
from holdfast.kernel.randomness import jittered

_MOMENT = 0.1  # seconds: the gate before a guarded task knows better when to go on
_LONGEST = 60.0  # seconds, for tasks without a gate


class Deferral(msgspec.Struct, frozen=True):
    after: float = 0.0  # seconds until it may be tried again
    guard: str | None = None  # or the key under which it is held until that guard lets go


def deferral(run: Run, error: BaseException) -> Deferral | None:
    """How it is put off, uncharged; None: it has failed. Of several coroutines, when it is so of all of them."""
    if isinstance(error, BaseExceptionGroup):
        waits = [deferral(run, each) for each in error.exceptions]
        return None if None in waits else max((each for each in waits if each is not None), key=_lasts)
    if not isinstance(error, Exception) or isinstance(error, DeadlinePassed):
        return None
    if (door := _door_of(run, error)) is not None and door.excuses():
        return Deferral(guard=door.key) if door.is_shut else Deferral(_asked(error))
    has_guard = run.task is not None and run.task.declaration.guard is not None
    if not isinstance(error, Refused) and not (has_guard and _is_guards(run, error)):
        return None
    if has_guard and _gate_is_shut(run):
        return Deferral(jittered(_MOMENT, 0.5))
    return Deferral(_asked(error))


def _lasts(each: Deferral) -> tuple[bool, float]:
    return each.guard is not None, each.after


def _asked(error: Exception) -> float:
    return jittered(max(_MOMENT, clamped(retry_after_of(error), _LONGEST) or 1.0))


def _door_of(run: Run, error: Exception) -> GuardDoor | None:
    """The guard of the step whose call has failed with it."""
    doors = () if run.attempt is None else run.attempt.doors
    return next((door for door in doors if door.error is error), None)


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
