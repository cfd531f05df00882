"""What a task raises to say how its run ends, other than by returning or failing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.guards.guard import Guard
from holdfast.kernel import outcomes
from holdfast.kernel.names import check_seconds
from holdfast.kernel.outcomes import Outcome
from holdfast.kernel.randomness import jittered

_STRANGE = 1.0  # seconds until it asks again, of a job whose key nobody would let go of


class Control(Exception):
    """The root of them: each carries the `outcome` that its job is finished with."""

    outcome: Outcome


class Retry(Control):
    """It failed and shall run again in `after` seconds. The attempt is charged; when none is left, the job is dead."""

    def __init__(self, after: float | timedelta = 0.0, error: str | None = None) -> None:
        seconds = _seconds(after)
        super().__init__(error or f"Retry in {seconds:g} s was asked for.")
        self.outcome: outcomes.Retry = outcomes.Retry(after=seconds, error=str(self))


class Snooze(Control):
    """Not now: again in `after` seconds. No attempt is charged."""

    def __init__(self, after: float | timedelta, reason: str | None = None) -> None:
        seconds = _seconds(after)
        super().__init__(reason or f"Snoozed for {seconds:g} s.")
        self.outcome: outcomes.Snooze = outcomes.Snooze(after=seconds, reason=reason)


class Cancel(Control):
    """It need not run any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.outcome: outcomes.Cancel = outcomes.Cancel(reason)


class Reject(Control):
    """It can never succeed: dead at once, whatever attempts are left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.outcome: outcomes.Dead = outcomes.Dead(reason)


class Gated(Control):
    """The guard of a step has refused its call: the job is held under that guard's `key`, and begins again when it lets go."""

    def __init__(self, reason: str, key: str | None, guard: Guard[Any] | None) -> None:
        super().__init__(reason)
        self.guard = guard
        after = 0.0 if key is not None else jittered(_STRANGE)
        self.outcome: outcomes.Snooze = outcomes.Snooze(after=after, reason=reason, guard=key)


class StepsChanged(Reject):
    """The task asks for other steps than an earlier attempt has recorded: its code has changed since."""


class EffectUnknown(Control):
    """Nobody can tell whether an effect was done: a person decides, or a lookup in `look` seconds."""

    def __init__(self, reason: str, look: float | None = None) -> None:
        super().__init__(reason)
        self.outcome: outcomes.Unknown = outcomes.Unknown(reason, look=look)


class Suspended(BaseException):
    """The run goes on later, from here. Nothing has failed, so no `except Exception` of the task shall see it.

    `after` is in how many seconds; None: when somebody wakes it.
    """

    def __init__(self, after: float | None, waits: str) -> None:
        super().__init__(waits)
        self.after, self.waits = after, waits


def meant(error: BaseException) -> BaseException:
    """What one of many coroutines has said on purpose, and nothing else has happened: the task says so."""
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, Control) else error


def _seconds(after: float | timedelta) -> float:
    return check_seconds("after", after.total_seconds() if isinstance(after, timedelta) else after)
