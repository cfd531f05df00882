"""What is asked before the call of a step: a guard of its own, or that of its task. Who is refused has written nothing."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, Protocol

from holdfast.guards.faults import Fault, fault_of
from holdfast.guards.guard import Guard, Keyed
from holdfast.guards.reservations import Reservation, carrying
from holdfast.guards.visits import Visit, visiting
from holdfast.jobs.gating import is_closed
from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import Refused, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show

# Seconds for which a call waits in its slot: what is let go early, at the next look but one, is not held once more.
MOMENT = 0.25
_TRIES = 5


class Excuse(Enum):
    """What a guard says of the failure that has ended a run."""

    NONE = "it is the job's"
    ALWAYS = "it was told to come later, or has found out for all"
    COUNTED = "the guard leaves it uncharged, so many times"


def excuse(guard: Guard[Any], fault: Fault, *, finds_out: bool, is_its: bool) -> Excuse:
    """`finds_out`: the run was let through for that. `is_its`: a call through this guard has failed so."""
    if finds_out and not is_closed(guard) and fault is not Fault.PERMANENT:
        return Excuse.ALWAYS
    if guard.uncharged is None:
        return Excuse.ALWAYS if fault is Fault.THROTTLED else Excuse.NONE
    is_its |= fault is Fault.THROTTLED
    return Excuse.COUNTED if is_its and fault in guard.uncharged else Excuse.NONE


class Passed(Protocol):
    """The right to make one call."""

    async def run(self, work: partial[Any], /) -> Any: ...
    def not_made(self) -> None: ...


class Door(Protocol):
    """`key`: under which a job is held that is refused here; None: nobody would let go of it."""

    @property
    def key(self) -> str | None: ...
    @property
    def guard(self) -> Guard[Any] | None: ...
    async def ask(self, *, once: bool) -> Passed:
        """Raises Refused. `once`: the call is not repeated in there, whatever is known of it."""

    def failed(self, error: Exception) -> None:
        """So the call has ended."""


class GuardDoor:
    """`guard=` of a step."""

    def __init__(self, guard: Guard[Any] | Keyed[Any]) -> None:
        self._calls, self.guard = guard, guard.guard
        self.key = check_name("guard", f"{self.guard.name}/{guard.key}" if guard.key else self.guard.name)
        self.error: Exception | None = None  # of the last call
        self._finds_out = False  # whether what it stands before is well again

    async def ask(self, *, once: bool) -> Passed:
        was_closed = is_closed(self.guard)
        passed = await self._calls.begin(once=once, longest=MOMENT)
        self._finds_out = not was_closed
        return passed

    def failed(self, error: Exception) -> None:
        self.error = error

    def excuse(self) -> Excuse:
        """Whether its last failure is no fault of the job."""
        assert self.error is not None
        fault = fault_of(self.error, self.guard.classify)
        return excuse(self.guard, fault, finds_out=self._finds_out, is_its=True)

    @property
    def is_shut(self) -> bool:
        """Whether it would refuse the next one now, and so knows when that may come."""
        limiter = self.guard.limiter
        return not is_closed(self.guard) or (
            limiter is not None and limiter.allowance(key=self._calls.key).retry_after > 0
        )


def door_of(guard: Any) -> GuardDoor | None:
    """What a task says with `guard=`."""
    if guard is None:
        return None
    if not isinstance(guard, Guard | Keyed):
        raise UsageError(f"guard is what hf.guard(…) made, or one of its keys, not {show(guard)}.")
    if guard.guard.answers_itself:
        raise UsageError(
            f"Guard {guard.guard.name!r} has a fallback, and its answer would be recorded as that of the call. "
            "Give the step a guard without one: refused, the job waits."
        )
    return GuardDoor(guard)


class Late(Protocol):
    """A run that its task's gate was not asked about: perhaps it makes no call."""

    late: Callable[[], float] | None
    reservation: Reservation | None
    visit: Visit | None

    @property
    def gate_key(self) -> str | None: ...


class TaskDoor:
    """The gate of a task, asked before the first call that the run makes after all."""

    guard = None

    def __init__(self, run: Late) -> None:
        self._run = run

    @property
    def key(self) -> str | None:
        return self._run.gate_key

    async def ask(self, *, once: bool) -> Passed:  # noqa: ARG002  it repeats nothing
        for _ in range(_TRIES):
            if self._run.late is None:  # another of its calls has passed meanwhile
                return _Gated(None, None)
            if (wait := self._run.late()) == 0.0:
                self._run.late = None
                return _Gated(self._run.reservation, self._run.visit)
            if wait > MOMENT:
                break
            await sleep(wait)
        raise Refused("the guard of its task lets no run begin")

    def failed(self, error: Exception) -> None:
        """It is judged as that of any run behind a gate."""


class _Gated:
    def __init__(self, reservation: Reservation | None, visit: Visit | None) -> None:
        self._reservation, self._visit = reservation, visit

    async def run(self, work: partial[Any]) -> Any:
        if self._reservation is not None:
            self._reservation.keep()  # spent, also when it makes no call
        with carrying(self._reservation), visiting(self._visit):
            return await work()

    def not_made(self) -> None:
        """Its run gives back what it has."""
