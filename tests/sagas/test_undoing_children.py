"""Sagas that a saga has started are undone with it; what cannot be, is left to a person."""

from __future__ import annotations

import pytest
from saga_kit import do, done, fail, settled, undo

from holdfast import Undo
from holdfast.kernel.errors import SagaUndone, UsageError
from holdfast.store.saga_records import SagaAnswer, SagaState
from holdfast.testing import drain


def trip_with_a_leg(hf):
    """A saga that fails after its child is done; with `pivot` there is no way back for that."""

    @hf.saga("leg")
    async def leg(saga, pivot: bool):
        await saga.step("book", do, "leg", undo=Undo(undo, "leg"), pivot=pivot)

    @hf.saga("trip")
    async def trip(saga, pivot: bool):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.run_child(leg, pivot, id="l")
        await saga.signal("go")
        raise ValueError("no cars")

    return trip


async def test_a_child_past_its_pivot_needs_a_person_when_it_must_be_undone(hf):
    run = await trip_with_a_leg(hf).start(True, id="t")
    await settled(hf, run)
    await run.signal("go")
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.NEEDS_OPERATOR, ["hotel", "leg"])
    assert "'l'" in record.error
    assert "has passed its pivot" in record.error
    answer = await hf.sagas.settle("t", "undo/wait/saga/leg/1", done=True, actor="ada")
    assert answer.outcome == "accepted"
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["hotel", "leg", "undo hotel"]


async def test_a_child_whose_steps_are_pruned_needs_a_person_when_it_must_be_undone(hf, monkeypatch):
    async def pruned(self, saga_id, **options):
        return SagaAnswer(saga_id, "no_job", SagaState.DONE)

    monkeypatch.setattr(type(hf.store.sagas), "cancel", pruned)
    run = await trip_with_a_leg(hf).start(False, id="t")
    await settled(hf, run)
    await hf.store.sagas.prune(keep=0)
    assert await hf.sagas.get("l") is not None, "as long as its parent"
    await run.signal("go")
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.NEEDS_OPERATOR, ["hotel", "leg"])
    assert "were pruned" in record.error


async def test_a_child_whose_job_ends_just_now_is_undone_a_moment_later(hf, monkeypatch):
    asked = []
    cancel = type(hf.store.sagas).cancel

    async def ending(self, saga_id, **options):
        asked.append(saga_id)
        if len(asked) == 1:
            return SagaAnswer(saga_id, "ending", SagaState.DONE)
        return await cancel(self, saga_id, **options)

    run = await trip_with_a_leg(hf).start(False, id="t")
    await settled(hf, run)
    monkeypatch.setattr(type(hf.store.sagas), "cancel", ending)
    await run.signal("go")
    async with hf.worker():
        with pytest.raises(SagaUndone, match="no cars"):
            await run.result(20)
    assert (asked, done) == (["l", "l"], ["hotel", "leg", "undo leg", "undo hotel"])


async def test_a_child_that_a_late_run_starts_is_refused(hf):
    """The parent was undone meanwhile: nobody would undo what the child does."""

    @hf.saga("leg")
    async def leg(saga):
        await saga.step("book", do, "leg")

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        raise ValueError("no cars")

    run = await trip.start(id="t")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    [late] = await hf.store.sagas.start([leg.new((), id="l", parent="t")])
    assert late.job_id is None
    await drain(hf)
    assert (await hf.sagas.get("l"), done) == (None, ["hotel", "undo hotel"])


async def test_a_saga_does_not_wait_for_itself(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.run_child(trip, id="t")

    record = await settled(hf, await trip.start(id="t"))
    assert record.state is SagaState.UNDONE
    assert "cannot wait for itself" in record.error


async def test_a_child_that_was_undone_after_the_pivot_runs_anew_when_a_person_says_so(hf):
    run = await past_its_pivot(hf)
    fail("leg", ValueError("no seats"))
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.NEEDS_OPERATOR, ["pay", "leg"])
    assert "no seats" in record.error
    refused = await hf.sagas.settle("t", "pay", done=True, actor="ada")
    assert (refused.outcome, refused.steps) == ("no_such_step", ("wait/saga/leg/1",))
    await hf.sagas.settle("t", "wait/saga/leg/1", done=False, actor="ada")
    await settled(hf, run)
    assert await run.result(5) == "leg!"
    assert (await hf.sagas.get("t/saga/leg/1~")).state is SagaState.DONE
    assert done == ["pay", "leg", "leg"]


async def test_a_person_may_do_by_hand_what_a_child_did_not(hf):
    run = await past_its_pivot(hf)
    fail("leg", ValueError("no seats"))
    await settled(hf, run)
    await hf.sagas.settle("t", "wait/saga/leg/1", done=True, result="by hand", actor="ada")
    await settled(hf, run)
    assert (await run.result(5), done) == ("by hand", ["pay", "leg"])


async def past_its_pivot(hf):
    @hf.saga("leg")
    async def leg(saga) -> str:
        return await saga.step("book", do, "leg")

    @hf.saga("trip")
    async def trip(saga) -> str:
        await saga.step("pay", do, "pay", pivot=True)
        return await saga.run_child(leg)

    return await trip.start(id="t")


@pytest.mark.parametrize("what", ["no saga", "an empty id", "no coroutine"])
async def test_what_cannot_run_beside_is_refused_with_a_reason(hf, what):
    @hf.saga("trip")
    async def trip(saga):
        if what == "no saga":
            await saga.run_child(do)
        elif what == "an empty id":
            await saga.run_child(trip, id="")
        else:
            await saga.gather("a")

    record = await settled(hf, await trip.start(id="t"))
    assert record.state is SagaState.UNDONE
    assert "UsageError" in record.error
    with pytest.raises(UsageError, match="must not be empty"):
        await trip.start(id="")
