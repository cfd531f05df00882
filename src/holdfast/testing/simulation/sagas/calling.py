"""Callers of sagas: they start them by their id, in transactions or not, send signals, emit events, and have sagas undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from holdfast.kernel.clock import sleep
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.randomness import jittered
from holdfast.sagas.saga import Saga
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import Op
from holdfast.testing.simulation.sagas.spec import GO, SagaSpec

TRIES = 8
TROUBLE = (*REFUSALS, CommitUnknown)
IN_TRANSACTION = "start a saga in a transaction"
ROW = "INSERT INTO sim_row (op, kind, job_id) VALUES ($1, 'saga', $2)"


class Rollback(Exception):
    """The caller changed its mind."""


async def start(life: Life, op: Op) -> None:
    """Until it has an answer: the id makes all tries one saga."""
    spec, saga = _declared(life, op)
    for _ in range(TRIES):
        try:
            await saga.start(list(spec.acts), id=spec.id)
        except TROUBLE:
            await sleep(jittered(0.5))
        else:
            return


async def start_in_transaction(life: Life, op: Op) -> None:
    """With a row of the caller's own. What nobody knows is started again, by the same id."""
    for _ in range(TRIES):
        try:
            await life.history.call(IN_TRANSACTION, (op.name, op.number), partial(_transact, life, op))
        except TROUBLE:
            await sleep(jittered(0.5))
        except Rollback:
            return
        else:
            return


async def _transact(life: Life, op: Op) -> bool:
    spec, saga = _declared(life, op)
    async with life.store.transaction() as tx:
        await tx.execute(ROW, op.number, spec.id)
        run = await saga.start(list(spec.acts), id=spec.id, tx=tx)
        await sleep(op.seconds)
        if op.kind == "roll back saga":
            raise Rollback
    return run.created


async def signal(life: Life, op: Op) -> None:
    """Once: nothing says that a second one is the first."""
    for _ in range(TRIES):
        try:
            answer = await life.store.sagas.signal(op.name, GO, encode(op.number))
        except CommitUnknown:
            return
        except REFUSALS:
            await sleep(jittered(0.4))
        else:
            if answer.outcome != "missing":
                return
            await sleep(jittered(1.0))  # it is not started yet


async def cancel(life: Life, op: Op) -> None:
    await _until_answered(partial(life.store.sagas.cancel, op.name, actor="operator", reason="simulated"))


async def emit(life: Life, op: Op) -> None:
    [spec] = op.events
    for _ in range(TRIES):
        try:
            await life.app.bus.emitter.emit(spec.type, {"op": op.number}, key=spec.key, tx=None, expect=None)
        except CommitUnknown:
            return
        except REFUSALS:
            await sleep(jittered(0.4))
        else:
            return


async def _until_answered(call: Callable[[], Awaitable[Any]]) -> None:
    for _ in range(TRIES):
        try:
            await call()
        except TROUBLE:
            await sleep(jittered(0.5))
        else:
            return


def _declared(life: Life, op: Op) -> tuple[SagaSpec, Saga]:
    story = life.fleet.plan.story
    assert story is not None
    spec = next(each for each in story.sagas if each.id == op.name)
    return spec, life.app.saga(spec.name)
