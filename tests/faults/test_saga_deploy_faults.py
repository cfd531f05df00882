"""Sagas on real processes of two versions of one program, with wrong clocks, and with a worker that stands still. Rows 9 and 36."""

from __future__ import annotations

import signal

from faultkit import on_postgres
from test_clock_faults import SHIFTED
from waiting import until

from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.saga_records import NewSaga, SagaState

PROGRAM = """
from inside import *
from inside import FOLDER
from holdfast import Undo
from holdfast.sagas import carrier

carrier._PARKED = 0.3  # seconds until code that did not fit is tried again
IS_NEW = {is_new}

async def book(what: str) -> str:
    mark("booked", what=what, new=IS_NEW)
    (FOLDER / f"there-{{what.replace('/', '-')}}").touch()
    return what

async def cancel(what: str) -> None:
    mark("cancelled", what=what, new=IS_NEW)
    await asyncio.sleep(0.05)
    (FOLDER / f"there-{{what.replace('/', '-')}}").unlink(missing_ok=True)

if IS_NEW:
    async def cancel_car(what: str) -> None:
        await cancel(what)

@hf.saga("trip")
async def trip(saga, fails: bool) -> str:
    await saga.step("hotel", book, f"{{saga.id}}/hotel", undo=Undo(cancel, f"{{saga.id}}/hotel"))
    await saga.sleep(0.5)
    if IS_NEW:
        await saga.step("car", book, f"{{saga.id}}/car", undo=Undo(cancel_car, f"{{saga.id}}/car"))
        await saga.sleep(4.0 if saga.id.startswith("slow") else 0.5)
    if fails:
        raise ValueError("no visa")
    return saga.id
"""


async def start(fleet, *ids):
    """Those whose id begins with `f` fail."""
    new = [
        NewSaga(
            id=each,
            name="trip",
            job=NewJob(id=new_id(), task="saga:trip", args=f'{{"fails":{str(each[0] == "f").lower()}}}'),
        )
        for each in ids
    ]
    await fleet.hf.store.sagas.start(new)


async def over(fleet, *ids, seconds=60):
    """Wait for their ends; their states."""

    async def all_over():
        found = [await fleet.hf.sagas.get(each) for each in ids]
        return all(each.finished_at is not None for each in found)

    try:
        await until(all_over, seconds)
    except AssertionError:
        told = [str(await fleet.hf.sagas.get(each)) for each in ids]
        raise AssertionError("\n".join([*told, *(each.log for each in fleet.processes)])) from None
    return [(await fleet.hf.sagas.get(each)).state for each in ids]


def there(fleet, saga_id):
    return {file.name.rpartition("-")[2] for file in fleet.folder.glob(f"there-{saga_id}-*")}


def deployed(fleet, version):
    """A folder with that version of the program, which has the same name in both."""
    folder = fleet.folder / version
    if not folder.exists():
        folder.mkdir()
        (folder / "shop.py").write_text(PROGRAM.format(is_new=version == "new"))
    return {"program": "shop", "PYTHONPATH": str(folder)}


async def test_two_versions_side_by_side(fleet):
    """What the newer began, the older parks and leaves to it, on the way forward and on the way back."""
    old = await fleet.started("-c", "4", **deployed(fleet, "old"))
    before = [f"{kind}{number}" for kind in "df" for number in range(5)]
    await start(fleet, *before)
    await fleet.marked("booked", 5)
    await fleet.started("-c", "4", **deployed(fleet, "new"))
    during = [f"{kind}{number}" for kind in "df" for number in range(5, 10)]
    await start(fleet, *during)
    await fleet.marked("booked", 15)
    old.signal(signal.SIGTERM)
    states = await over(fleet, *before, *during)
    for saga_id, state in zip([*before, *during], states, strict=True):
        if saga_id[0] == "f":
            assert (state, there(fleet, saga_id)) == (SagaState.UNDONE, set()), saga_id
        else:
            assert state is SagaState.DONE, saga_id
            assert "hotel" in there(fleet, saga_id), saga_id


