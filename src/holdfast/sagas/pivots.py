"""Whether a saga has passed the step after which there is no way back, also when the answer of that step was lost."""

from __future__ import annotations

from enum import Enum

from holdfast.jobs.attempt import Attempt
from holdfast.sagas.log import SagaLog
from holdfast.sagas.lookups import Lookups
from holdfast.sagas.plans import read
from holdfast.sagas.script import Script
from holdfast.store.saga_records import Move, SagaState
from holdfast.store.steps import OPEN, Progress, StepRecord

_PASSED = (Progress.DONE, Progress.RESOLVED)


class Verdict(Enum):
    PASSED = "passed"
    NOT_PASSED = "not passed"
    UNKNOWN = "unknown"


class Pivots:
    def __init__(self, attempt: Attempt, log: SagaLog, script: Script) -> None:
        self._log, self._lookups = log, Lookups(attempt, log, script)
        self._unknown = ""

    async def look(self) -> Verdict:
        if self._log.pivot is not None:
            return Verdict.PASSED
        pivots = [each for each in await self._log.steps() if read(each.plan).pivot]
        for each in pivots:
            verdict = await self._judge(each)
            if verdict is Verdict.PASSED:
                await self._log.move(Move(state=SagaState.RUNNING, pivot=each.name))
            if verdict is not Verdict.NOT_PASSED:
                return verdict
        return Verdict.NOT_PASSED

    async def _judge(self, record: StepRecord) -> Verdict:
        if record.progress in _PASSED:
            return Verdict.PASSED
        if record.progress not in OPEN and record.progress is not Progress.HANDLED:
            return Verdict.NOT_PASSED
        self._unknown = record.name
        plan = read(record.plan)
        found = None if plan.reconcile is None else await self._lookups.look(record, plan)
        if found is None:
            return Verdict.UNKNOWN
        return Verdict.PASSED if found.progress in _PASSED else Verdict.NOT_PASSED

    def why(self) -> str:
        return (
            f"Nobody knows whether its pivot {self._unknown!r} was done, so nothing is undone. Look on the other side, and "
            "settle it: done, and it goes on; not done, and it is tried again, or undone if you cancel the saga first."
        )
