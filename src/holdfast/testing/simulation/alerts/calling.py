"""Callers that raise alerts and end them, in transactions or not, until they have an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.randomness import jittered
from holdfast.testing.simulation.alerts.spec import KIND
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import Op

TRIES = 8


class Rollback(Exception):
    """The caller changed its mind."""


async def raise_(life: Life, op: Op) -> None:
    await _until_answered(life, op, partial(life.app.alerts.raise_, KIND, op.name))


async def over(life: Life, op: Op) -> None:
    await _until_answered(life, op, partial(life.app.alerts.over, KIND, op.name))


async def raise_in_transaction(life: Life, op: Op) -> None:
    await _until_answered(life, op, partial(_transact, life, op))


async def _transact(life: Life, op: Op) -> None:
    async with life.store.transaction() as tx:
        await life.app.alerts.raise_(KIND, op.name, tx=tx)
        await sleep(op.seconds)
        if op.kind == "roll back alert":
            raise Rollback


async def _until_answered(life: Life, op: Op, work: Callable[[], Awaitable[object]]) -> None:
    for _ in range(TRIES):
        try:
            await life.history.call(op.kind, op.name, work)
        except (*REFUSALS, CommitUnknown):
            await sleep(jittered(0.5))
        except Rollback:
            return
        else:
            return
