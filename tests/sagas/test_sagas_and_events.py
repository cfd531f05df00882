"""Sagas that wait for events, and handlers of events that are watched as one saga."""

from __future__ import annotations

import asyncio

import pytest
from saga_kit import do, done, settled, undo
from waiting import until

from holdfast import Event, Holdfast, Tx, Undo
from holdfast.kernel.context import within
from holdfast.kernel.errors import SagaUndone
from holdfast.store.saga_records import SagaState
from holdfast.testing import drain


async def test_an_event_wakes_the_saga_that_waits_for_it(hf):
    @hf.saga("trip", hears=["payment.failed"])
    async def trip(saga, key: str):
        event = await saga.wait_for("payment.settled", key=key)
        return [event.type, event.key, event.version, event.data]

    run = await trip.start("trip:1")
    record = await settled(hf, run)
    assert record.waits == "waits for event 'payment.settled' of 'trip:1'"
    await hf.emit("payment.settled", {"sum": 3}, key="trip:2")
    await hf.emit("payment.failed", {"sum": 4}, key="trip:1")
    assert (await settled(hf, run)).state is SagaState.WAITING
    await hf.emit("payment.settled", {"sum": 5}, key="trip:1")
    await settled(hf, run)
    assert await run.result(5) == ["payment.settled", "trip:1", 2, {"sum": 5}]


