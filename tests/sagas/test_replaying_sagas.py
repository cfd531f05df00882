"""A recorded history against new code: a deploy that takes other decisions is found before it is made."""

from __future__ import annotations

import asyncio
import json

import pytest
import saga_kit
from saga_kit import do, done, fail, settled, undo

from holdfast import Undo
from holdfast.testing import replay

code = {}


def version(hf, body):
    """The saga, whose code is another from now on."""
    code["trip"] = body

    async def trip(saga, where: str):
        return await code["trip"](saga, where)

    return hf.sagas.declared("trip") or hf.saga("trip")(trip)


async def first(saga, where):
    await saga.step("hotel", do, f"hotel in {where}", undo=Undo(undo, "hotel"))
    how = await saga.signal("how")
    [flight, _] = await saga.gather(saga.step("flight", do, how), saga.sleep(0))
    return flight


async def history_of(hf, body=first, *, signals=("by air",), **fails):
    """As `holdfast sagas history --json` prints it."""
    trip = version(hf, body)
    for what, error in fails.items():
        fail(what, error)
    run = await trip.start("Rome", id="t")
    for value in signals:
        await run.signal("how", value)
    await settled(hf, run)
    done.clear()
    return trip, json.dumps((await hf.sagas.history("t")).as_json())


@pytest.mark.parametrize("signals", [(), ("by air",)], ids=["waiting", "done"])
async def test_the_same_code_takes_the_same_decisions(hf, signals):
    trip, history = await history_of(hf, signals=signals)
    found = await replay(trip, history)
    assert found, found.told
    assert done == []


async def test_code_that_only_adds_at_the_end_of_what_waits_is_safe(hf):
    async def longer(saga, where):
        await first(saga, where)
        await saga.step("car", do, "car")

    trip, history = await history_of(hf, signals=())
    version(hf, longer)
    assert await replay(trip, history)
    assert done == []


@pytest.mark.parametrize("signals", [(), ("by air",)], ids=["waiting", "done"])
async def test_a_step_that_is_new_before_the_end_is_found(hf, signals):
    async def other(saga, where):
        await saga.step("visa", do, "visa")
        return await first(saga, where)

    trip, history = await history_of(hf, signals=signals)
    version(hf, other)
    found = await replay(trip, history)
    assert not found
    assert "Step 'visa' is new, and 'hotel'" in found.told


async def test_a_step_that_is_missing_is_found(hf):
    async def shorter(saga, where):
        await saga.step("hotel", do, f"hotel in {where}", undo=Undo(undo, "hotel"))

    trip, history = await history_of(hf)
    version(hf, shorter)
    found = await replay(trip, history)
    assert not found
    assert "without asking for" in found.told


async def test_another_result_is_found(hf):
    async def other(saga, where):
        return f"{await first(saga, where)}?"

    trip, history = await history_of(hf)
    version(hf, other)
    found = await replay(trip, history)
    assert (bool(found), found.told) == (False, "It returns 'by air!?', and the history has 'by air!'.")


async def test_code_that_goes_on_after_what_was_done_is_found(hf):
    async def longer(saga, where):
        await first(saga, where)
        await saga.step("car", do, "car")

    trip, history = await history_of(hf)
    version(hf, longer)
    assert "the history says that it was done" in (await replay(trip, history)).told


async def test_a_saga_that_was_undone_ends_where_it_failed(hf):
    async def failing(saga, where):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("car", do, "car")

    trip, history = await history_of(hf, failing, signals=(), car=ValueError("no cars"))
    assert json.loads(history)["saga"]["state"] == "undone"
    assert await replay(trip, history)


async def test_an_undo_that_is_gone_is_found(hf, monkeypatch):
    trip, history = await history_of(hf)
    monkeypatch.delattr(saga_kit, "undo")
    found = await replay(trip, history)
    assert (bool(found), found.told) == (
        False,
        "The code does not have the undos of these steps: 'hotel' (saga_kit:undo).",
    )


async def test_a_failure_that_was_handled_is_handled_again(hf):
    async def handling(saga, where):
        try:
            await saga.step("car", do, "car")
        except ValueError:
            return await saga.step("bus", do, "bus")

    trip, history = await history_of(hf, handling, signals=(), car=ValueError("no cars"))
    assert await replay(trip, history)


async def test_a_wait_in_a_task_group_is_where_the_history_ends(hf):
    async def grouped(saga, where):
        async with asyncio.TaskGroup() as group:
            group.create_task(saga.signal("how"))
            group.create_task(saga.signal("when"))

    trip, history = await history_of(hf, grouped, signals=())
    found = await replay(trip, history)
    assert found, found.told
    assert "wait/signal/" in found.told
