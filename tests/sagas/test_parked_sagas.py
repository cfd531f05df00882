"""A saga whose code does not fit is parked, and looks by itself whether it does again."""

from __future__ import annotations

import importlib
import sys

import pytest
from saga_kit import do, done, settled, undo
from waiting import until

from holdfast import Found, Secret, Undo
from holdfast.jobs.control import StepsChanged
from holdfast.sagas import carrier
from holdfast.sagas.plans import Plan
from holdfast.store.saga_records import SagaState
from holdfast.store.steps import Kind, Progress, Step


async def test_a_parked_saga_goes_on_by_itself_when_its_code_fits_again(hf, monkeypatch):
    """As in a deploy: a worker with the old code parks what one with the new code has moved on."""
    monkeypatch.setattr(carrier, "_PARKED", 0.3)
    told = []
    monkeypatch.setattr(carrier, "note", lambda what, **about: told.append(what))
    is_old = [True]

    @hf.saga("trip")
    async def trip(saga, key: Secret[str]):
        await saga.step("hotel", do, "hotel")
        if is_old[0]:
            raise StepsChanged(f"the code has changed: {key}")
        return await saga.step("flight", do, "flight")

    run = await trip.start("sesame", id="t")
    first = await settled(hf, run)
    assert (first.state, first.error) == (SagaState.PARKED, "the code has changed: ***")

    async def parked_again():
        return (await run.record()).at > first.at

    async with hf.worker():
        await until(parked_again)
        assert told == ["saga.stuck"], "once, although it was tried again"
        is_old[0] = False
        await until(lambda: _is_done(run))
    assert done == ["hotel", "flight"]


async def _is_done(run):
    return await run.status() is SagaState.DONE


async def test_a_parked_saga_is_undone_when_its_time_is_over(hf):
    @hf.saga("trip", timeout=1)
    async def trip(saga):
        raise StepsChanged("the code has changed")

    run = await trip.start(id="t")
    assert (await settled(hf, run)).state in (SagaState.PARKED, SagaState.UNDONE)
    async with hf.worker():
        await until(lambda: _is_undone(run))


async def _is_undone(run):
    return await run.status() is SagaState.UNDONE


@pytest.mark.parametrize(
    "breaks", ["raise ValueError('not here')", "raise SystemExit(1)", "1 +", "import no_such"]
)
async def test_an_undo_in_a_module_that_cannot_be_imported_parks_the_saga(hf, tmp_path, monkeypatch, breaks):
    """Its job would fail again and again, and the saga would be compensating for as long as that."""
    monkeypatch.syspath_prepend(tmp_path)
    name = f"undos_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("async def undo(what): ...\n")
    module = importlib.import_module(name)

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(module.undo, "hotel"))
        monkeypatch.delitem(sys.modules, name)
        (tmp_path / f"{name}.py").write_text(
            f"{breaks}\n# made longer, so that nobody takes it for the old one\n"
        )
        importlib.invalidate_caches()
        raise ValueError("no")

    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.undoing) == (SagaState.PARKED, True)
    assert f"{name}:undo" in record.error


async def begun(hf, **plan):
    """A step `pay` whose worker was lost, and whose saga somebody wants undone."""

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("pay", do, "pay", undo=Undo(undo, "pay"), policy="at_most_once", reconcile=looked)

    run = await trip.start(id="t")
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="lost")
    stored = Plan(undo="saga_kit:undo", args='["pay"]', call='["pay"]', **plan).text()
    step = Step(name="pay", number=0, kind=Kind.AT_MOST_ONCE, progress=Progress.BEGUN, plan=stored)
    await hf.store.sagas.write(claim, step=step)
    await hf.store.claims.release([claim])
    await run.cancel()
    return run


async def looked(what: str) -> Found:
    return Found(float("nan"))


@pytest.mark.parametrize("pivot", [False, True])
async def test_a_lookup_that_a_deploy_has_removed_parks_the_saga(hf, pivot):
    """A worker of another version may have it."""
    run = await begun(hf, reconcile="saga_kit:gone", pivot=pivot)
    record = await settled(hf, run)
    assert (record.state, record.undoing, done) == (SagaState.PARKED, not pivot, [])
    assert "'pay' was done is known by 'saga_kit:gone'" in record.error


async def test_what_a_lookup_finds_need_not_be_kept_when_it_is_not_needed(hf):
    run = await begun(hf, reconcile=f"{__name__}:looked")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["undo pay"]


async def test_an_error_that_is_of_no_step_parks_the_saga(hf, monkeypatch):
    """Of the engine itself, or of what it calls."""

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        raise ValueError("no")

    def broken(*_args):
        raise TypeError("nobody thought of that")

    run = await trip.start(id="t")
    with monkeypatch.context() as broke:
        broke.setattr("holdfast.sagas.undoing.restored", broken)
        record = await settled(hf, run)
    assert (record.state, record.undoing) == (SagaState.PARKED, True)
    assert "nobody thought of that" in record.error
    await hf.sagas.retry("t", actor="ada")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["hotel", "undo hotel"]
