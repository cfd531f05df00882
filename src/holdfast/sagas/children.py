"""Undo the sagas that a saga has started: they are cancelled, and their ends are waited for."""

from __future__ import annotations

from holdfast.jobs.control import Suspended
from holdfast.jobs.patience import patiently
from holdfast.sagas.log import SagaLog
from holdfast.store.ports import Store
from holdfast.store.saga_records import SagaRecord, SagaState, Wait
from holdfast.store.steps import Progress, Step


class Children:
    def __init__(self, store: Store, log: SagaLog) -> None:
        self._store, self._log = store, log

    async def undo(self, child: str, step: Step) -> None:
        """Raises Suspended until it is over. One that someone else has started is left alone."""
        record = await patiently(lambda: self._store.sagas.get(child), what="saga.not_read", job=child)
        if record is None or record.parent != self._log.record.id or record.state is SagaState.UNDONE:
            await self._log.keep(_over(step))
            return
        await self._ask(record)
        heard = await self._log.listen(step, Wait(kind="saga", name=child))
        if heard.result is None:
            raise Suspended(None, f"waits for the end of saga {child!r}")

    async def _ask(self, record: SagaRecord) -> None:
        actor, reason = f"saga:{self._log.record.id}", "the saga that started it is undone"
        await patiently(
            lambda: self._store.sagas.cancel(record.id, actor=actor, reason=reason, done_too=True),
            what="saga.not_cancelled",
            job=record.id,
        )


def _over(step: Step) -> Step:
    return Step(name=step.name, number=step.number, kind=step.kind, progress=Progress.DONE)
