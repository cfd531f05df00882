"""The way back: what was done is undone, the last first. Each undo is recorded, and retried until it is done or a person is needed."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.calls import Call
from holdfast.jobs.control import Control, Retry, Snooze, Suspended
from holdfast.jobs.failures import describe
from holdfast.kernel.clock import sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import LeaseLost
from holdfast.kernel.masking import secret_values
from holdfast.kernel.telemetry import note
from holdfast.kernel.tracing import step as span_of
from holdfast.sagas.children import Children
from holdfast.sagas.endings import is_cancelled
from holdfast.sagas.log import SagaLog
from holdfast.sagas.lookups import Lookups, as_step
from holdfast.sagas.plans import Plan, given, read, restored
from holdfast.sagas.script import Script
from holdfast.sagas.stepping import PATIENCE, put_off
from holdfast.sagas.stuck import Stuck
from holdfast.store.ports import Store
from holdfast.store.saga_records import SagaState
from holdfast.store.saga_verdicts import UNDO
from holdfast.store.steps import OPEN, Kind, Progress, Step, StepRecord

_DONE = (Progress.DONE, Progress.RESOLVED)


class Undoing:
    def __init__(self, attempt: Attempt, store: Store, log: SagaLog, script: Script) -> None:
        self._attempt, self._log, self._script = attempt, log, script
        self._lookups = Lookups(attempt, log, script)
        self._children = Children(store, log)
        self._number = 0  # of the next step

    async def run(self) -> None:
        """Until nothing is left to undo. Raises Stuck or Suspended."""
        records = await self._log.steps()
        self._number = max((each.number + 1 for each in records), default=0)
        undos = {each.name: each for each in records if each.name.startswith(UNDO)}
        for record in reversed([each for each in records if each.name not in undos]):
            await self._step(record, undos.get(f"{UNDO}{record.name}"))

    async def _step(self, record: StepRecord, undo: StepRecord | None) -> None:
        plan = read(record.plan)
        has_undo = plan.undo is not None or plan.child is not None
        if has_undo and (undo is None or undo.progress not in _DONE):
            known = await self._known(record, plan)
            if known.progress is Progress.FAILED:
                return  # nothing was done
            await self._undo(known, plan, undo)
        if record.progress in OPEN:  # or it would stay so, and its job with it
            await self._log.keep(as_step(record, Progress.ASIDE))

    # --- what became of the step ---

    async def _known(self, record: StepRecord, plan: Plan) -> StepRecord:
        """A step of which nobody knows is reconciled first. One that can be repeated, or undone in any case, need not be."""
        if record.progress not in OPEN:
            return record
        found = None if plan.reconcile is None else await self._lookups.look(record, plan)
        if found is not None:
            return found
        if record.kind is Kind.AT_MOST_ONCE and (plan.args is None or plan.reconcile is not None):
            raise self._stuck(
                f"Nobody knows whether step {record.name!r} was done, and it cannot be undone without that. "
                "Look on the other side, and settle it."
            )
        return record

    # --- undoing it ---

    async def _undo(self, record: StepRecord, plan: Plan, undo: StepRecord | None) -> None:
        tries = 0 if undo is None else undo.tries
        number = self._number if undo is None else undo.number
        self._number += undo is None
        step = Step(
            name=f"{UNDO}{record.name}", number=number, kind=Kind.AT_LEAST_ONCE, progress=Progress.BEGUN,
            calls=0 if undo is None else undo.calls,
        )  # fmt: skip
        if plan.child is not None:
            await self._log.keep(step)
            await self._children.undo(plan.child, record, step)
        else:
            call = self._call(record, plan)
            with span_of(step.name, step.kind):
                await self._until_done(step, tries, call)
        crashpoint("undo.recorded")
        note("saga.step_undone", saga=self._log.record.id, name=self._log.record.name, step=record.name)

    def _call(self, record: StepRecord, plan: Plan) -> Call:
        assert plan.undo is not None
        function = self._script.find(plan.undo)
        if function is None:
            raise Stuck(
                SagaState.PARKED,
                f"The undo of step {record.name!r} is {plan.undo!r}, and the code that is here does not have it. "
                "Deploy code that does, and let the saga go on.",
                undoing=True,
            )
        if plan.args is not None:
            args = restored(function, plan.args)
        else:
            args = [
                given(
                    function,
                    self._script.find(plan.does),
                    record.result if record.progress is not Progress.HANDLED else None,
                )
            ]
        return Call(
            function, args, retry=None, limit=self._script.options.undo_timeout, threads=self._attempt.threads
        )

    async def _until_done(self, step: Step, tries: int, call: Call) -> None:
        while True:
            await self._log.keep(replace(_tried(step, tries), intent=True))
            crashpoint("undo.begun")
            self._attempt.check_held()
            step = replace(step, calls=step.calls + 1)
            try:
                await call.once()
            except (asyncio.CancelledError, SystemExit) as error:
                if is_cancelled():
                    raise
                tries = await self._failed(step, tries, RuntimeError(f"It has ended by {error!r}."))
            except Exception as error:  # noqa: BLE001  whatever it is, it is retried or left to a person
                tries = await self._failed(step, tries, error)
            else:
                crashpoint("undo.called")
                await self._log.keep(_tried(step, tries, Progress.DONE))
                return

    async def _failed(self, step: Step, tries: int, error: Exception) -> int:
        """How often it has failed by now. Raises when it is not tried again here and now."""
        if isinstance(error, LeaseLost):
            raise error
        if (off := put_off(error, step.name)) is not None:
            raise off
        if isinstance(error, Snooze):
            raise Suspended(error.outcome.after, f"{step.name!r}: {error}")
        tries, retry = tries + 1, self._script.options.undo_retry
        told = describe(error, secret_values(self._attempt.claim.args), where=not isinstance(error, Control))
        is_final = isinstance(error, Control) and not isinstance(error, Retry)
        if is_final or not retry.allows(tries, error):
            failed = _tried(step, tries, Progress.FAILED, told)
            raise self._stuck(f"{step.name!r} failed, after {tries} tries: {told}", [failed])
        delay = error.outcome.after if isinstance(error, Retry) else retry.delay(tries)
        await self._log.keep(_tried(step, tries, error=told))
        if delay > PATIENCE:
            raise Suspended(delay, f"{step.name!r} failed, and is tried again: {told}")
        await sleep(delay)
        return tries

    def _stuck(self, why: str, steps: list[Step] | None = None) -> Stuck:
        return Stuck(SagaState.NEEDS_OPERATOR, why, steps=steps, undoing=True)


def _tried(step: Step, tries: int, progress: Progress = Progress.BEGUN, error: str | None = None) -> Step:
    return Step(
        name=step.name,
        number=step.number,
        kind=step.kind,
        progress=progress,
        tries=tries,
        error=error,
        calls=step.calls,
    )
