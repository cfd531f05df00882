"""Sagas for the suite: started, claimed, and moved in few words."""

from __future__ import annotations

from typing import Any

from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.saga_records import (
    Move,
    NewSaga,
    SagaRecord,
    SagaState,
)
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.kit import (
    job,
    state_of,
    take_one,
)

DAY = 86_400.0
RUNNING, WAITING = Move(state=SagaState.RUNNING), Move(state=SagaState.WAITING, waits="a while")
UNDOING = Move(state=SagaState.COMPENSATING, undoing=True, error="it failed")
DONE, UNDONE = Move(state=SagaState.DONE, result="1"), Move(state=SagaState.UNDONE)
STUCK = Move(state=SagaState.NEEDS_OPERATOR, error="look at it")


def new(saga_id: str, **options: Any) -> NewSaga:
    return NewSaga(**{"id": saga_id, "name": "trip.book", "job": job(task="saga:trip.book"), **options})


def step(name: str, number: int = 0, progress: Progress = Progress.DONE, **options: Any) -> Step:
    return Step(name=name, number=number, kind=Kind.AT_LEAST_ONCE, progress=progress, **options)


def begun(name: str, number: int = 0, **options: Any) -> Step:
    return step(name, number, Progress.BEGUN, **options)


async def started(store: Store, saga_id: str, **options: Any) -> Claim:
    """A saga that was started, and whose job runs."""
    [answer] = await store.sagas.start([new(saga_id, **options)])
    claim = await take_one(store)
    assert claim.job_id == answer.job_id
    return claim


async def saga(store: Store, saga_id: str) -> SagaRecord:
    record = await store.sagas.get(saga_id)
    assert record is not None, f"the saga {saga_id} should be there"
    return record


async def state_and_job(store: Store, saga_id: str) -> tuple[SagaState, tuple[State, Held | None]]:
    record = await saga(store, saga_id)
    return record.state, await state_of(store, record.job_id)