async def test_events_since_the_saga_began_count_once_each(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("book", do, "book")
        return [(await saga.wait_for("paid")).data for _ in range(3)]

    await hf.emit("paid", 0)
    await drain(hf)
    await asyncio.sleep(0.01)
    run = await trip.start()
    await hf.emit("paid", 1)
    await hf.emit("paid", 2)
    await settled(hf, run)
    await hf.emit("paid", 3)
    await settled(hf, run)
    assert await run.result(5) == [1, 2, 3]


async def test_branches_that_wait_for_the_same_get_one_event_each(hf):
    @hf.saga("trip")
    async def trip(saga):
        async def late():
            await saga.signal("go")
            return (await saga.wait_for("paid")).data

        async def early():
            return (await saga.wait_for("paid")).data

        return await saga.gather(late(), early(), early())

    run = await trip.start()
    await settled(hf, run)
    await hf.emit("paid", 1)
    await settled(hf, run)
    await run.signal("go")
    await settled(hf, run)
    for number in (2, 3):
        assert await run.status() is SagaState.WAITING
        await hf.emit("paid", number)
        await settled(hf, run)
    assert sorted(await run.result(5)) == [1, 2, 3]


async def test_a_wait_for_an_event_ends_by_its_timeout(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("book", do, "book", undo=Undo(undo, "book"))
        await saga.wait_for("paid", timeout=0)

    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, ["book", "undo book"])
    assert "There was no event 'paid' within 0 s" in record.error


async def test_what_the_saga_itself_emits_reaches_it(hf):
    async def pay():
        await hf.emit("paid", 1, key="k")

    @hf.saga("trip")
    async def trip(saga):
        _, event = await saga.gather(saga.step("pay", pay), saga.wait_for("paid", key="k"))
        return event.data

    run = await trip.start()
    await settled(hf, run)
    assert await run.result(5) == 1


async def test_a_worker_wakes_sagas_by_events(hf):
    """Its listener and its relay, in a program that hears no events in other ways."""

    @hf.saga("trip")
    async def trip(saga, number: int):
        return (await saga.wait_for("paid", key=f"k:{number}")).data

    runs = [await trip.start(number) for number in range(5)]
    async with hf.worker():

        async def all_wait():
            return all([await run.status() == SagaState.WAITING for run in runs])

        await until(all_wait)
        for number in range(5):
            await hf.emit("paid", number, key=f"k:{number}")
        assert [await run.result(20) for run in runs] == list(range(5))


# --- choreography ---


def battle(hf, **options):
    """Three services that answer each other's events, and one that takes back."""

    @hf.on("battle.requested", group="clusterer")
    async def create(event: Event, tx: Tx) -> None:
        if event.data != "silent":
            await hf.emit("battle.created", event.data, key=event.key, tx=tx)

    @hf.on("battle.created", group="indexer")
    async def index(event: Event, tx: Tx) -> None:
        kind = "battle.failed" if event.data == "bad" else "battle.indexed"
        await hf.emit(kind, event.data, key=event.key, tx=tx)

    hf.choreography(
        "battle.create",
        begins="battle.requested",
        steps=["battle.created"],
        ends=["battle.indexed"],
        undone_by=["battle.failed"],
        **options,
    )


async def the_saga(hf):
    [record] = await hf.sagas.find(name="battle.create")
    return record


async def test_a_choreography_is_one_saga_for_each_story(hf):
    battle(hf)
    await drain(hf)
    await hf.emit("battle.requested", "good", key="battle:7")
    await drain(hf)
    record = await the_saga(hf)
    assert (record.state, record.result) == (SagaState.DONE, '"battle.indexed"')
    history = await hf.sagas.history(record.id)
    types = [each["value"]["type"] for each in history.as_json()["signals"]]
    assert types == ["battle.requested", "battle.created", "battle.indexed"]


async def test_a_choreography_is_undone_by_its_event(hf):
    battle(hf)
    await drain(hf)
    await hf.emit("battle.requested", "bad", key="battle:7")
    await drain(hf)
    record = await the_saga(hf)
    assert record.state is SagaState.UNDONE
    assert "battle.failed" in record.error
    with pytest.raises(SagaUndone):
        await hf.sagas.run(record.id).result(5)


async def test_a_choreography_that_is_stuck_is_seen_and_ends_when_its_event_comes_late(hf):
    battle(hf, within=0.3)
    await drain(hf)
    await hf.emit("battle.requested", "silent", key="battle:7")
    await drain(hf)
    assert (await the_saga(hf)).state is SagaState.WAITING

    async def stuck():
        await drain(hf)
        return (await the_saga(hf)).state is SagaState.NEEDS_OPERATOR

    await until(stuck)
    record = await the_saga(hf)
    assert "its last event was battle.requested" in record.error
    _, story = record.id.split(":")
    with within(correlation_id=story):
        await hf.emit("battle.indexed", "late", key="battle:7")
    await drain(hf)
    assert (await the_saga(hf)).state is SagaState.DONE


@pytest.mark.parametrize(
    ("late", "state"), [("battle.indexed", SagaState.DONE), ("battle.failed", SagaState.UNDONE)]
)
async def test_a_late_event_of_a_story_that_is_forgotten_is_a_story_of_its_own(hf, late, state):
    """It does nothing but hear, so nothing is done twice."""
    battle(hf)
    await drain(hf)
    await hf.emit("battle.requested", "good", key="battle:7")
    await drain(hf)
    story = (await the_saga(hf)).id.partition(":")[2]
    assert await hf.store.sagas.prune(keep=0) == 1
    with within(correlation_id=story):
        await hf.emit(late, "late", key="battle:7")
    await drain(hf)
    assert (await the_saga(hf)).state is state


async def test_a_story_that_never_ends_is_ended_by_a_person(hf):
    battle(hf, within=0.1)
    await drain(hf)
    await hf.emit("battle.requested", "silent", key="battle:7")

    async def stuck():
        await drain(hf)
        return (await the_saga(hf)).state is SagaState.NEEDS_OPERATOR

    await until(stuck)
    await hf.sagas.cancel((await the_saga(hf)).id, actor="ada", reason="it was another time")
    await drain(hf)
    assert (await the_saga(hf)).state is SagaState.UNDONE


def test_a_choreography_says_what_it_needs(hf_closed):
    with pytest.raises(ValueError, match="Say by which events"):
        hf_closed.choreography("c", begins="a", ends=[])
    with pytest.raises(ValueError, match="a list of event types"):
        hf_closed.choreography("c", begins="a", ends="b")
    with pytest.raises(ValueError, match="no event type"):
        hf_closed.choreography("c", begins="a b", ends=["b"])


@pytest.fixture
def hf_closed(tmp_path):
    return Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
