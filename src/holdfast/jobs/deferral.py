"""Which failures of a run are no fault of the job: its guard refused, the other side asked for less, or a probe has failed."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.guards.faults import fault_of, retry_after_of
from holdfast.guards.guard import Guard
from holdfast.guards.headers import clamped
from holdfast.jobs.child import ChildFailed
from holdfast.jobs.doors import Excuse, GuardDoor, excuse
from holdfast.jobs.gating import is_closed, key_of
from holdfast.jobs.run import Run
from holdfast.kernel.errors import DeadlinePassed, Refused
from holdfast.kernel.randomness import jittered

_MOMENT = 0.1  # seconds: the gate before a guarded task knows better when to go on
_LONGEST = 60.0  # seconds, for tasks without a gate
PUT_OFFS = 20  # that `uncharged=` gives a job, before its failures are charged again


class Deferral(msgspec.Struct, frozen=True):
    after: float = 0.0  # seconds until it may be tried again
    guard: str | None = None  # or the key under which it is held until that guard lets go
    counted: bool = False  # one of the PUT_OFFS


def deferral(run: Run, error: BaseException) -> Deferral | None:
    """How it is put off, uncharged; None: it has failed. Of several coroutines, when it is so of all of them."""
    if isinstance(error, BaseExceptionGroup):
        waits = [deferral(run, each) for each in error.exceptions]
        if None in waits:
            return None
        found = [each for each in waits if each is not None]
        return replace(max(found, key=_lasts), counted=any(each.counted for each in found))
    if not isinstance(error, Exception) or isinstance(error, DeadlinePassed):
        return None
    if (door := _door_of(run, error)) is not None and (why := door.excuse()) is not Excuse.NONE:
        wait = Deferral(guard=door.key) if door.is_shut else Deferral(_asked(error))
        return _counted(run, door.guard, error, wait) if why is Excuse.COUNTED else wait
    guard = None if run.task is None else run.task.declaration.guard
    why = Excuse.ALWAYS if isinstance(error, Refused) else Excuse.NONE
    if guard is not None and why is Excuse.NONE:
        why = _excuse(run, guard, error)
    if why is Excuse.NONE:
        return None
    wait = Deferral(jittered(_MOMENT, 0.5) if guard is not None and _gate_is_shut(run) else _asked(error))
    return wait if guard is None or why is Excuse.ALWAYS else _counted(run, guard, error, wait)


def _counted(run: Run, guard: Guard[Any], error: Exception, wait: Deferral) -> Deferral | None:
    """So many times, and further apart each time while its breaker does not hold it. None: it is charged from now on."""
    number = run.claim.put_offs
    if number >= PUT_OFFS:
        return None
    if is_closed(guard):
        asked = clamped(retry_after_of(error), _LONGEST) or 0.0
        wait = Deferral(jittered(max(asked, min(_LONGEST, 2.0**number))))
    return replace(wait, counted=True)


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


def _excuse(run: Run, guard: Guard[Any], error: Exception) -> Excuse:
    """What the guard before its task says of it."""
    fault = error.fault if isinstance(error, ChildFailed) else fault_of(error, guard.classify)
    if fault is None:
        return Excuse.NONE
    finds_out = run.visit is not None and run.visit.has_called
    is_its = run.witness is not None and run.witness.has_seen(guard.name, fault)
    return excuse(guard, fault, finds_out=finds_out, is_its=is_its)
