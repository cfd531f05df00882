"""Sagas whose worker is killed at each crash point of their steps and of their undos. Row 9."""

from __future__ import annotations

import os
import random
import signal

import pytest
from waiting import until

from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.saga_records import OVER, STUCK, NewSaga, SagaState

BOOK = """
import signal
from contextlib import suppress
from holdfast import Undo
from holdfast.kernel.context import context
from holdfast.kernel.crashpoints import armed

def die(point):
    # Each saga's story says at which point, and at which passing of it, its worker is killed, once.
    wanted, _, at = (context().correlation_id or "").partition("#")
    if wanted != point:
        return
    name = f"{wanted}#{at}"
    passed = sum(marked("passed", at=f"{name}/{each}") for each in range(10))
    mark("passed", at=f"{name}/{passed}")
    if passed == int(at):
        mark("crash", point=name)
        os.kill(os.getpid(), signal.SIGKILL)

arming = armed("*", die)
arming.__enter__()

def place(what):
    return FOLDER / f"there-{what.replace('/', '-')}"

async def book(what: str) -> str:
    mark("booked", what=what)
    place(what).touch()
    return what

async def cancel(what: str) -> None:
    mark("cancelled", what=what)
    with suppress(FileNotFoundError):
        place(what).unlink()

@hf.saga("trip")
async def trip(saga, fails: bool) -> None:
    for leg in ("hotel", "flight"):
        await saga.step(leg, book, f"{saga.id}/{leg}", undo=Undo(cancel, f"{saga.id}/{leg}"))
    await saga.sleep(0.3)
    await saga.step("car", book, f"{saga.id}/car", undo=cancel)
    if fails:
        raise ValueError("no visa")
"""
FORWARD = ["effect.begun", "effect.called", "step.recorded"]
BACK = ["saga.decided", "undo.begun", "undo.called", "undo.recorded"]
POINTS = [
    *(f"{point}#{at}" for point in FORWARD for at in range(3)),
    *(f"{point}#{at}" for point in BACK for at in range(1 if point == "saga.decided" else 3)),
    *(f"{point}#0" for point in ("saga.resting", "saga.over", "body.done")),
]
# All of them with HOLDFAST_ALL_POINTS=1; else two, others each time.
ALL = [POINTS[first : first + 3] for first in range(0, len(POINTS), 3)]
GROUPS = ALL if os.environ.get("HOLDFAST_ALL_POINTS") else [random.sample(POINTS, 2)]


@pytest.mark.parametrize("group", range(len(GROUPS)))
async def test_a_saga_is_killed_at_its_crash_points(fleet, group):
    """Whatever the point, it goes on from there: all of it is done, or all of it is undone."""
    fleet.program(f"from inside import FOLDER\n{BOOK}")
    chosen, sagas = GROUPS[group], {}
    for point in chosen:
        for fails in (False, True):
            if fails or not point.startswith(tuple(BACK)):
                sagas[f"trip:{len(sagas)}"] = (point, fails)
    new = [
        NewSaga(
            id=saga_id,
            name="trip",
            job=NewJob(
                id=new_id(), task="saga:trip", args=f'{{"fails":{str(fails).lower()}}}', correlation_id=point
            ),
        )
        for saga_id, (point, fails) in sagas.items()
    ]
    await fleet.hf.store.sagas.start(new)
    supervisor = fleet.start("-p", "1", lease=60)

    async def over():
        found = [await fleet.hf.sagas.get(saga_id) for saga_id in sagas]
        return all(each.state in OVER or each.state in STUCK for each in found)

    try:
        await until(over, 60)
    except AssertionError:
        states = [str(await fleet.hf.sagas.get(saga_id)) for saga_id in sagas]
        raise AssertionError("\n".join([*states, supervisor.log])) from None
    crashed = {each["point"] for each in fleet.marks("crash")}
    assert crashed == set(chosen), f"never came to {set(chosen) - crashed}: {supervisor.log}"
    for saga_id, (point, fails) in sagas.items():
        record = await fleet.hf.sagas.get(saga_id)
        state = SagaState.UNDONE if fails else SagaState.DONE
        there = {file.name for file in fleet.folder.glob(f"there-{saga_id}-*")}
        legs = set() if fails else {f"there-{saga_id}-{leg}" for leg in ("hotel", "flight", "car")}
        assert (record.state, there) == (state, legs), (point, record)
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0
