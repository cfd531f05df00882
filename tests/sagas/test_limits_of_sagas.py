"""What a saga cannot keep, and how much of it there may be: it ends whole all the same."""

from __future__ import annotations

import asyncio

import pytest
from saga_kit import do, done, settled, take_back, undo

from holdfast import CannotTell, Undo
from holdfast.store.saga_records import SagaState
from holdfast.store.steps import LAST_NUMBER, MOST_STEPS
from holdfast.testing import drain


async def not_a_number() -> float:
    done.append("pay")
    return float("nan")


async def not_a_number_of(several: int) -> float:
    """All of them are under way before the first answers."""
    done.append("pay")
    while done.count("pay") < several:
        await asyncio.sleep(0)
    return float("nan")


async def too_large() -> str:
    done.append("pay")
    return "x" * 300_000


async def nobody_knows(*_args) -> type[CannotTell]:
    done.append("looked")
    return CannotTell


@pytest.mark.parametrize("function", [not_a_number, too_large])
@pytest.mark.parametrize("options", [{}, {"policy": "at_most_once"}, {"reconcile": nobody_knows}])
async def test_a_result_that_cannot_be_kept_fails_the_step_when_it_can_be_undone_without(
    hf, function, options
):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("pay", function, undo=Undo(undo, "pay"), **options)

    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "pay", "undo pay", "undo hotel"])
    assert "'pay' was done, but its result cannot be kept" in record.error
    assert (await hf.jobs.get(record.job_id)).state == "succeeded"


@pytest.mark.parametrize("options", [{"undo": take_back}, {"undo": Undo(undo, "pay"), "pivot": True}])
async def test_a_result_that_cannot_be_kept_needs_a_person_when_it_is_needed(hf, options):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("pay", not_a_number, **options)

    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.NEEDS_OPERATOR, ["pay"])
    assert "'pay' was done, but its result cannot be kept" in record.error


async def test_results_of_many_at_once_that_cannot_be_kept_are_all_undone(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.gather(
            *(saga.step(f"pay:{each}", not_a_number_of, 3, undo=Undo(undo, each)) for each in ("a", "b", "c"))
        )

    run = await trip.start(id="t")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert sorted(done) == ["pay", "pay", "pay", "undo a", "undo b", "undo c"]


async def test_a_saga_with_all_the_steps_it_may_have_is_undone(hf, monkeypatch):
    """Each undo is a step too, and has a number of its own."""
    assert LAST_NUMBER >= 2 * MOST_STEPS
    monkeypatch.setattr("holdfast.jobs.steps.MOST_STEPS", 3)
    monkeypatch.setattr("holdfast.store.steps.LAST_NUMBER", LAST_NUMBER - 2 * (MOST_STEPS - 3))

    @hf.saga("trip")
    async def trip(saga):
        for each in range(4):
            await saga.step(f"leg:{each}", do, str(each), undo=Undo(undo, str(each)))

    run = await trip.start(id="t")
    await drain(hf)
    record = await run.record()
    assert (record.state, done) == (SagaState.UNDONE, ["0", "1", "2", "undo 2", "undo 1", "undo 0"])
    assert "at most 3 steps" in record.error


async def test_sagas_may_start_others_however_deep(hf):
    """The id of each is made of its parent's, and has an end."""

    @hf.saga("trip")
    async def trip(saga, deep: int) -> int:
        await saga.step("leg", do, str(deep), undo=Undo(undo, str(deep)))
        below = 0 if deep == 0 else await saga.run_child(trip, deep - 1)
        if deep == 1:
            raise ValueError("too deep")
        return below + 1

    run = await trip.start(70, id="t")
    for _ in range(10):
        await drain(hf, most=2_000)
    assert (await run.record()).state is SagaState.UNDONE
    assert done == [str(each) for each in range(70, -1, -1)] + [f"undo {each}" for each in range(71)]
