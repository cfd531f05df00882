"""Claim, renew, rescue: who may run a job, and in which order; with finishes, all promises of `store.claims`."""

from __future__ import annotations

from holdfast.kernel.outcomes import Done, Retry, Snooze
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.fencing import FencingConformance, SettleConformance
from holdfast.testing.conformance.finishes import FinishConformance
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    end,
    held,
    ids,
    job,
    put,
    put_many,
    state_of,
    take,
    take_one,
    take_suspect,
    the,
)
from holdfast.testing.conformance.races import RacesConformance
from holdfast.testing.conformance.reports import ReportConformance
from holdfast.testing.conformance.rescues import RescueInTransactionConformance
from holdfast.testing.conformance.suspects import SuspectsConformance


class HeldByConformance(Conformance):
    async def test_what_a_worker_holds_is_what_its_claims_said(self, store: Store) -> None:
        await put_many(store, 2, tenant="acme")
        await put(store, ordered="user:1", deadline=await store.now() + 900)
        await put(store, queue="mail", concurrency="host", concurrency_limit=1)
        await store.holds.promote()
        mine = [*await take(store, 2, worker="mine"), *await take(store, 1, "mail", worker="mine")]
        await take(store, 1, worker="another")
        found = await store.claims.held_by("mine")
        assert sorted(found, key=by_id) == sorted(mine, key=by_id)
        assert all(await store.claims.release(found))
        assert await store.claims.held_by("mine") == []

    async def test_what_has_ended_is_not_held(self, store: Store) -> None:
        await put_many(store, 3)
        done, back, gone = await take(store, 3, worker="mine")
        await end(store, done, Done())
        await store.claims.release([back])
        await self.advance(store, LEASE + 1)
        assert await store.claims.held_by("mine") == [gone]
        await store.claims.rescue()
        assert await store.claims.held_by("mine") == []
        assert await store.claims.held_by("nobody") == []


def by_id(claim: Claim) -> str:
    return claim.job_id


class ClaimConformance(Conformance):
    async def test_a_claim_says_all_that_a_worker_needs(self, store: Store) -> None:
        new = job(
            args='{"a": 1}',
            queue="mail",
            deadline=await store.now() + 900,
            guard="mailer",
            correlation_id="story",
            causation_id="cause",
            trace="00-1-2-01",
            generation=2,
        )
        await store.jobs.enqueue([new])
        enqueued_at = await store.now()
        await self.advance(store, 7)
        claim, now = await take_one(store, "mail", worker="w7"), await store.now()
        for field in [
            "task",
            "args",
            "queue",
            "deadline",
            "guard",
            "correlation_id",
            "causation_id",
            "trace",
            "generation",
        ]:
            assert getattr(claim, field) == getattr(new, field), field
        assert (claim.job_id, claim.attempt, claim.interruptions, claim.alone) == (new.id, 1, 0, False)
        assert (claim.lease_until, claim.enqueued_at) == (now + LEASE, enqueued_at)
        record = await the(store, new.id)
        assert (record.state, record.token, record.worker) == (State.RUNNING, claim.token, "w7")
        assert (record.lease_until, record.started_at, record.attempt) == (now + LEASE, now, 1)

    async def test_a_claim_of_a_keyed_job_says_its_keys(self, store: Store) -> None:
        await put(store, ordered="o", concurrency="c", concurrency_limit=2, tenant="t")
        await store.holds.promote()
        claim = await take_one(store)
        assert (claim.ordered, claim.concurrency, claim.tenant) == ("o", "c", "t")

    async def test_never_more_than_asked(self, store: Store) -> None:
        await put_many(store, 5, queue="mail")
        await put_many(store, 5, queue="other")
        claims = await store.claims.claim({"mail": 2, "other": 3, "empty": 4}, lease=LEASE, worker="w")
        assert sorted(claim.queue for claim in claims) == ["mail"] * 2 + ["other"] * 3

    async def test_a_queue_that_was_not_asked_for_is_left_alone(self, store: Store) -> None:
        await put(store, queue="mail")
        assert await take(store, 10, "other") == []
        assert await store.claims.claim({}, lease=LEASE, worker="w") == []

    async def test_highest_priority_first_then_in_order(self, store: Store) -> None:
        low = await put(store, priority=-5)
        first = await put(store)
        high = await put(store, priority=9)
        second = await put(store)
        assert ids(await take(store, 2)) == [high, first]
        assert ids(await take(store, 10)) == [second, low]

    async def test_held_jobs_are_not_claimed(self, store: Store) -> None:
        await put(store, delay=60)
        await put(store, ordered="o")
        assert await take(store, 10) == []

    async def test_an_expired_job_is_skipped(self, store: Store) -> None:
        await put(store, expires=10)
        alive = await put(store, expires=11)
        await self.advance(store, 10)
        assert ids(await take(store, 10)) == [alive]

    async def test_the_attempt_is_charged_before_any_body_runs(self, store: Store) -> None:
        job_id = await put(store)
        for attempt in (1, 2, 3):
            claim = await take_one(store)
            assert (claim.attempt, (await the(store, job_id)).attempt) == (attempt, attempt)
            await end(store, claim, Retry(error="oops"))

    async def test_one_claim_call_draws_one_token_for_all_it_takes(self, store: Store) -> None:
        await put_many(store, 3)
        await put_many(store, 3, queue="mail")
        claims = await store.claims.claim({"default": 3, "mail": 3}, lease=LEASE, worker="w")
        assert len({claim.token for claim in claims}) == 1


