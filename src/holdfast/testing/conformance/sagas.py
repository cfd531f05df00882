"""Sagas: one for each id, moved under the claim of its job, woken by what it waits for and by nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done
from holdfast.store.event_records import NewEvent
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import (
    Heard,
    Move,
    NewSaga,
    Rest,
    SagaRecord,
    SagaState,
    StartedSaga,
    Wait,
    Written,
)
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    Rollback,
    end,
    held,
    job,
    raises,
    state_of,
    take,
    take_one,
)
from holdfast.testing.conformance.lost_answers import lost, once

DAY = 86_400.0
RUNNING, WAITING = Move(state=SagaState.RUNNING), Move(state=SagaState.WAITING, waits="a while")
UNDOING = Move(state=SagaState.COMPENSATING, undoing=True, error="it failed")
DONE, UNDONE = Move(state=SagaState.DONE, result="1"), Move(state=SagaState.UNDONE)
STUCK = Move(state=SagaState.NEEDS_OPERATOR, error="look at it")


def new(saga_id: str, **options: Any) -> NewSaga:
    return NewSaga(**{"id": saga_id, "name": "trip.book", "job": job(task="saga:trip.book"), **options})


def step(name: str, number: int = 0, progress: Progress = Progress.DONE, **options: Any) -> Step:
    return Step(name=name, number=number, kind=Kind.AT_LEAST_ONCE, progress=progress, **options)


def begun(name: str, number: int = 0, **options: Any) -> Step:
    return step(name, number, Progress.BEGUN, **options)


async def started(store: Store, saga_id: str, **options: Any) -> Claim:
    """A saga that was started, and whose job runs."""
    [answer] = await store.sagas.start([new(saga_id, **options)])
    claim = await take_one(store)
    assert claim.job_id == answer.job_id
    return claim


async def saga(store: Store, saga_id: str) -> SagaRecord:
    record = await store.sagas.get(saga_id)
    assert record is not None, f"the saga {saga_id} should be there"
    return record


async def state_and_job(store: Store, saga_id: str) -> tuple[SagaState, tuple[State, Held | None]]:
    record = await saga(store, saga_id)
    return record.state, await state_of(store, record.job_id)


class SagasConformance(Conformance):
    # --- starting ---

    async def test_a_saga_starts_with_its_job(self, store: Store) -> None:
        carrier = job(task="saga:trip.book", correlation_id="story")
        await store.sagas.start([new("p", job=job(queue="other"))])
        [answer] = await store.sagas.start([new("a", job=carrier, timeout=60, parent="p")])
        assert answer == StartedSaga("a", carrier.id, created=True)
        record = await saga(store, "a")
        assert (record.name, record.state, record.undoing) == ("trip.book", SagaState.RUNNING, False)
        assert (record.parent, record.correlation_id) == ("p", "story")
        assert record.deadline == record.started_at + 60
        assert await store.sagas.of_job(carrier.id) == record
        assert await state_of(store, carrier.id) == READY

    async def test_each_of_many_who_look_at_once_sees_its_own(self, store: Store) -> None:
        claims = [await started(store, f"s{number}") for number in range(4)]
        for number, claim in enumerate(claims):
            for place in range(number):  # the first has none
                assert await store.sagas.write(claim, step=begun(f"{number}.{place}", place)) is not None
        asked = [*claims, claims[1]]  # one is asked for twice
        sagas = await asyncio.gather(
            *(store.sagas.of_job(each.job_id) for each in asked), store.sagas.of_job(new_id())
        )
        assert [each and each.id for each in sagas] == ["s0", "s1", "s2", "s3", "s1", None]
        steps = await asyncio.gather(
            *(store.steps.load(each.job_id, 0) for each in asked), store.steps.load(claims[2].job_id, 1)
        )
        assert [[each.name for each in found] for found in steps] == [
            [], ["1.0"], ["2.0", "2.1"], ["3.0", "3.1", "3.2"], ["1.0"], [],
        ]  # fmt: skip

    async def test_one_saga_for_each_id(self, store: Store) -> None:
        [first] = await store.sagas.start([new("a")])
        [second, other, twin] = await store.sagas.start([new("a"), new("b"), new("b")])
        assert second == StartedSaga("a", first.job_id, created=False)
        assert (other.created, twin) == (True, StartedSaga("b", other.job_id, created=False))
        assert len(await take(store, 10)) == 2

    async def test_many_who_start_one_id_at_once_start_one(self, store: Store) -> None:
        other = await self.second(store)
        clients = [store, other] * 5
        answers = await asyncio.gather(*(each.sagas.start([new("a")]) for each in clients))
        assert sum(answer.created for [answer] in answers) == 1
        assert len({answer.job_id for [answer] in answers}) == 1
        assert len(await take(store, 10)) == 1

    async def test_a_saga_exists_if_its_transaction_commits(self, store: Store) -> None:
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.sagas.start([new("a")], tx=tx)
                raise Rollback
        assert await store.sagas.get("a") is None
        assert await take(store) == []
        async with store.transaction() as tx:
            [answer] = await store.sagas.start([new("a")], tx=tx)
        assert (await saga(store, "a")).job_id == answer.job_id

    async def test_a_start_whose_answer_was_lost_is_its_own(self, store: Store) -> None:
        with once("store.after_commit", lost()):
            [answer] = await store.sagas.start([new("a")])
        assert answer.created
        assert len(await take(store, 5)) == 1

    async def test_the_job_of_a_saga_has_no_keys(self, store: Store) -> None:
        with raises(UsageError, "keys"):
            new("a", job=job(unique="u"))

    # --- moving ---

    async def test_a_step_and_a_move_are_one_commit(self, store: Store) -> None:
        claim = await started(store, "a")
        failed = begun("pay", plan='{"undo":"refund"}', tries=2, error="no answer")
        assert await store.sagas.write(claim, step=failed, move=UNDOING) == Written(True, True, None)
        record = await saga(store, "a")
        assert (record.state, record.undoing, record.error) == (SagaState.COMPENSATING, True, "it failed")
        assert (record.decided_at, record.cause) == (record.at, "it failed")
        [kept] = await store.steps.load(claim.job_id, 0)
        assert (kept.plan, kept.tries, kept.error, kept.progress) == (
            '{"undo":"refund"}',
            2,
            "no answer",
            Progress.BEGUN,
        )

    async def test_a_plan_stays_when_the_step_is_written_again(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, step=begun("pay", plan="{}"))
        await store.sagas.write(claim, step=step("pay", result="5"))
        [kept] = await store.steps.load(claim.job_id, 0)
        assert (kept.plan, kept.result, kept.progress) == ("{}", "5", Progress.DONE)

    async def test_whoever_lost_the_claim_writes_nothing(self, store: Store) -> None:
        claim = await started(store, "a")
        await self.advance(store, LEASE + 1)
        await store.claims.rescue()
        for what in ({"step": step("pay")}, {"move": UNDOING}, {"move": WAITING, "rest": Rest(5)}):
            assert await store.sagas.write(claim, **what) is None
        assert await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go")) is None
        assert (await saga(store, "a")).state is SagaState.RUNNING
        assert await store.steps.load(claim.job_id, 0) == []

    async def test_what_is_over_stays_so(self, store: Store) -> None:
        claim = await started(store, "a")
        assert (await store.sagas.write(claim, move=DONE)) == Written(True, True, None)
        record = await saga(store, "a")
        assert (record.state, record.result, record.finished_at) == (SagaState.DONE, "1", record.at)
        assert (await store.sagas.write(claim, move=UNDOING)) == Written(True, False, None)
        assert (await saga(store, "a")).state is SagaState.DONE
        assert await end(store, claim, Done("1"))

    async def test_the_pivot_that_was_passed_is_kept(self, store: Store) -> None:
        claim = await started(store, "a")
        passed = Move(state=SagaState.RUNNING, pivot="charge")
        await store.sagas.write(claim, step=step("charge"), move=passed)
        await store.sagas.write(claim, move=WAITING)
        assert (await saga(store, "a")).pivot == "charge"

    async def test_a_write_whose_answer_was_lost_is_repeated(self, store: Store) -> None:
        claim = await started(store, "a")
        with once("store.after_commit", lost()):
            written = await store.sagas.write(claim, step=step("pay", result="5"), move=RUNNING)
        assert written == Written(True, True, None)

    # --- resting ---

    async def test_a_saga_at_rest_has_no_slot_until_its_time(self, store: Store) -> None:
        claim = await started(store, "a")
        assert await store.sagas.write(claim, move=WAITING, rest=Rest(60)) == Written(True, True, None)
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.TIME))
        assert (await saga(store, "a")).waits == "a while"
        await store.holds.promote()
        assert await take(store) == []
        await self.advance(store, 61)
        await store.holds.promote()
        again = await take_one(store)
        assert (again.job_id, again.attempt) == (claim.job_id, 1)

    async def test_a_saga_at_rest_without_a_time_waits_to_be_woken(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=STUCK, rest=Rest())
        await self.advance(store, 1000 * DAY)
        await store.holds.promote()
        assert await state_and_job(store, "a") == (SagaState.NEEDS_OPERATOR, held(Held.WAITING))

    async def test_a_rest_whose_answer_was_lost_is_found_again(self, store: Store) -> None:
        claim = await started(store, "a")
        with once("store.after_commit", lost()):
            written = await store.sagas.write(claim, move=WAITING, rest=Rest(60))
        assert written is not None
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.TIME))

    async def test_a_rest_keeps_its_step(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, step=begun("undo/pay", tries=1, error="no"), move=STUCK, rest=Rest())
        [kept] = await store.steps.load(claim.job_id, 0)
        assert (kept.name, kept.tries, kept.error) == ("undo/pay", 1, "no")
        await store.sagas.retry("a", actor="ada")
        assert (await take_one(store)).has_steps

    # --- signals ---

    async def test_a_signal_that_came_early_is_taken_once(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.signal("a", "go", '"first"')
        await store.sagas.signal("a", "go", '"second"')
        wait = Wait(kind="signal", name="go")
        assert await store.sagas.listen(claim, begun("w1"), wait) == Heard('{"value":"first"}')
        assert await store.sagas.listen(claim, begun("w1"), wait) == Heard('{"value":"first"}')
        assert await store.sagas.listen(claim, begun("w2", 1), wait) == Heard('{"value":"second"}')
        assert await store.sagas.listen(claim, begun("w3", 2), wait) == Heard(None)
        found = await store.sagas.signals("a")
        assert [(each.name, each.value, each.taken_by) for each in found] == [
            ("go", '"first"', "w1"),
            ("go", '"second"', "w2"),
        ]
        kept = {each.name: (each.progress, each.result) for each in await store.steps.load(claim.job_id, 0)}
        assert kept["w1"] == (Progress.DONE, '{"value":"first"}')
        assert kept["w3"] == (Progress.BEGUN, None)

    async def test_a_signal_wakes_only_who_waits_for_it(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go"))
        await store.sagas.write(claim, move=WAITING, rest=Rest())
        assert (await store.sagas.signal("a", "other")).outcome == "accepted"
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.WAITING))
        assert (await store.sagas.signal("a", "go", "7")).outcome == "accepted"
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)
        again = await take_one(store)
        heard = await store.sagas.listen(again, begun("w"), Wait(kind="signal", name="go"))
        assert heard == Heard('{"value":7}')

    async def test_a_signal_between_the_look_and_the_rest_is_not_slept_through(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go"))
        await store.sagas.signal("a", "go")
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        assert (await state_and_job(store, "a"))[1] == READY
        again = await take_one(store)
        await store.sagas.write(again, move=WAITING, rest=Rest(DAY))
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.TIME))

    async def test_a_signal_in_a_transaction_comes_with_its_commit(self, store: Store) -> None:
        claim = await started(store, "a")
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.sagas.signal("a", "go", tx=tx)
                raise Rollback
        assert await store.sagas.signals("a") == []
        async with store.transaction() as tx:
            await store.sagas.signal("a", "go", tx=tx)
        assert len(await store.sagas.signals("a")) == 1
        assert claim.attempt == 1

    async def test_a_wait_whose_time_is_over_says_so_and_keeps_to_it(self, store: Store) -> None:
        claim = await started(store, "a")
        wait, last = Wait(kind="signal", name="go"), Wait(kind="signal", name="go", give_up=True)
        assert await store.sagas.listen(claim, begun("w"), wait) == Heard(None)
        assert await store.sagas.listen(claim, begun("w"), last) == Heard('{"timed_out":true}')
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        await store.sagas.signal("a", "go")
        assert await state_and_job(store, "a") == (SagaState.WAITING, held(Held.TIME))

    async def test_no_signal_reaches_what_is_over_or_missing(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=DONE)
        assert (await store.sagas.signal("a", "go")).outcome == "over"
        assert (await store.sagas.signal("b", "go")).outcome == "missing"

    # --- other sagas ---

    async def test_the_end_of_a_saga_wakes_who_waits_for_it(self, store: Store) -> None:
        parent = await started(store, "parent")
        [child] = await store.sagas.start([new("child", parent="parent")])
        wait = Wait(kind="saga", name="child")
        assert await store.sagas.listen(parent, begun("w"), wait) == Heard(None)
        await store.sagas.write(parent, move=WAITING, rest=Rest())
        carrier = await take_one(store)
        assert carrier.job_id == child.job_id
        assert await store.sagas.write(carrier, move=DONE) == Written(True, True, None)
        assert await state_and_job(store, "parent") == (SagaState.RUNNING, READY)
        again = await take_one(store)
        heard = await store.sagas.listen(again, begun("w"), wait)
        assert heard == Heard('{"state":"done","error":null,"value":1}')

    async def test_the_end_of_a_saga_that_is_over_is_heard_at_once(self, store: Store) -> None:
        child = await started(store, "child")
        await store.sagas.write(child, move=UNDOING)
        await store.sagas.write(
            child, move=Move(state=SagaState.NEEDS_OPERATOR, undoing=True, error="an undo failed")
        )
        assert (await saga(store, "child")).error == "an undo failed"
        await store.sagas.write(child, move=UNDONE)
        await end(store, child)
        parent = await started(store, "parent")
        heard = await store.sagas.listen(parent, begun("w"), Wait(kind="saga", name="child"))
        assert heard == Heard('{"state":"undone","error":"it failed","value":null}')

    async def test_an_end_and_a_look_at_once_are_never_both_in_vain(self, store: Store) -> None:
        other = await self.second(store)
        for number in range(10):
            parent = await started(store, f"parent:{number}")
            child = await started(store, f"child:{number}")
            wait = Wait(kind="saga", name=f"child:{number}")
            heard, _ = await asyncio.gather(
                store.sagas.listen(parent, begun("w"), wait), other.sagas.write(child, move=DONE)
            )
            await store.sagas.write(parent, move=WAITING, rest=Rest())
            ready = (await state_and_job(store, f"parent:{number}"))[1] == READY
            assert ready or (heard is not None and heard.result is not None)
            await end(store, child)
            for claim in await take(store):
                await end(store, claim)

    # --- events ---

    async def test_an_event_wakes_only_who_waits_for_it(self, store: Store) -> None:
        lease = await self._reader(store)
        waits = {"one": "k:1", "other": "k:2", "any": None}
        for name, key in waits.items():
            claim = await started(store, name)
            wait = Wait(kind="event", name="paid", key=key)
            assert await store.sagas.listen(claim, begun("w"), wait) == Heard(None)
            await store.sagas.write(claim, move=WAITING, rest=Rest())
        await self._publish(store, "paid", "k:3", "shipped", "k:1")
        assert await store.sagas.hear(lease) == 2
        assert await self._woken(store, waits) == ["any"]
        await self._publish(store, "paid", "k:1")
        assert await store.sagas.hear(lease) == 1
        assert await self._woken(store, waits) == ["one", "any"]
        assert await store.sagas.hear(lease) == 0

    async def test_many_who_wait_for_one_event_are_woken_in_portions(self, store: Store) -> None:
        lease = await self._reader(store)
        names = [f"s:{number}" for number in range(5)]
        await self._waits_for(store, "other", "shipped")
        for name in names:
            await self._waits_for(store, name, "paid")
        await self._publish(store, "paid", "k:1")
        assert await store.sagas.hear(lease, portion=2) == 1
        assert await self._woken(store, names) == names[:2]
        await self._publish(store, "shipped", "k:1")
        assert [await store.sagas.hear(lease, portion=2) for _ in range(2)] == [1, 1]
        assert await self._woken(store, [*names, "other"]) == names
        assert [await store.sagas.hear(lease, portion=2) for _ in range(2)] == [1, 0]
        assert await self._woken(store, ["other"]) == ["other"]

    async def _waits_for(self, store: Store, name: str, event: str) -> None:
        claim = await started(store, name)
        assert await store.sagas.listen(claim, begun("w"), Wait(kind="event", name=event)) is not None
        await store.sagas.write(claim, move=WAITING, rest=Rest())

    async def test_an_event_since_the_saga_began_is_heard_at_once(self, store: Store) -> None:
        await self._publish(store, "paid", "k:1")
        await self.advance(store, 1)
        claim = await started(store, "a")
        wait = Wait(kind="event", name="paid", key="k:1")
        for each in (wait, Wait(kind="event", name="paid")):
            assert await store.sagas.listen(claim, begun("w"), each) == Heard(None)
        await self._publish(store, "paid", "k:1")
        await self._publish(store, "paid", "k:1")
        first = await self._heard(store, claim, "w", wait)
        second = await self._heard(store, claim, "w2", replace(wait, after=first["position"]))
        assert (first["value"]["version"], second["value"]["version"]) == (2, 3)
        any_key = await self._heard(store, claim, "w3", Wait(kind="event", name="paid"))
        assert any_key["position"] == first["position"]
        assert first["value"]["data"] == {"of": "k:1"}

    async def test_an_event_and_a_look_at_once_are_never_both_in_vain(self, store: Store) -> None:
        other = await self.second(store)
        lease = await self._reader(store)
        for number in range(10):
            claim = await started(store, f"s:{number}")
            wait = Wait(kind="event", name="paid", key=f"k:{number}")
            heard, _ = await asyncio.gather(
                store.sagas.listen(claim, begun("w"), wait), self._publish_and_hear(other, lease, number)
            )
            await store.sagas.write(claim, move=WAITING, rest=Rest())
            ready = (await state_and_job(store, f"s:{number}"))[1] == READY
            assert ready or (heard is not None and heard.result is not None)
            for each in await take(store):
                await end(store, each)

    async def test_who_lost_the_lease_wakes_nobody(self, store: Store) -> None:
        lease = await self._reader(store)
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="event", name="paid"))
        await store.sagas.write(claim, move=WAITING, rest=Rest())
        await self._publish(store, "paid", "k:1")
        await store.leases.release(lease)
        assert await store.sagas.hear(lease) is None
        assert (await saga(store, "a")).state is SagaState.WAITING

    async def _reader(self, store: Store) -> Lease:
        lease = await store.leases.acquire("reader", owner="w1", ttl=1000)
        assert lease is not None
        assert await store.sagas.hear(lease) == 0  # it begins at the end of the log
        return lease

    async def _publish(self, store: Store, *of: str) -> None:
        """Events of these types and keys, one after the other."""
        events = [
            NewEvent(id=new_id(), type=kind, key=key, data=f'{{"of":"{key}"}}')
            for kind, key in zip(of[::2], of[1::2], strict=True)
        ]
        await store.outbox.emit(events)
        lease = await store.leases.acquire("relay", owner="w1", ttl=1000)
        assert lease is not None
        await store.outbox.stamp(lease, [event.id for event in events])

    async def _publish_and_hear(self, store: Store, lease: Lease, number: int) -> None:
        await self._publish(store, "paid", f"k:{number}")
        await store.sagas.hear(lease)

    async def _heard(self, store: Store, claim: Claim, name: str, wait: Wait) -> Any:
        heard = await store.sagas.listen(claim, begun(name), wait)
        assert heard is not None
        assert heard.result is not None
        return json.loads(heard.result)

    async def _woken(self, store: Store, names: Iterable[str]) -> list[str]:
        return [name for name in names if (await saga(store, name)).state is SagaState.RUNNING]

    # --- people ---

    async def test_who_wants_it_undone_is_heard_with_the_next_write(self, store: Store) -> None:
        claim = await started(store, "a")
        answer = await store.sagas.cancel("a", actor="ada", reason="too dear")
        assert (answer.outcome, answer.state) == ("accepted", SagaState.RUNNING)
        assert await store.sagas.write(claim, step=step("pay")) == Written(True, False, "too dear")
        assert await store.sagas.write(claim, move=DONE) == Written(True, False, "too dear")
        assert (await saga(store, "a")).asked == "too dear"
        [entry] = await store.audit.find(subject="saga:a")
        assert (entry.actor, entry.action) == ("ada", "saga.cancel")

    async def test_an_endless_reason_is_cut_wherever_it_is_kept(self, store: Store) -> None:
        await started(store, "a")
        await store.sagas.cancel("a", actor="ada", reason="no " * 1_000_000)
        [entry] = await store.audit.find(subject="saga:a")
        assert len((await saga(store, "a")).asked or "") < 10_000
        assert len(entry.after or "") < 10_000

    async def test_who_wants_it_undone_wakes_it(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        await store.sagas.cancel("a", actor="ada", reason="no")
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)

    async def test_one_that_is_wanted_undone_does_not_rest(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.cancel("a", actor="ada", reason="no")
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        assert (await state_and_job(store, "a"))[1] == READY
        again = await take_one(store)
        await store.sagas.write(again, move=UNDOING, rest=Rest(DAY))
        assert await state_and_job(store, "a") == (SagaState.COMPENSATING, held(Held.TIME))

    async def test_a_saga_past_its_pivot_is_not_cancelled(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=Move(state=SagaState.RUNNING, pivot="charge"))
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "too_late"
        assert (await store.sagas.write(claim, move=DONE)) == Written(True, True, None)
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "over"
        assert (await store.sagas.cancel("b", actor="ada", reason="no")).outcome == "missing"

    async def test_one_that_is_being_undone_is_not_cancelled_again(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=UNDOING)
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "undoing"

    async def test_one_that_is_done_can_be_undone_while_its_steps_are_kept(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, step=step("pay", result="5"))
        await store.sagas.write(claim, move=DONE)
        assert await end(store, claim, Done("1"))
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "over"
        answer = await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)
        assert (answer.outcome, answer.state) == ("accepted", SagaState.COMPENSATING)
        record = await saga(store, "a")
        assert (record.undoing, record.error, record.finished_at, record.result) == (True, "no", None, None)
        again = await take_one(store)
        assert (again.job_id, again.has_steps, again.token > claim.token) == (claim.job_id, True, True)
        [kept] = await store.steps.load(again.job_id, again.generation)
        assert kept.result == "5"
        assert await store.sagas.write(again, move=UNDONE) == Written(True, True, None)
        assert await end(store, again)
        assert (await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)).outcome == "over"

    async def test_a_person_lets_a_stuck_saga_go_on(self, store: Store) -> None:
        claim = await started(store, "a")
        assert (await store.sagas.retry("a", actor="ada")).outcome == "not_stuck"
        await store.sagas.write(claim, step=begun("pay", tries=3), move=STUCK, rest=Rest())
        answer = await store.sagas.retry("a", actor="ada")
        assert (answer.outcome, answer.state) == ("accepted", SagaState.RUNNING)
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)
        [kept] = await store.steps.load(claim.job_id, 0)
        assert kept.tries == 0
        assert [entry.action for entry in await store.audit.find(subject="saga:a")] == ["saga.retry"]

    async def test_a_stuck_undo_goes_on_as_an_undo(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=UNDOING)
        await store.sagas.write(claim, move=STUCK, rest=Rest())
        assert (await store.sagas.retry("a", actor="ada")).state is SagaState.COMPENSATING

    async def test_a_person_says_what_became_of_a_step(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, step=step("book", 0, result="1"))
        await store.sagas.write(claim, step=begun("pay", 1))
        await store.sagas.write(claim, step=step("undo/book", 2, Progress.FAILED), move=STUCK, rest=Rest())
        wrong = await store.sagas.settle("a", "book", done=True, actor="ada")
        assert (wrong.outcome, wrong.steps) == ("no_such_step", ("pay", "undo/book"))
        answer = await store.sagas.settle("a", "pay", done=True, result="9", actor="ada")
        assert (answer.outcome, answer.state, answer.steps) == ("accepted", SagaState.RUNNING, ("undo/book",))
        kept = {each.name: (each.progress, each.result) for each in await store.steps.load(claim.job_id, 0)}
        assert kept["pay"] == (Progress.RESOLVED, "9")
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)
        [entry] = await store.audit.find(subject="saga:a")
        assert (entry.action, entry.after) == (
            "saga.settle",
            '{"step":"pay","decision":"done","result":"9"}',
        )

    async def test_a_stuck_saga_keeps_signals_and_stays(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go"))
        await store.sagas.write(claim, move=STUCK, rest=Rest())
        await store.sagas.signal("a", "go")
        assert await state_and_job(store, "a") == (SagaState.NEEDS_OPERATOR, held(Held.WAITING))

    # --- looking, and upkeep ---

    async def test_sagas_are_found(self, store: Store) -> None:
        await store.sagas.start([new("a")])
        await store.sagas.start([new("b", name="other", parent="a")])
        await store.sagas.start([new("c", job=job(correlation_id="story"))])
        assert [each.id for each in await store.sagas.find()] == ["c", "b", "a"]
        assert [each.id for each in await store.sagas.find(name="other")] == ["b"]
        assert [each.id for each in await store.sagas.find(parent="a")] == ["b"]
        assert [each.id for each in await store.sagas.find(correlation_id="story")] == ["c"]
        assert [each.id for each in await store.sagas.find(state=SagaState.RUNNING, before="c", limit=1)] == [
            "b"
        ]
        assert await store.sagas.find(state=SagaState.DONE) == []
        assert [(each.name, each.number) for each in await store.sagas.count()] == [
            ("other", 1),
            ("trip.book", 2),
        ]

    async def test_a_saga_whose_job_died_is_parked_and_goes_on_by_hand(self, store: Store) -> None:
        claim = await started(store, "a")
        assert await store.sagas.park_lost() == []
        await end(store, claim, Dead("three workers died"))
        assert await store.sagas.park_lost() == ["a"]
        record = await saga(store, "a")
        assert record.state is SagaState.PARKED
        assert "three workers died" in str(record.error)
        assert await store.sagas.park_lost() == []
        assert (await store.sagas.retry("a", actor="ada")).outcome == "accepted"
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)

    async def test_the_job_of_a_saga_is_not_cancelled_behind_its_back(self, store: Store) -> None:
        claim = await started(store, "a")
        with raises(UsageError, "holdfast sagas cancel a"):
            await store.jobs.cancel(claim.job_id, "by hand")
        await store.sagas.write(claim, move=DONE)
        assert await store.jobs.cancel(claim.job_id, "by hand") is State.RUNNING

    async def test_the_dead_job_of_a_saga_is_neither_replayed_nor_discarded(self, store: Store) -> None:
        claim = await started(store, "a")
        await end(store, claim, Dead("no"))
        [answer] = await store.dead.replay([claim.job_id], actor="ada")
        assert answer.outcome == "carries_saga"
        with raises(UsageError, "holdfast sagas show a"):
            await store.dead.discard([claim.job_id], actor="ada", reason="r")
        assert (await state_of(store, claim.job_id))[0] is State.DEAD

    async def test_what_was_over_long_ago_is_forgotten(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.signal("a", "go")
        await store.sagas.write(claim, move=DONE)
        await store.sagas.start([new("b")])
        assert await store.sagas.prune(keep=DAY) == 0
        await self.advance(store, 2 * DAY)
        assert await store.sagas.prune(keep=DAY) == 1
        assert [each.id for each in await store.sagas.find()] == ["b"]
