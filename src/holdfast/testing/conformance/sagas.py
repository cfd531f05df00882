"""Sagas: one for each id, moved under the claim of its job, found by people and forgotten in time."""

from __future__ import annotations

import asyncio

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done
from holdfast.store.ports import Store
from holdfast.store.records import STRIKES_LIMIT
from holdfast.store.saga_records import (
    Move,
    Rest,
    SagaState,
    StartedSaga,
    Wait,
    Written,
)
from holdfast.store.states import Held, State
from holdfast.store.steps import Progress
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
    take_suspect,
)
from holdfast.testing.conformance.lost_answers import lost, once
from holdfast.testing.conformance.saga_kit import (
    DAY,
    DONE,
    RUNNING,
    STUCK,
    UNDOING,
    WAITING,
    begun,
    new,
    saga,
    started,
    state_and_job,
    step,
)


class SagasConformance(Conformance):
    # --- starting ---

    async def test_a_saga_starts_with_its_job(self, store: Store) -> None:
        carrier = job(task="saga:trip.book", correlation_id="story")
        await store.sagas.start([new("p", job=job(queue="other"))])
        [answer] = await store.sagas.start([new("a", job=carrier, timeout=60, parent="p")])
        assert answer == StartedSaga("a", carrier.id, created=True, name="trip.book")
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
        assert second == StartedSaga("a", first.job_id, created=False, name="trip.book")
        assert (other.created, twin) == (
            True,
            StartedSaga("b", other.job_id, created=False, name="trip.book"),
        )
        assert len(await take(store, 10)) == 2

    async def test_who_starts_one_that_is_there_is_told_its_name(self, store: Store) -> None:
        await store.sagas.start([new("a")])
        [started] = await store.sagas.start([new("a", name="trip.cancel")])
        assert (started.created, started.name) == (False, "trip.book")

    async def test_a_saga_that_rests_is_no_suspect(self, store: Store) -> None:
        """It may live for months: a few deaths of workers in all that time do not make it dead."""
        await started(store, "a")
        for _ in range(2 * STRIKES_LIMIT):
            await self.advance(store, LEASE + 1)
            assert len(await store.claims.rescue()) == 1
            claim = await take_suspect(store)
            assert await store.sagas.write(claim, move=WAITING, rest=Rest(0.0)) is not None
            record = await store.jobs.get(claim.job_id)
            assert record is not None
            assert (record.suspect, record.interruptions, record.strikes) == (False, 0, 0)
            await take_one(store)

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
