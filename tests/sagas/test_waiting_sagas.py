"""Sagas that wait: for a time, a signal, other sagas, and for many at once. They hold no slot meanwhile."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
import pytest
from saga_kit import QUICK, do, done, fail, settled, take_back, undo
from waiting import until

from holdfast import Undo
from holdfast.guards import Breaker
from holdfast.kernel.errors import SagaUndone, StoreUnavailable
from holdfast.kernel.outcomes import Dead
from holdfast.store.records import Finish
from holdfast.store.saga_records import SagaState
from holdfast.store.states import Held
from holdfast.testing import drain


async def becomes(run, state):
    async def there():
        return await run.status() == state

    await until(there)


async def test_a_sleeping_saga_holds_no_slot(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel")
        await saga.sleep(3600)

    run = await trip.start()
    record = await settled(hf, run)
    assert (record.state, record.waits) == (SagaState.WAITING, "sleeps for 3600 s")
    job = await hf.jobs.get(record.job_id)
    assert (job.held, job.attempt, job.lease_until) == (Held.TIME, 0, None)
    assert 3500 < job.run_at - job.enqueued_at < 3700


async def test_a_saga_sleeps_from_when_it_first_asked(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.sleep(0.6)
        return await saga.step("hotel", do, "hotel")

    run = await trip.start()
    async with hf.worker():
        assert await run.result(20) == "hotel!"
    record = await run.record()
    assert record.finished_at - record.started_at >= 0.6


async def test_many_sleep_while_one_slot_works(hf):
    @hf.saga("trip")
    async def trip(saga, number: int):
        await saga.sleep(3600 if number else 0)
        return number

    runs = [await trip.start(number) for number in reversed(range(20))]
    async with hf.worker({"default": 1}):
        assert await runs[-1].result(20) == 0
        for run in runs[:-1]:
            await becomes(run, SagaState.WAITING)


async def test_a_signal_wakes_the_saga_that_waits_for_it(hf):
    @hf.saga("trip")
    async def trip(saga):
        first = await saga.signal("approve")
        second = await saga.signal("approve")
        return [first, second]

    run = await trip.start()
    assert (await settled(hf, run)).waits == "waits for signal 'approve'"
    await run.signal("other", 0)
    assert await drain(hf) == []
    await run.signal("approve", {"by": "ada"})
    assert (await settled(hf, run)).state is SagaState.WAITING
    await run.signal("approve")
    await settled(hf, run)
    assert await run.result(5) == [{"by": "ada"}, None]


async def test_signals_that_come_early_are_kept(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel")
        return [await saga.signal("b"), await saga.signal("a")]

    run = await trip.start()
    await run.signal("a", 1)
    await run.signal("b", 2)
    await drain(hf)
    assert await run.result(5) == [2, 1]


async def test_a_wait_ends_by_its_timeout(hf):
    @hf.saga("trip")
    async def trip(saga):
        try:
            await saga.signal("approve", timeout=0.3)
        except TimeoutError:
            return await saga.step("give up", do, "give up")

    run = await trip.start()
    async with hf.worker():
        assert await run.result(20) == "give up!"


async def test_a_timeout_that_nobody_catches_undoes(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.signal("approve", timeout=0)

    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "undo hotel"])
    assert "There was no signal 'approve' within 0 s" in record.error


async def test_no_signal_reaches_a_saga_that_is_over(hf):
    @hf.saga("trip")
    async def trip(saga):
        pass

    run = await trip.start(id="t")
    await drain(hf)
    with pytest.raises(ValueError, match="is done: no signal"):
        await run.signal("go")


async def test_a_saga_that_cannot_commit_its_rest_keeps_its_job_meanwhile(hf, monkeypatch):
    """For longer than its lease: who had rescued it would have charged it for that."""
    tries, write = [], hf.store.sagas.write

    async def refused(claim, **what):
        if what.get("rest") is not None and len(tries) < 4:
            tries.append(claim.token)
            raise StoreUnavailable("not now")
        return await write(claim, **what)

    monkeypatch.setattr(hf.store.sagas, "write", refused)

    @hf.saga("trip")
    async def trip(saga):
        await saga.signal("go")

    run = await trip.start(id="t")
    async with hf.worker(lease=2):
        await becomes(run, SagaState.WAITING)
    job = await hf.jobs.get((await run.record()).job_id)
    assert (len(set(tries)), len(tries), job.interruptions) == (1, 4, 0)


async def test_steps_in_finally_blocks_are_not_run_by_a_rest(hf):
    @hf.saga("trip")
    async def trip(saga):
        try:
            await saga.signal("go")
        except BaseException:
            await saga.step("caught", do, "caught")
        finally:
            await saga.step("tidy", do, "tidy")

    run = await trip.start()
    assert ((await settled(hf, run)).state, done) == (SagaState.WAITING, [])
    await run.signal("go")
    assert ((await settled(hf, run)).state, done) == (SagaState.DONE, ["tidy"])


async def test_a_saga_with_a_timeout_does_not_wait_beyond_it(hf):
    @hf.saga("trip", timeout=0.4)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.signal("approve")

    run = await trip.start()
    async with hf.worker():
        with pytest.raises(SagaUndone, match="ran out of time"):
            await run.result(20)


# --- other sagas ---


async def test_a_saga_runs_another(hf):
    @hf.saga("leg")
    async def leg(saga, where: str) -> str:
        return await saga.step("book", do, where)

    @hf.saga("trip")
    async def trip(saga):
        return await saga.run_child(leg, "Rome", id="leg:rome")

    run = await trip.start(id="t")
    await drain(hf)
    assert (await run.result(5), done) == ("Rome!", ["Rome"])
    child = await hf.sagas.get("leg:rome")
    assert (child.state, child.parent) == (SagaState.DONE, "t")
    assert child.correlation_id == (await run.record()).correlation_id


async def test_a_child_that_is_undone_fails_its_parent(hf):
    @hf.saga("leg")
    async def leg(saga):
        await saga.step("book", do, "leg", undo=Undo(undo, "leg"))
        raise ValueError("no seats")

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.run_child(leg)

    record = await settled(hf, await trip.start(id="t"))
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "leg", "undo leg", "undo hotel"])
    assert "no seats" in record.error


async def test_a_child_that_is_done_is_undone_with_its_parent(hf):
    @hf.saga("leg")
    async def leg(saga):
        await saga.step("book", do, "leg", undo=Undo(undo, "leg"))

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.run_child(leg, id="l")
        await saga.step("car", do, "car")

    fail("car", ValueError("no cars"))
    run = await trip.start(id="t")
    for _ in range(3):
        await drain(hf)
    assert (await run.status(), (await hf.sagas.get("l")).state) == (SagaState.UNDONE, SagaState.UNDONE)
    assert done == ["hotel", "leg", "car", "undo leg", "undo hotel"]


async def test_a_child_that_still_runs_is_undone_with_its_parent(hf):
    @hf.saga("leg")
    async def leg(saga):
        await saga.step("book", do, "leg", undo=Undo(undo, "leg"))
        await saga.sleep(3600)

    @hf.saga("trip")
    async def trip(saga):
        await saga.run_child(leg, id="l")

    run = await trip.start(id="t")
    await settled(hf, run)
    await run.cancel()
    for _ in range(3):
        await drain(hf)
    assert (await run.status(), (await hf.sagas.get("l")).state) == (SagaState.UNDONE, SagaState.UNDONE)
    assert done == ["leg", "undo leg"]


async def test_a_saga_that_someone_else_started_is_only_waited_for(hf):
    @hf.saga("leg")
    async def leg(saga):
        await saga.step("book", do, "leg", undo=Undo(undo, "leg"))
        return await saga.signal("go")

    @hf.saga("trip")
    async def trip(saga):
        await saga.run_child(leg, id="l")

    other = await leg.start(id="l")
    run = await trip.start(id="t")
    await settled(hf, run)
    await run.cancel()
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert await other.status() is SagaState.WAITING


# --- many at once ---


async def test_many_at_once(hf):
    @hf.saga("leg")
    async def leg(saga, number: int) -> int:
        return number

    @hf.saga("trip")
    async def trip(saga):
        return await saga.gather(
            saga.step("a", do, "a"),
            saga.step("b", do, "b"),
            saga.run_child(leg, 5),
            saga.signal("go"),
            saga.sleep(0),
        )

    run = await trip.start()
    await settled(hf, run)
    await run.signal("go", "went")
    await settled(hf, run)
    assert await run.result(5) == ["a!", "b!", 5, "went", None]
    assert sorted(done) == ["a", "b"]


async def test_a_failure_of_one_of_many_undoes_all(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.gather(
            saga.step("a", do, "a", undo=Undo(undo, "a")),
            saga.step("b", do, "b", undo=Undo(undo, "b")),
            saga.step("c", do, "c", undo=take_back),
            saga.signal("never"),
        )

    fail("b", ValueError("no"))
    record = await settled(hf, await trip.start())
    assert record.state is SagaState.UNDONE
    assert sorted(done) == ["a", "b", "c", "take back c!", "undo a", "undo b"]


async def test_branches_of_several_steps_go_on_where_they_were(hf):
    async def branch(saga, name):
        await saga.step(f"{name}1", do, f"{name}1")
        value = await saga.signal(name)
        await saga.sleep(0)
        return await saga.step(f"{name}2", do, f"{name}2 {value}")

    @hf.saga("trip")
    async def trip(saga):
        return await saga.gather(branch(saga, "x"), branch(saga, "y"))

    run = await trip.start()
    await settled(hf, run)
    await run.signal("y", 1)
    await settled(hf, run)
    await run.signal("x", 2)
    await settled(hf, run)
    assert await run.result(5) == ["x2 2!", "y2 1!"]
    assert done == ["x1", "y1", "y2 1", "x2 2"]


async def test_a_failure_of_one_of_many_that_is_caught_is_handled(hf):
    @hf.saga("trip")
    async def trip(saga):
        try:
            await saga.gather(saga.step("a", do, "a"), saga.step("b", do, "b", retry=QUICK))
        except ValueError:
            await saga.sleep(0)
            return await saga.step("c", do, "c")

    fail("b", ValueError("no"), ValueError("no"))
    run = await trip.start()
    await settled(hf, run)
    assert (await run.result(5), done[-1], done.count("b")) == ("c!", "c", 2)


async def test_sagas_of_many_workers_go_on_on_any_of_them(hf):
    """Two workers, many sagas with waits: none is lost, none does a step twice."""

    @hf.saga("trip")
    async def trip(saga, number: int) -> int:
        await saga.step("a", do, f"a{number}", undo=take_back)
        value = await saga.signal("go")
        await saga.step("b", do, f"b{number}", undo=take_back)
        return value

    runs = [await trip.start(number) for number in range(20)]
    async with hf.worker({"default": 3}), hf.worker({"default": 3}):
        await asyncio.gather(*(run.signal("go", place) for place, run in enumerate(runs)))
        assert [await run.result(30) for run in runs] == list(range(20))
    assert sorted(done) == sorted([f"{step}{number}" for step in "ab" for number in range(20)])


# --- guards, and what upkeep does ---


async def test_a_step_that_its_guard_refuses_is_tried_again_uncharged(hf):
    """An open breaker says nothing about the step: no call was made, and nothing is undone."""
    breaker = Breaker(failures=1)
    bank = hf.guard("bank", breaker=breaker)
    breaker.hold_open()

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        return await saga.step("pay", do, "pay", undo=take_back, guard=bank, policy="at_most_once")

    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.WAITING, ["hotel"])
    assert "refused by a guard" in record.waits
    breaker.hold_closed()
    async with hf.worker():
        assert await run.result(30) == "pay!"
    assert done == ["hotel", "pay"]


async def test_upkeep_parks_a_saga_whose_job_died(hf):
    @hf.saga("trip")
    async def trip(saga):
        return await saga.step("hotel", do, "hotel")

    run = await trip.start(id="t")
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w")
    await hf.store.claims.finish([Finish(claim, Dead("three workers died"))])
    async with hf.worker():
        await becomes(run, SagaState.PARKED)
        assert (await hf.sagas.retry("t", actor="ada")).outcome == "accepted"
        assert await run.result(20) == "hotel!"


class Receipt(msgspec.Struct, frozen=True):
    number: str


def receipt_for(prefix: str, number: str) -> Receipt:
    return Receipt(f"{prefix}{number}")


async def test_what_a_guarded_partial_returns_has_its_type(hf):
    """A partial says nothing of types: the function inside of it does."""
    bank = hf.guard("typed-bank")
    found = []

    @hf.saga("typed")
    async def typed(saga):
        found.append(await saga.step("pay", partial(receipt_for, "no. "), "7", guard=bank))
        return 1

    await typed.start(id="typed:1")
    await drain(hf)
    assert found[0] == Receipt("no. 7")
