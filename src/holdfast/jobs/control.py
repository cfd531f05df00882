"""What a task raises to say how its run ends, other than by returning or failing."""

from __future__ import annotations

from holdfast.kernel import outcomes
from holdfast.kernel.outcomes import Outcome


class Control(Exception):
    """The root of them: each carries the `outcome` that its job is finished with."""

    outcome: Outcome


class Retry(Control):
    """It failed and shall run again in `after` seconds. The attempt is charged; when none is left, the job is dead."""

    def __init__(self, after: float = 0.0, error: str | None = None) -> None:
        super().__init__(error or f"Retry in {after:g} s was asked for.")
        self.outcome: outcomes.Retry = outcomes.Retry(after=after, error=str(self))


class Snooze(Control):
    """Not now: again in `after` seconds. No attempt is charged."""

    def __init__(self, after: float, reason: str | None = None) -> None:
        super().__init__(reason or f"Snoozed for {after:g} s.")
        self.outcome: outcomes.Snooze = outcomes.Snooze(after=after, reason=reason)


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
