"""Undo the sagas that a saga has started: they are cancelled, and their ends are waited for."""

from __future__ import annotations

from holdfast.jobs.control import Suspended
from holdfast.jobs.patience import patiently
from holdfast.sagas.log import SagaLog
from holdfast.sagas.stuck import Stuck
from holdfast.store.ports import Store
from holdfast.store.saga_records import SagaAnswer, SagaState, Wait
from holdfast.store.steps import Progress, Step, StepRecord

_AGAIN = 1.0  # seconds until a saga is asked again whose job is about to end
_DONE = (Progress.DONE, Progress.RESOLVED)


class Children:
    def __init__(self, store: Store, log: SagaLog) -> None:
        self._store, self._log = store, log

    async def undo(self, child: str, waited: StepRecord, step: Step) -> None:
        """Raises Suspended until it is undone, Stuck when it cannot be. One that someone else has started is left alone.

        `waited` is the step that has waited for it, `step` that of its undo.
        """
        record = await patiently(lambda: self._store.sagas.get(child), what="saga.not_read", job=child)
        if record is None and waited.progress in _DONE:
            raise self._stuck(child, step, "is pruned, with what it has done")
        if record is None or record.parent != self._log.record.id:
            await self._log.keep(_with(step, Progress.DONE))
            return
        # Who listens first is woken by its end, whenever that comes.
        heard = await self._log.listen(step, Wait(kind="saga", name=child, undone=True))
        if heard.result is None:
            await self._wait(child, step)

    async def _wait(self, child: str, step: Step) -> None:
        waits = f"waits for the end of saga {child!r}"
        match (await self._ask(child)).outcome:
            case "accepted" | "undoing":
                raise Suspended(None, waits)
            case "too_late":
                raise self._stuck(child, step, "has passed its pivot")
            case "no_job":
                raise self._stuck(child, step, "has no steps any more: they were pruned")
            case _:  # it came to its end just now, or its job is about to
                raise Suspended(_AGAIN, waits)

    async def _ask(self, child: str) -> SagaAnswer:
        actor, reason = f"saga:{self._log.record.id}", "the saga that started it is undone"
        return await patiently(
            lambda: self._store.sagas.cancel(child, actor=actor, reason=reason, done_too=True),
            what="saga.not_cancelled",
            job=child,
        )

    def _stuck(self, child: str, step: Step, why: str) -> Stuck:
        return Stuck(
            SagaState.NEEDS_OPERATOR,
            f"The saga {child!r}, which this one has started, cannot be undone: it {why}. Take back by hand what it did, and "
            f"say that {step.name!r} is done.",
            steps=[_with(step, Progress.FAILED)],
            undoing=True,
        )


def _with(step: Step, progress: Progress) -> Step:
    return Step(name=step.name, number=step.number, kind=step.kind, progress=progress)
