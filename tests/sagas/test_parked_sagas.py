"""A saga whose code does not fit is parked, and looks by itself whether it does again."""

from __future__ import annotations

from saga_kit import do, done, settled
from waiting import until

from holdfast import Secret
from holdfast.jobs.control import StepsChanged
from holdfast.sagas import carrier
from holdfast.store.saga_records import SagaState


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
