"""Ordering keys: one at a time, in the order of enqueueing, through everything that may happen to a job."""

from __future__ import annotations

from holdfast.kernel.errors import LeaseLost
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    end,
    held,
    ids,
    put,
    put_many,
    raises,
    state_of,
    take,
    take_one,
    take_suspect,
    the,
)


class OrderingConformance(Conformance):
    async def test_one_job_of_a_key_is_ready_and_the_others_wait_in_order(self, store: Store) -> None:
        made = await put_many(store, 3, ordered="o")
        assert await store.holds.promote() == 3
        assert [await state_of(store, job_id) for job_id in made] == [READY] + [held(Held.ORDERING)] * 2
        for job_id in made:
            claims = await take(store, 10)
            assert ids(claims) == [job_id]
            await end(store, claims[0])

    async def test_priority_does_not_change_the_order(self, store: Store) -> None:
        low, high = await put(store, ordered="o", priority=-9), await put(store, ordered="o", priority=9)
        await store.holds.promote()
        assert ids(await take(store, 10)) == [low]
        assert await state_of(store, high) == held(Held.ORDERING)

    async def test_other_keys_and_plain_jobs_are_not_held_up(self, store: Store) -> None:
        first = await put(store, ordered="o")
        other = await put(store, ordered="p")
        plain = await put(store)
        await store.holds.promote()
        assert set(ids(await take(store, 10))) == {first, other, plain}

    async def test_a_job_that_arrives_later_waits_behind_those_that_wait(self, store: Store) -> None:
        made = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        claim = await take_one(store)
        made += await put_many(store, 2, ordered="o")
        await store.holds.promote()
        for job_id in made:
            assert claim.job_id == job_id
            await end(store, claim)
            if job_id != made[-1]:
                claim = await take_one(store)

    async def test_a_job_of_the_future_holds_the_turn_of_its_key(self, store: Store) -> None:
        first, second = await put(store, ordered="o", delay=60), await put(store, ordered="o")
        await store.holds.promote()
        assert await state_of(store, first) == held(Held.TIME)
        assert await state_of(store, second) == held(Held.ORDERING)
        await self.advance(store, 60)
        await store.holds.promote()
        assert ids(await take(store, 10)) == [first]

    async def test_a_job_of_the_future_waits_for_its_turn_first_and_then_for_its_time(
        self, store: Store
    ) -> None:
        await put(store, ordered="o")
        later = await put(store, ordered="o", delay=60)
        await store.holds.promote()
        claim = await take_one(store)
        await self.advance(store, 30)
        await store.holds.promote()
        assert await state_of(store, later) == held(Held.ORDERING)
        await end(store, claim)
        assert await state_of(store, later) == held(Held.TIME)
        await self.advance(store, 30)
        await store.holds.promote()
        assert ids(await take(store, 10)) == [later]

    async def test_a_finish_in_a_transaction_gives_the_next_its_turn_and_nothing_else(
        self, store: Store
    ) -> None:
        await put(store, concurrency="c", concurrency_limit=1)
        await put(store, ordered="o")
        following = [
            (await put(store, ordered="o"), READY),
            (await put(store, ordered="o", concurrency="c", concurrency_limit=1), held(Held.CONCURRENCY)),
        ]
        await store.holds.promote()
        holder, claim = sorted(await take(store, 10), key=lambda claim: claim.ordered is not None)
        for job_id, becomes in following:
            async with store.transaction() as tx:
                assert await store.claims.finish([Finish(claim, Done(result="7"))], tx=tx) == [True]
            assert (await the(store, claim.job_id)).result == "7"
            assert await state_of(store, job_id) == becomes
            claims = await take(store, 10)
            claim = claims[0] if claims else claim
        await end(store, holder)
        claim, later = await take_one(store), await put(store, ordered="o", delay=60)
        await store.holds.promote()
        async with store.transaction() as tx:
            await store.claims.finish([Finish(claim, Done())], tx=tx)
        assert await state_of(store, later) == held(Held.TIME)

    async def test_finishes_in_transactions_pass_the_turn_on_as_they_came(self, store: Store) -> None:
        plain = await put_many(store, 4, ordered="o")
        await store.holds.promote()
        for job_id in plain:
            [claim] = await take(store, 10)
            assert claim.job_id == job_id
            if job_id == plain[-1]:
                later = await put(store, ordered="o", delay=60)
                await store.holds.promote()
            async with store.transaction() as tx:
                await store.claims.finish([Finish(claim, Done())], tx=tx)
        assert await state_of(store, later) == held(Held.TIME)

    async def test_a_finish_in_a_transaction_by_who_lost_the_claim_passes_no_turn_on(
        self, store: Store
    ) -> None:
        _, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        claim = await take_one(store)
        await self.advance(store, LEASE + 1)
        await store.claims.rescue()
        with raises(LeaseLost):
            async with store.transaction() as tx:
                await store.claims.finish([Finish(claim, Done())], tx=tx)
        assert await state_of(store, second) == held(Held.ORDERING)

    async def test_the_turn_is_kept_through_retries_snoozes_releases_and_holds(self, store: Store) -> None:
        first, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        for outcome in (Retry(), Retry(after=5), Snooze(), Snooze(after=5)):
            await end(store, await take_one(store), outcome)
            await self._still(store, first, second)
        await store.claims.release([await take_one(store)])
        await self._still(store, first, second)
        await store.holds.hold([await take_one(store)], Held.GUARD)
        assert await store.holds.promote() == 0
        assert await take(store, 10) == []
        assert await state_of(store, second) == held(Held.ORDERING)
        await store.holds.unhold(Held.GUARD)
        await self._still(store, first, second)
        await end(store, await take_one(store), Done())
        assert await state_of(store, second) == READY

    async def _still(self, store: Store, first: str, second: str) -> None:
        await self.advance(store, 5)
        await store.holds.promote()
        assert await state_of(store, first) == READY
        assert await state_of(store, second) == held(Held.ORDERING)

    async def test_the_turn_is_kept_through_a_rescue(self, store: Store) -> None:
        first, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        await store.holds.promote()
        assert await take(store, 10) == []
        claim = await take_suspect(store)
        assert claim.job_id == first
        await end(store, claim)
        assert await state_of(store, second) == READY

    async def test_the_turn_is_kept_through_unknown(self, store: Store) -> None:
        _, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        await end(store, await take_one(store), Unknown("who knows"))
        await store.holds.promote()
        await store.holds.repair()
        assert await state_of(store, second) == held(Held.ORDERING)

    async def test_the_turn_is_passed_on_by_success_cancel_and_death(self, store: Store) -> None:
        made = await put_many(store, 4, ordered="o")
        await store.holds.promote()
        outcomes: list[Outcome] = [Done(), Cancel("gone"), Dead("broken")]
        for place, outcome in enumerate(outcomes):
            claim = await take_one(store)
            assert claim.job_id == made[place]
            await end(store, claim, outcome)
            assert await state_of(store, made[place + 1]) == READY

    async def test_a_lost_finish_passes_nothing_on(self, store: Store) -> None:
        _, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        lost = await take_one(store)
        await store.claims.rescue_worker("w1")
        assert not await end(store, lost)
        assert await state_of(store, second) == held(Held.ORDERING)

    async def test_the_next_in_order_still_needs_a_slot(self, store: Store) -> None:
        slots = {"concurrency": "c", "concurrency_limit": 1}
        await put(store, ordered="o")
        second = await put(store, ordered="o", **slots)
        await store.holds.promote()
        holder = await put(store, **slots)
        await store.holds.promote()
        claims = {claim.job_id: claim for claim in await take(store, 10)}
        first = next(claim for claim in claims.values() if claim.ordered)
        await end(store, first)
        assert await state_of(store, second) == held(Held.CONCURRENCY)
        await end(store, claims[holder])
        assert await state_of(store, second) == READY

    async def test_an_expired_job_passes_on_its_turn(self, store: Store) -> None:
        first = await put(store, ordered="o", expires=10)
        second = await put(store, ordered="o")
        await store.holds.promote()
        await self.advance(store, 10)
        assert await store.holds.expire() == 1
        assert (await the(store, first)).state is State.CANCELLED
        assert await state_of(store, second) == READY
