"""Where a saga has stopped for now, branch by branch, and whether anything new may begin."""

from __future__ import annotations

from contextvars import ContextVar

from holdfast.jobs.calls import refuse_inside
from holdfast.jobs.control import Suspended
from holdfast.jobs.steps import Steps
from holdfast.sagas.endings import Asked, OutOfTime
from holdfast.sagas.log import SagaLog

branch: ContextVar[str] = ContextVar("holdfast_saga_branch", default="")  # which of many at once


class Stops:
    """Of one run of a saga."""

    def __init__(self, steps: Steps, log: SagaLog) -> None:
        self.steps, self._log = steps, log
        self._found: dict[str, Suspended] = {}  # by branch

    def add(self, stop: Suspended) -> Suspended:
        """This branch goes on later: whatever its `finally` blocks ask for now is refused."""
        self._found[branch.get()] = stop
        return stop

    def check_goes_on(self, name: str) -> None:
        """Before anything new: it has stopped for now, someone wants it undone, or its time is over."""
        refuse_inside(name)
        if (stop := self._found.get(branch.get())) is not None:
            raise stop
        if self._log.pivot is not None:
            return
        if self._log.asked is not None:
            raise self.steps.end_with(Asked(self._log.asked))
        left = self._log.time_left
        if left is not None and left <= 0:
            raise self.steps.end_with(OutOfTime("its timeout has passed"))

    def check_none(self) -> None:
        """At its end: its code may have caught that it was to rest, and gone on without steps."""
        if self._found:
            raise together([*self._found.values()])


def together(stops: list[Suspended]) -> Suspended:
    """They go on when the first of them does."""
    times = [stop.after for stop in stops if stop.after is not None]
    return Suspended(min(times, default=None), "; ".join(dict.fromkeys(stop.waits for stop in stops)))
