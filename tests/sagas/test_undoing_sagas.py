"""Steps of a saga, and how they are undone: the last first, each once recorded, also those that may not have been done."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
import saga_kit
from saga_kit import QUICK, clusterer, do, done, fail, settled, take_back, undo, undo_plainly

from holdfast import CannotTell, Found, NotFound, Undo
from holdfast.jobs.executor import Executor
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic
from holdfast.kernel.crashpoints import Crash, armed
from holdfast.kernel.errors import SagaStuck, SagaUndone, StoreUnavailable, UsageError
from holdfast.kernel.spawn import start
from holdfast.kernel.threads import Threads
from holdfast.sagas import carrier
from holdfast.store.saga_records import SagaState
from holdfast.store.steps import Progress
from holdfast.testing import drain


async def steps_of(hf, run):
    record = await run.record()
    found = await hf.store.steps.load(record.job_id, 0)
    return {each.name: each for each in found}


async def test_all_steps_done_is_done(hf):
    @hf.saga("trip")
    async def trip(saga, where: str) -> list[str]:
        first = await saga.step("hotel", do, f"hotel in {where}", undo=undo)
        second = await saga.step("flight", do, f"flight to {where}", undo=Undo(undo, "flight"))
        return [first, second]

    run = await trip.start("Rome", id="trip:1")
    assert (run.id, run.created, await run.status()) == ("trip:1", True, SagaState.RUNNING)
    await drain(hf)
    assert await run.result(5) == ["hotel in Rome!", "flight to Rome!"]
    assert done == ["hotel in Rome", "flight to Rome"]
    assert (await run.record()).state is SagaState.DONE
    assert (await hf.jobs.get((await run.record()).job_id)).state == "succeeded"


async def test_a_failure_undoes_what_was_done_the_last_first(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("look", do, "look")
        await saga.step("flight", do, "flight", undo=take_back)
        await saga.step("car", do, "car")

    fail("car", ValueError("no cars"))
    run = await trip.start()
    record = await settled(hf, run)
    assert done == ["hotel", "look", "flight", "car", "take back flight!", "undo hotel"]
    assert (record.state, record.undoing) == (SagaState.UNDONE, True)
    assert "no cars" in record.error
    with pytest.raises(SagaUndone, match="no cars"):
        await run.result(5)


async def test_a_step_that_may_have_been_done_is_undone_also_when_others_went_on_beside_it(hf):
    """For them its failure was kept, and then it ended the saga: that it may have been done must not be lost on the way."""
    fails = asyncio.Event()

    async def hotel(saga):
        try:
            await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        finally:
            fails.set()

    async def flight(saga):
        await fails.wait()
        await saga.step("flight", do, "flight", undo=Undo(undo, "flight"))

    @hf.saga("trip")
    async def trip(saga):
        await saga.gather(hotel(saga), flight(saga))

    fail("hotel", ConnectionError("no answer"))
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert sorted(each for each in done if each.startswith("undo")) == ["undo flight", "undo hotel"]


async def test_the_step_that_failed_is_undone_too_since_it_may_have_been_done(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("flight", do, "flight", undo=take_back)

    fail("flight", ConnectionError("no answer"))
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["hotel", "flight", "take back None", "undo hotel"]


async def test_an_error_that_says_nothing_was_done_needs_no_undo(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("flight", do, "flight", undo=take_back, not_done=(ValueError,))

    fail("flight", ValueError("no such flight"))
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["hotel", "flight", "undo hotel"]


async def test_an_error_that_the_saga_catches_is_handled(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        try:
            await saga.step("flight", do, "flight", undo=take_back)
        except ConnectionError:
            await saga.step("train", do, "train")

    fail("flight", ConnectionError("no answer"))
    assert (await settled(hf, await trip.start())).state is SagaState.DONE
    assert done == ["hotel", "flight", "train"]


async def test_what_was_handled_is_undone_with_the_rest(hf):
    @hf.saga("trip")
    async def trip(saga):
        try:
            await saga.step("flight", do, "flight", undo=Undo(undo, "flight"))
        except ConnectionError:
            await saga.step("train", do, "train", undo=Undo(undo, "train"))
        await saga.step("car", do, "car")

    fail("flight", ConnectionError("no answer"))
    fail("car", ValueError("no cars"))
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["flight", "train", "car", "undo train", "undo flight"]


async def test_a_step_is_tried_as_often_as_it_may(hf):
    @hf.saga("trip")
    async def trip(saga):
        return await saga.step("flight", do, "flight", undo=take_back, retry=QUICK)

    fail("flight", ConnectionError("no answer"))
    run = await trip.start()
    await settled(hf, run)
    assert (await run.result(5), done) == ("flight!", ["flight", "flight"])


async def test_a_retry_that_takes_long_is_waited_for_at_rest(hf, monkeypatch):
    monkeypatch.setattr("holdfast.sagas.stepping.PATIENCE", 0.0)

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", retry=QUICK)
        await saga.step("flight", do, "flight", undo=take_back, retry=QUICK)

    fail("hotel", ConnectionError("no answer"))
    fail("flight", *[ConnectionError("no answer")] * 2)
    run = await trip.start()
    for _ in range(3):
        await settled(hf, run)
    record = await run.record()
    assert record.state is SagaState.UNDONE
    assert done == ["hotel", "hotel", "flight", "flight", "take back None"]
    assert (await steps_of(hf, run))["flight"].tries == 2


async def test_an_error_outside_of_steps_undoes_too(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        raise KeyError("a bug")

    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "undo hotel"])
    assert "a bug" in record.error


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit])
@pytest.mark.parametrize("where", ["in a step", "between steps"])
async def test_a_cancellation_that_nobody_asked_for_undoes_too(hf, error, where):
    async def end():
        raise error

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await (saga.step("end", end) if where == "in a step" else end())

    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "undo hotel"])
    assert error.__name__ in record.error


async def test_a_store_in_trouble_undoes_nothing(hf, monkeypatch):
    monkeypatch.setattr("holdfast.sagas.stepping._TROUBLE", 0.0)

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("note", do, "note")

    fail("note", StoreUnavailable("a fail-over"))
    run = await trip.start()
    await settled(hf, run)
    assert (await settled(hf, run)).state is SagaState.DONE
    assert done == ["hotel", "note", "note"]


async def test_undos_may_be_plain_functions_methods_and_local_ones(hf):
    undone = []

    def forget_it(name: str) -> None:
        undone.append(name)

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("cluster", clusterer.create, "c", undo=clusterer.delete)
        await saga.step("by module", saga_kit.do, "m", undo=saga_kit.take_back)
        await saga.step("plain", do, "p", undo=Undo(undo_plainly, "p"))
        await saga.step("local", do, "l", undo=forget_it)
        raise ValueError("no")

    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert undone == ["l!"]
    assert done == ["create c", "m", "p", "l", "undo p", "take back m!", "delete c"]


async def test_an_undo_that_no_later_process_could_find_is_refused(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=lambda _: None)

    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, [])
    assert "cannot be found again by a later process" in record.error


async def test_an_undo_is_found_by_the_name_it_was_given(hf):
    undone = []
    hf.undo("trips.forget", lambda name: undone.append(name))

    def script():
        @hf.saga("trip")
        async def trip(saga):
            await saga.step("hotel", do, "hotel", undo=hf.sagas.refs.find("@trips.forget", do))
            raise ValueError("no")

        return trip

    assert (await settled(hf, await script().start())).state is SagaState.UNDONE
    assert undone == ["hotel!"]


# --- undos that fail ---


async def test_an_undo_is_retried(hf):
    @hf.saga("trip", undo_retry=QUICK)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        raise ValueError("no")

    fail("undo hotel", ConnectionError("no answer"))
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["hotel", "undo hotel", "undo hotel"]


async def test_an_undo_that_ends_by_a_cancellation_is_retried(hf):
    @hf.saga("trip", undo_retry=QUICK)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        raise ValueError("no")

    fail("undo hotel", asyncio.CancelledError())
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["hotel", "undo hotel", "undo hotel"]


async def test_an_undo_that_fails_for_good_needs_a_person(hf):
    @hf.saga("trip", undo_retry=QUICK)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("flight", do, "flight", undo=Undo(undo, "flight"))
        raise ValueError("no")

    fail("undo flight", *[ConnectionError("no answer")] * 2)
    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.undoing) == (SagaState.NEEDS_OPERATOR, True)
    assert "'undo/flight' failed, after 2 tries" in record.error
    assert (await steps_of(hf, run))["undo/flight"].progress is Progress.FAILED
    with pytest.raises(SagaStuck, match="holdfast sagas show t"):
        await run.result(5)
    assert await drain(hf) == []
    assert (await hf.sagas.retry("t", actor="ada")).outcome == "accepted"
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["hotel", "flight", "undo flight", "undo flight", "undo flight", "undo hotel"]


async def test_a_person_may_undo_by_hand(hf):
    @hf.saga("trip", undo_retry=QUICK)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("flight", do, "flight", undo=Undo(undo, "flight"))
        raise ValueError("no")

    fail("undo flight", *[ConnectionError("no answer")] * 2)
    run = await trip.start(id="t")
    await settled(hf, run)
    await hf.sagas.settle("t", "undo/flight", done=True, actor="ada")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["hotel", "flight", "undo flight", "undo flight", "undo hotel"]


async def test_an_undo_that_a_deploy_has_removed_parks_the_saga(hf, monkeypatch):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        monkeypatch.delattr(saga_kit, "undo")
        raise ValueError("no")

    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.undoing) == (SagaState.PARKED, True)
    assert "saga_kit:undo" in record.error
    monkeypatch.undo()
    await hf.sagas.retry("t", actor="ada")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["hotel", "undo hotel"]


# --- steps that nobody knows the end of ---

answers = []


async def look(what: str):
    return answers.pop(0)


async def test_a_step_that_nobody_knows_of_needs_a_person(hf):
    @hf.saga("trip")
    async def trip(saga):
        return await saga.step("pay", do, "pay", undo=take_back, policy="at_most_once")

    fail("pay", ConnectionError("no answer"))
    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.undoing) == (SagaState.NEEDS_OPERATOR, False)
    assert "Nobody knows whether effect 'pay' was done" in record.error
    await hf.sagas.settle("t", "pay", done=True, result="paid", actor="ada")
    await settled(hf, run)
    assert (await run.result(5), done) == ("paid", ["pay"])


async def test_a_step_that_nobody_knows_of_is_looked_up(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("pay", do, "pay", undo=take_back, policy="at_most_once", reconcile=look)
        raise ValueError("no")

    answers[:] = [Found("found")]
    fail("pay", ConnectionError("no answer"))
    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["pay", "take back found"]


@pytest.mark.parametrize(
    ("answer", "state", "undone"),
    [
        (Found("found"), SagaState.UNDONE, ["take back found"]),
        (NotFound, SagaState.UNDONE, []),
        (CannotTell, SagaState.NEEDS_OPERATOR, []),
    ],
)
async def test_a_step_whose_worker_was_lost_is_reconciled_before_it_is_undone(hf, answer, state, undone):
    """Cancelled while its call was under way, and its worker lost: nobody has its answer."""

    @hf.saga("trip")
    async def trip(saga):
        await saga.step("pay", do, "pay", undo=take_back, policy="at_most_once", reconcile=look, settle=0)

    run = await trip.start(id="t")
    await begin_and_lose(hf, "pay", saga_kit)
    await hf.sagas.cancel("t", actor="ada", reason="too dear")
    answers[:] = [answer]
    record = await settled(hf, run)
    assert (record.state, done) == (state, ["pay", *undone])


async def begin_and_lose(hf, what, kit):
    """Run until it is called, then as if the worker were killed there."""

    def crash(_):
        raise Crash

    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="lost")
    threads = Threads(1)
    executor = Executor(
        hf.store,
        hf._inside.registry,
        threads,
        worker="lost",
        lease=30,
        portal=hf._inside.portal,
        resources={},
    )
    run = Run(claim, hf._inside.registry.get(claim.task), monotonic() + 30)
    with armed("effect.called", crash):
        run.work = start(executor.run(run, lambda *_: None), name="lost")
        await asyncio.wait([run.work])
        run.work.exception()
    threads.close()
    assert what in kit.done
    assert await hf.store.claims.release([claim]) == [True]


async def test_a_lost_step_that_can_be_undone_in_any_case_is(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("pay", do, "pay", undo=Undo(undo, "pay"), policy="at_most_once")

    run = await trip.start(id="t")
    await begin_and_lose(hf, "pay", saga_kit)
    await hf.sagas.cancel("t", actor="ada", reason="too dear")
    assert (await settled(hf, run)).state is SagaState.UNDONE
    assert done == ["pay", "undo pay"]
    assert (await hf.jobs.get((await run.record()).job_id)).state == "succeeded"


# --- the pivot ---


async def test_after_the_pivot_nothing_is_undone(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("charge", do, "charge", pivot=True)
        return await saga.step("mail", do, "mail")

    fail("mail", ConnectionError("no answer"))
    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.pivot, record.undoing) == (SagaState.NEEDS_OPERATOR, "charge", False)
    assert "passed its pivot 'charge'" in record.error
    with pytest.raises(UsageError, match="no way back"):
        await run.cancel()
    await hf.sagas.retry("t", actor="ada")
    await settled(hf, run)
    assert (await run.result(5), done) == ("mail!", ["hotel", "charge", "mail", "mail"])


async def test_a_pivot_whose_answer_was_lost_is_looked_up(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("charge", do, "charge", pivot=True, reconcile=look)
        await saga.step("mail", do, "mail")

    answers[:] = [Found("charged")]
    fail("charge", ConnectionError("no answer"))
    record = await settled(hf, await trip.start())
    assert (record.state, record.pivot, done) == (SagaState.DONE, "charge", ["hotel", "charge", "mail"])


async def test_a_pivot_that_nobody_knows_of_is_left_to_a_person(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("charge", do, "charge", pivot=True)

    fail("charge", ConnectionError("no answer"))
    run = await trip.start(id="t")
    record = await settled(hf, run)
    assert (record.state, record.undoing, done) == (SagaState.NEEDS_OPERATOR, False, ["hotel", "charge"])
    assert "Nobody knows whether its pivot 'charge' was done" in record.error
    await hf.sagas.settle("t", "charge", done=True, result="charged", actor="ada")
    record = await settled(hf, run)
    assert (record.state, record.pivot, done) == (SagaState.DONE, "charge", ["hotel", "charge"])


async def test_a_pivot_that_was_not_done_is_a_way_back(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("charge", do, "charge", pivot=True, not_done=(ValueError,))

    fail("charge", ValueError("no money"))
    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "charge", "undo hotel"])


# --- what is asked of it ---


async def test_cancel_means_compensate(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.sleep(3600)

    run = await trip.start()
    assert (await settled(hf, run)).state is SagaState.WAITING
    await run.cancel("changed my mind")
    record = await settled(hf, run)
    assert (record.state, done) == (SagaState.UNDONE, ["hotel", "undo hotel"])
    assert "changed my mind" in record.error


async def test_cancelled_before_it_began_it_does_nothing(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))

    run = await trip.start()
    await run.cancel()
    assert ((await settled(hf, run)).state, done) == (SagaState.UNDONE, [])


async def test_cancelled_during_its_last_step_it_is_not_done(hf):
    @hf.saga("trip")
    async def trip(saga):
        async def hotel():
            await run.cancel("just in time")
            return await do("hotel")

        await saga.step("hotel", hotel, undo=Undo(undo, "hotel"))

    run = await trip.start()
    assert ((await settled(hf, run)).state, done) == (SagaState.UNDONE, ["hotel", "undo hotel"])


async def test_a_saga_that_takes_too_long_is_undone(hf):
    @hf.saga("trip", timeout=0.05)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await saga.step("wait", asyncio.sleep, 30, undo=Undo(undo, "wait"))

    record = await settled(hf, await trip.start())
    assert record.state is SagaState.UNDONE
    come_to = [
        ["hotel", "undo wait", "undo hotel"],
        ["hotel", "undo hotel"],
        [],
    ]  # on a busy machine not so far
    assert done in come_to


async def test_code_that_hangs_between_its_steps_is_out_of_time_too(hf, monkeypatch):
    monkeypatch.setattr(carrier, "_GRACE", 0.01)

    @hf.saga("trip", timeout=0.5)
    async def trip(saga):
        await saga.step("hotel", do, "hotel", undo=Undo(undo, "hotel"))
        await asyncio.sleep(3600)

    record = await settled(hf, await trip.start())
    assert (record.state, done[-1:]) == (SagaState.UNDONE, ["undo hotel"] if done else [])
    assert "out of time" in record.error


async def test_code_behind_its_pivot_may_take_its_time(hf, monkeypatch):
    monkeypatch.setattr(carrier, "_GRACE", 0.01)

    @hf.saga("trip", timeout=3)
    async def trip(saga):
        await saga.step("pay", do, "pay", pivot=True)
        await asyncio.sleep(3.2)
        return "paid"

    run = await trip.start()
    assert ((await settled(hf, run)).state, await run.result(5)) == (SagaState.DONE, "paid")


async def test_a_step_that_takes_too_long_fails(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", asyncio.sleep, 30, timeout=0.01, undo=Undo(undo, "hotel"))

    record = await settled(hf, await trip.start())
    assert (record.state, done) == (SagaState.UNDONE, ["undo hotel"])
    assert "longer than its timeout" in record.error


async def test_one_saga_for_each_id(hf):
    @hf.saga("trip")
    async def trip(saga, where: str) -> str:
        return await saga.step("hotel", do, where)

    first, second = await trip.start("Rome", id="t"), await trip.start("Oslo", id="t")
    assert (first.created, second.created) == (True, False)
    await drain(hf)
    assert (await second.result(5), done) == ("Rome!", ["Rome"])


async def test_an_id_that_another_saga_has_is_refused(hf):
    """It would not be started, and nobody would see that."""

    @hf.saga("trip.book")
    async def book(saga): ...

    @hf.saga("trip.cancel", aliases=["trip.drop"])
    async def cancel(saga): ...

    await book.start(id="t")
    with pytest.raises(
        UsageError, match=r"'t' is that of a saga 'trip.book', so 'trip.cancel' was not started"
    ):
        await cancel.start(id="t")
    async with hf.transaction() as tx:
        with pytest.raises(UsageError, match=r"was not started"):
            await cancel.start(id="t", tx=tx)
        assert (await book.start(id="t", tx=tx)).created is False
    assert (await cancel.start(id="u")).created is True


@pytest.mark.parametrize("timeout", [float("nan"), "5", -1])
async def test_a_result_is_not_waited_for_without_end_by_mistake(hf, timeout):
    @hf.saga("trip")
    async def trip(saga): ...

    run = await trip.start(id="t")
    with pytest.raises(UsageError, match="timeout must be"):
        await run.result(timeout)


async def test_a_saga_starts_with_its_transaction(hf):
    @hf.saga("trip")
    async def trip(saga):
        await saga.step("hotel", do, "hotel")

    with pytest.raises(ZeroDivisionError):
        async with hf.transaction() as tx:
            await trip.start(id="t", tx=tx)
            raise ZeroDivisionError
    assert await hf.sagas.get("t") is None
    async with hf.transaction() as tx:
        await trip.start(id="t", tx=tx)
    assert await hf.sagas.get("t") is not None


async def test_code_that_changed_under_a_saga_parks_it(hf):
    names = ["hotel"]

    @hf.saga("trip")
    async def trip(saga):
        await saga.step(names[0], do, "hotel", undo=Undo(undo, "hotel"))
        await saga.sleep(0.3)

    run = await trip.start(id="t")
    await settled(hf, run)
    names[0] = "inn"
    await hf.store.sagas.signal("t", "nothing")
    await asyncio.sleep(0.35)
    record = await settled(hf, run)
    assert record.state is SagaState.PARKED
    assert "the code has changed" in record.error
    names[0] = "hotel"
    await hf.sagas.retry("t", actor="ada")
    assert ((await settled(hf, run)).state, done) == (SagaState.DONE, ["hotel"])


async def test_results_come_back_in_their_types(hf):
    @hf.saga("trip")
    async def trip(saga):
        room = await saga.step("hotel", book, "Rome", undo=leave)
        assert isinstance(room, Room)
        raise ValueError(room.name)

    assert (await settled(hf, await trip.start())).state is SagaState.UNDONE
    assert done == ["leave Room(name='Rome', number=7)"]


class Room(msgspec.Struct):
    name: str
    number: int


async def book(name: str) -> Room:
    return Room(name, 7)


async def leave(room):
    done.append(f"leave {room}")


async def test_the_row_keeps_the_undo_from_before_the_call(hf):
    seen = {}

    @hf.saga("trip")
    async def trip(saga):
        async def hotel():
            record = await run.record()
            [step] = await hf.store.steps.load(record.job_id, 0)
            seen.update(progress=step.progress, plan=json.loads(step.plan))

        await saga.step("hotel", hotel, undo=Undo(undo, "hotel"))

    run = await trip.start()
    await drain(hf)
    assert seen == {
        "progress": Progress.BEGUN,
        "plan": {"undo": "saga_kit:undo", "args": '["hotel"]'},
    }
