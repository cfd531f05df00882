"""A store that writes down what is asked of sagas, too, by people and by sagas that undo others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.records import Claim
from holdfast.store.saga_records import Move, NewSaga, Rest, SagaAnswer, StartedSaga, Written
from holdfast.store.sqlite.sagas import Sagas
from holdfast.store.sqlite.subject import File
from holdfast.store.steps import Step
from holdfast.testing.simulation.events.recorded import EventfulStore
from holdfast.testing.simulation.history import History

START, SIGNAL, CANCEL, RETRY, SETTLE, PRUNE, REST = (
    "start sagas",
    "signal a saga",
    "cancel a saga",
    "retry a saga",
    "settle a saga",
    "prune sagas",
    "rest",
)


class SagaStore(EventfulStore):
    def __init__(self, path: str, history: History) -> None:
        super().__init__(path, history)
        self.sagas = RecordedSagas(self, history)


class RecordedSagas(Sagas):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def start(self, sagas: Sequence[NewSaga], *, tx: object | None = None) -> list[StartedSaga]:
        work = partial(super().start, sagas, tx=tx)
        if tx is not None:
            return await work()  # the transaction's end is the answer
        return await self._history.call(START, [(each.id, each.job.id) for each in sagas], work)

    async def signal(
        self, saga_id: str, name: str, value: str = "null", *, tx: object | None = None
    ) -> SagaAnswer:
        work = partial(super().signal, saga_id, name, value, tx=tx)
        return await self._history.call(SIGNAL, (saga_id, value), work)

    async def cancel(self, saga_id: str, *, actor: str, reason: str, done_too: bool = False) -> SagaAnswer:
        work = partial(super().cancel, saga_id, actor=actor, reason=reason, done_too=done_too)
        return await self._history.call(CANCEL, (saga_id, actor), work)

    async def retry(self, saga_id: str, *, actor: str, tx: object | None = None) -> SagaAnswer:
        work = partial(super().retry, saga_id, actor=actor, tx=tx)
        return await self._history.call(RETRY, saga_id, work)

    async def settle(
        self, saga_id: str, step: str, *, done: bool, result: str | None = None, actor: str
    ) -> SagaAnswer:
        work = partial(super().settle, saga_id, step, done=done, result=result, actor=actor)
        return await self._history.call(SETTLE, (saga_id, step, done), work)

    async def write(
        self, claim: Claim, *, step: Step | None = None, move: Move | None = None, rest: Rest | None = None
    ) -> Written | None:
        work = partial(super().write, claim, step=step, move=move, rest=rest)
        if rest is None:
            return await work()
        return await self._history.call(REST, [(claim.job_id, claim.token)], work)

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._history.call(PRUNE, keep, partial(super().prune, keep=keep, limit=limit))
