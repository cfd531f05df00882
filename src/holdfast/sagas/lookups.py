"""Ask whether a step was done, long after its call: by its function's name and arguments, as they were stored."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.calls import Call
from holdfast.jobs.control import Suspended
from holdfast.jobs.effects import CannotTell, Found, NotFound
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.sagas.log import SagaLog
from holdfast.sagas.plans import Plan, restored
from holdfast.sagas.script import Script
from holdfast.sagas.stuck import Stuck
from holdfast.store.saga_records import SagaState
from holdfast.store.steps import Kind, Progress, Step, StepRecord

_LIMIT = 60.0  # seconds for a lookup


class Lookups:
    def __init__(self, attempt: Attempt, log: SagaLog, script: Script) -> None:
        self._attempt, self._log, self._script = attempt, log, script

    async def look(self, record: StepRecord, plan: Plan) -> StepRecord | None:
        """The step as it is known now: done, or known to have had no effect. None: nobody can tell."""
        reconcile = self._script.find(plan.reconcile)
        if reconcile is None:
            if record.kind is not Kind.AT_MOST_ONCE and not plan.pivot:
                return None  # it is undone in any case
            raise Stuck(
                SagaState.PARKED,
                f"Whether step {record.name!r} was done is known by {plan.reconcile!r}, and the code that is here does not have it. "
                "Deploy code that does, and the saga goes on.",
            )
        call = Call(
            reconcile,
            restored(reconcile, plan.call or "[]"),
            retry=None,
            limit=_LIMIT,
            threads=self._attempt.threads,
        )
        try:
            answer = await call.once()
        except Exception:  # noqa: BLE001  a lookup that fails tells nothing
            return None
        return await self._answered(record, plan, answer)

    async def _answered(self, record: StepRecord, plan: Plan, answer: Any) -> StepRecord | None:
        if isinstance(answer, Found):
            try:
                result = _text(answer.result)
            except PayloadError:  # then it must not be needed
                if plan.args is None or plan.pivot:
                    return None
                result = None
            return await self._keep(record, Progress.DONE, result)
        if answer is CannotTell or not (answer is NotFound or isinstance(answer, NotFound)):
            return None
        sought = record.progress is Progress.SOUGHT
        left = plan.settle - (record.now - record.at if sought else 0.0)
        if not sought:
            await self._keep(record, Progress.SOUGHT, None)
        if left > 0:
            raise Suspended(left, f"step {record.name!r} was not found, and may still appear")
        return await self._keep(record, Progress.FAILED, None)

    async def _keep(self, record: StepRecord, progress: Progress, result: str | None) -> StepRecord:
        await self._log.keep(as_step(record, progress, result))
        return changed(record, progress, result)


def _text(result: Any) -> str | None:
    return None if result is None else encode(result, limit=RESULT_LIMIT, where="result")


def as_step(record: StepRecord, progress: Progress, result: str | None = None) -> Step:
    """The same step with another progress."""
    return Step(
        name=record.name, number=record.number, kind=record.kind, progress=progress, branch=record.branch,
        fingerprint=record.fingerprint, result=result, tries=record.tries, error=record.error,
        calls=record.calls,
    )  # fmt: skip


def changed(record: StepRecord, progress: Progress, result: str | None) -> StepRecord:
    return replace(record, progress=progress, result=result)