class RankConformance(Conformance):
    async def test_a_job_that_waited_is_served_after_what_was_ready_before_it(self, store: Store) -> None:
        waited = await put(store, delay=5)
        ready = await put(store)
        await self.advance(store, 5)
        assert await store.holds.promote() == 1
        later = await put(store)
        assert ids(await take(store, 10)) == [ready, waited, later]

    async def test_a_retried_or_snoozed_job_goes_to_the_back(self, store: Store) -> None:
        for outcome in (Retry(), Snooze()):
            first, second = await put_many(store, 2)
            await end(store, await take_one(store), outcome)
            claims = await take(store, 10)
            assert ids(claims) == [second, first]
            await store.claims.finish([Finish(claim, Done()) for claim in claims])

    async def test_a_released_job_keeps_its_place(self, store: Store) -> None:
        first, second = await put_many(store, 2)
        assert await store.claims.release(await take(store)) == [True]
        assert ids(await take(store, 10)) == [first, second]

    async def test_a_job_let_go_by_unhold_goes_to_the_back(self, store: Store) -> None:
        first, second = await put_many(store, 2)
        await store.holds.hold(await take(store), Held.GUARD)
        await store.holds.unhold(Held.GUARD)
        assert ids(await take(store, 10)) == [second, first]


class RenewConformance(Conformance):
    async def test_renew_holds_on_for_another_lease(self, store: Store) -> None:
        await put_many(store, 2)
        claims = await take(store, 2)
        await self.advance(store, LEASE - 1)
        renewals = await store.claims.renew(claims, lease=LEASE)
        until = await store.now() + LEASE
        assert {renewal.job_id for renewal in renewals} == set(ids(claims))
        for renewal in renewals:
            assert (renewal.token, renewal.lease_until, renewal.cancel) == (claims[0].token, until, None)
        await self.advance(store, LEASE - 1)
        assert await store.claims.rescue() == []
        assert await store.claims.finish([Finish(claim, Done()) for claim in claims]) == [True, True]

    async def test_a_claim_past_its_lease_cannot_be_renewed(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await self.advance(store, LEASE)
        assert await store.claims.renew([claim], lease=LEASE) == []

    async def test_a_claim_that_is_named_twice_is_renewed_once(self, store: Store) -> None:
        await put_many(store, 2)
        one, two = await take(store, 2)
        renewed = await store.claims.renew([one, two, one], lease=LEASE)
        assert sorted(renewal.job_id for renewal in renewed) == sorted([one.job_id, two.job_id])

    async def test_renew_lists_only_what_is_still_held(self, store: Store) -> None:
        _, second = await put_many(store, 2)
        claims = await take(store, 2)
        await end(store, claims[0])
        assert [renewal.job_id for renewal in await store.claims.renew(claims, lease=LEASE)] == [second]

    async def test_a_finish_after_the_lease_is_accepted_while_nobody_has_taken_the_job(
        self, store: Store
    ) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await self.advance(store, 10 * LEASE)
        assert await end(store, claim, Done("1"))
        assert (await the(store, job_id)).state is State.SUCCEEDED


class RescueConformance(Conformance):
    async def test_a_job_is_rescued_when_its_lease_has_ended_and_not_before(self, store: Store) -> None:
        job_id = await put(store)
        await take_one(store, worker="w9")
        await self.advance(store, LEASE - 0.001)
        assert await store.claims.rescue() == []
        await self.advance(store, 0.001)
        (rescue,) = await store.claims.rescue()
        assert (rescue.job_id, rescue.worker, rescue.state, rescue.interruptions) == (
            job_id,
            "w9",
            State.QUEUED,
            1,
        )
        assert await store.claims.rescue() == []

    async def test_a_rescued_job_is_queued_again_charged_and_a_suspect(self, store: Store) -> None:
        job_id = await put(store)
        await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        record = await the(store, job_id)
        assert (record.state, record.held, record.attempt) == (State.QUEUED, None, 1)
        assert (record.interruptions, record.strikes, record.suspect) == (1, 0, True)
        assert (record.lease_until, record.worker) == (None, None)

    async def test_rescue_takes_no_more_than_asked(self, store: Store) -> None:
        await put_many(store, 5)
        await take(store, 5)
        await self.advance(store, LEASE)
        assert [len(await store.claims.rescue(limit=2)) for _ in range(4)] == [2, 2, 1, 0]

    async def test_rescue_worker_puts_back_the_jobs_of_a_dead_worker_at_once(self, store: Store) -> None:
        mine, theirs = await put_many(store, 2)
        await take_one(store, worker="dead")
        await take_one(store, worker="alive")
        (rescue,) = await store.claims.rescue_worker("dead")
        assert (rescue.job_id, rescue.worker, rescue.state, rescue.interruptions) == (
            mine,
            "dead",
            State.QUEUED,
            1,
        )
        assert (await the(store, theirs)).state is State.RUNNING
        assert await store.claims.rescue_worker("dead") == []
        assert (await take_suspect(store)).job_id == mine

    async def test_a_rescued_job_with_keys_keeps_its_turn_and_loses_its_slot(self, store: Store) -> None:
        first, behind = [await put(store, ordered="o") for _ in range(2)]
        slotted, waiting = [await put(store, concurrency="c", concurrency_limit=1) for _ in range(2)]
        await store.holds.promote()
        assert set(ids(await take(store, 10))) == {first, slotted}
        await self.advance(store, LEASE)
        await store.claims.rescue()
        assert await state_of(store, first) == READY
        assert await state_of(store, behind) == held(Held.ORDERING)
        assert await state_of(store, slotted) == held(Held.ARRIVED)
        assert await state_of(store, waiting) == READY


class ClaimsConformance(
    ClaimConformance,
    HeldByConformance,
    RankConformance,
    FinishConformance,
    RenewConformance,
    ReportConformance,
    RescueInTransactionConformance,
    RescueConformance,
    FencingConformance,
    SettleConformance,
    SuspectsConformance,
    RacesConformance,
):
    """All promises of `store.claims`."""