async def test_what_only_the_newer_version_knows_is_parked_by_the_older(fleet):
    """A step on the way forward, an undo on the way back: each goes on by itself when the newer one is back."""
    new = await fleet.started("-c", "4", HOLDFAST_CRASH="saga.decided", **deployed(fleet, "new"))
    await start(fleet, "slow")
    await fleet.marked("booked", what="slow/car")
    await start(fleet, "f1")
    await fleet.marked("crash")  # that it is undone is decided, and no more
    await until(lambda: not new.alive, 10)
    await start(fleet, "d2")
    old = await fleet.started("-c", "4", **deployed(fleet, "old"))
    await over(fleet, "d2")

    async def parked():
        found = [await fleet.hf.sagas.get(each) for each in ("slow", "f1")]
        return all(each.state is SagaState.PARKED for each in found)

    await until(parked, 20)
    back = await fleet.hf.sagas.get("f1")
    assert (back.state, back.undoing) == (SagaState.PARKED, True)
    assert "shop:cancel_car" in back.error
    assert "without asking for 'car'" in (await fleet.hf.sagas.get("slow")).error
    await fleet.started("-c", "4", **deployed(fleet, "new"))
    old.signal(signal.SIGTERM)  # or it may come first again and again, and they look less often each time
    assert await over(fleet, "slow", "f1") == [SagaState.DONE, SagaState.UNDONE]
    assert (there(fleet, "slow"), there(fleet, "f1")) == ({"hotel", "car"}, set())


@on_postgres
async def test_sagas_on_workers_with_wrong_clocks(fleet):
    """They sleep and are undone by the database's clock, whatever those of the workers say."""
    (fleet.folder / "sitecustomize.py").write_text(SHIFTED)
    for name, offset in (("ahead", 86400), ("behind", -86400), ("jumping", 0)):
        (fleet.folder / name).write_text(str(offset))
        given = deployed(fleet, "new")
        given["PYTHONPATH"] += f" {fleet.folder}"
        await fleet.started("-c", "2", CLOCK_FILE=str(fleet.folder / name), **given)
    ids = [f"{kind}{number}" for kind in "df" for number in range(6)]
    await start(fleet, *ids)
    for offset in (3600, -3600, 86400):
        await fleet.marked("booked", 2)
        (fleet.folder / "jumping").write_text(str(offset))
    states = await over(fleet, *ids)
    for saga_id, state in zip(ids, states, strict=True):
        assert state is (SagaState.UNDONE if saga_id[0] == "f" else SagaState.DONE)
        assert there(fleet, saga_id) == (set() if saga_id[0] == "f" else {"hotel", "car"})
        record = await fleet.hf.sagas.get(saga_id)
        assert 1.0 <= record.finished_at - record.started_at < 60


async def test_a_worker_that_stands_still_while_it_undoes(fleet):
    """Another goes on where it stood, past its lease. What it does when it wakes changes nothing."""
    given = deployed(fleet, "new")
    frozen = await fleet.started("-c", "1", lease=2.0, HOLDFAST_FREEZE="undo.begun", **given)
    await start(fleet, "f1")
    await fleet.marked("frozen")
    await fleet.started("-c", "1", lease=2.0, **given)
    assert await over(fleet, "f1") == [SagaState.UNDONE]
    before = await fleet.hf.sagas.get("f1")
    frozen.signal(signal.SIGCONT)
    await start(fleet, "d1", "d2", "f2")
    assert await over(fleet, "d1", "d2", "f2") == [SagaState.DONE, SagaState.DONE, SagaState.UNDONE]
    after = await fleet.hf.sagas.get("f1")
    assert (after.state, after.finished_at) == (before.state, before.finished_at)
    assert there(fleet, "f1") == set()
