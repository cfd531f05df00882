"""A saga that forgets an `await` is not done: it is undone, and says what was never awaited. One that rests forgets nothing."""

from __future__ import annotations

import warnings

import pytest
import saga_kit
from saga_kit import do, settled, undo

from holdfast.sagas.plans import Undo
from holdfast.testing import drain, replay

VERBS = {
    "step": lambda saga, _: saga.step("pay", do, "pay"),
    "sleep": lambda saga, _: saga.sleep(1),
    "signal": lambda saga, _: saga.signal("go"),
    "wait_for": lambda saga, _: saga.wait_for("order.paid"),
    "run_child": lambda saga, child: saga.run_child(child),
    "gather": lambda saga, _: saga.gather(),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_never_awaited_fails_the_saga(hf, verb):
    @hf.saga("child")
    async def child(saga) -> None: ...

    @hf.saga("battle")
    async def battle(saga) -> None:
        await saga.step("create", do, "create", undo=Undo(undo, "create"))
        VERBS[verb](saga, child)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = await settled(hf, await battle.start())
    assert record.state == "undone"
    assert "was asked for and never awaited" in record.error
    assert f"saga.{verb}" in record.error
    assert saga_kit.done == ["create", "undo create"]


async def test_what_a_saga_that_rests_has_not_come_to_is_no_fault(hf):
    @hf.saga("battle")
    async def battle(saga) -> str:
        late = saga.step("late", do, "late")
        await saga.signal("go")
        return await late

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = await battle.start()
        await drain(hf)
        await run.signal("go")
        record = await settled(hf, run)
    assert record.state == "done"
    assert saga_kit.done == ["late"]


async def test_an_undo_that_forgets_is_not_done(hf):
    hf.event("battle.undone", int, unheard=True)
    forgets = [True]

    async def take_back() -> None:
        asked = hf.emit("battle.undone", 1)
        if forgets:
            forgets.pop()
        else:
            await asked

    hf.undo("take back", take_back)

    @hf.saga("battle", undo_retry=saga_kit.QUICK)
    async def battle(saga) -> None:
        await saga.step("create", do, "create", undo=Undo(take_back))
        raise KeyError

    record = await settled(hf, await battle.start())
    assert record.state == "undone", record.error
    assert len(await hf.outbox.find(type="battle.undone")) == 1


async def test_a_replay_tells_of_it(hf):
    asks = []

    @hf.saga("battle")
    async def battle(saga) -> None:
        work = saga.step("create", do, "create")
        if not asks:
            await work

    run = await battle.start()
    assert (await settled(hf, run)).state == "done"
    history = await hf.sagas.history(run.id)
    assert await replay(battle, history)
    asks.append(1)
    answer = await replay(battle, history)
    assert not answer
    assert "never awaited" in answer.told
