"""Why a saga is undone, other than by a failure of its own."""

from __future__ import annotations

import asyncio

from holdfast.jobs.control import Control
from holdfast.kernel import outcomes


class Asked(Control):
    """Someone has cancelled it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"It was cancelled: {reason}")
        self.outcome: outcomes.Cancel = outcomes.Cancel(str(self))


class Failed(Control):
    """It says itself that it has failed, in its own words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.outcome: outcomes.Dead = outcomes.Dead(reason)


class OutOfTime(Control):
    """Its timeout has passed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"It ran out of time: {reason}")
        self.outcome: outcomes.Cancel = outcomes.Cancel(str(self))


def is_cancelled() -> bool:
    """By its worker, which has lost the claim or stops. A cancellation that the code brought up itself is a failure."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
