"""Callers who emit: plainly, or with rows of their own in a transaction that commits, rolls back, or nobody knows."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.kernel.clock import sleep
from holdfast.kernel.context import Context, become
from holdfast.kernel.errors import CommitUnknown, VersionConflict
from holdfast.kernel.randomness import jittered
from holdfast.store.event_records import Emitted
from holdfast.testing.simulation.events.spec import EventSpec
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import Op

TRIES = 8
EMITS = ("emit", "emit in transaction", "emit expecting")
ROW = "INSERT INTO sim_row (op, kind, job_id) VALUES ($1, 'emitted', $2)"


class Rollback(Exception):
    """The caller changed its mind."""


async def emit(life: Life, op: Op) -> None:
    """Each event in a call of its own, all at once: they are committed together, or one after the other."""
    become(Context(correlation_id=f"story {op.number}", trace=f"trace {op.number}"))
    for place, spec in enumerate(op.events):
        life.process.start(_emit_one(life, op, place, spec), f"emit {op.number}.{place}")


async def _emit_one(life: Life, op: Op, place: int, spec: EventSpec) -> None:
    """What was refused is emitted again. What nobody knows is not: nothing says that the second is the first."""
    for go in range(TRIES):
        asked = (op.number, (place,), go)
        work = partial(_emit, life, spec, data_of(op, place, go, spec), None)
        try:
            [emitted] = await life.history.call("emit", asked, work)
        except CommitUnknown:
            return
        except REFUSALS:
            await sleep(jittered(0.4))
        else:
            await _look(life, spec, data_of(op, place, go, spec), emitted)
            return


async def emit_expecting(life: Life, op: Op) -> None:
    """Who has seen a version emits the next one, or is told that another has."""
    [spec] = op.events
    become(Context(correlation_id=f"story {op.number}", trace=f"trace {op.number}"))
    if spec.key is None:
        return
    for go in range(TRIES):
        try:
            seen = await life.store.outbox.version(spec.key)
            await sleep(op.seconds)
            work = partial(_emit, life, spec, data_of(op, 0, go, spec), None, seen)
            await life.history.call("emit expecting", (op.number, (0,), go, seen), work)
        except CommitUnknown:
            return
        except (*REFUSALS, VersionConflict):
            await sleep(jittered(0.4))
        else:
            return


async def emit_in_transaction(life: Life, op: Op) -> None:
    become(Context(correlation_id=f"story {op.number}", trace=f"trace {op.number}"))
    for go in range(TRIES):
        asked = (op.number, tuple(range(len(op.events))), go)
        try:
            emitted = await life.history.call("emit in transaction", asked, partial(_transact, life, op, go))
        except (CommitUnknown, Rollback):
            return
        except REFUSALS:
            await sleep(jittered(0.4))
        else:
            for place, spec in enumerate(op.events):
                await _look(life, spec, data_of(op, place, go, spec), emitted[place])
            return


async def _transact(life: Life, op: Op, go: int) -> list[Emitted]:
    async with life.store.transaction() as tx:
        await tx.execute(ROW, op.number, str(go))
        emitted: list[Emitted] = []
        for place, spec in enumerate(op.events):
            emitted += await _emit(life, spec, data_of(op, place, go, spec), tx)
            await sleep(op.seconds / len(op.events))
        if op.kind == "emit, then roll back":
            raise Rollback
    return emitted


async def _emit(
    life: Life, spec: EventSpec, data: dict[str, Any], tx: object | None, expect: int | None = None
) -> list[Emitted]:
    return [await life.app.emit(spec.type, data, key=spec.key, tx=tx, expect=expect)]


async def _look(life: Life, spec: EventSpec, data: dict[str, Any], emitted: Emitted) -> None:
    await life.app.viewing.look(emitted, spec.type, spec.key, data)


def data_of(op: Op, place: int, go: int, spec: EventSpec) -> dict[str, Any]:
    plays = {group: list(ends) for group, ends in spec.plays.items()}
    return {"op": op.number, "place": place, "go": go, "plays": plays, "flaw": spec.flaw, "bad": spec.bad}
