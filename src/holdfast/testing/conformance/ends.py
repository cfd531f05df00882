"""Ends in a caller's transaction, for who must know which jobs have ended by a call, and how."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done, Unknown
from holdfast.store.doubts import ENDED
from holdfast.store.ports import Store
from holdfast.store.records import Cancelled, Ended, Finish
from holdfast.store.states import Held, State
from holdfast.store.steps import Progress
from holdfast.testing.conformance.doubts import DOUBT, begun, effect
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import READY, Rollback, end, held, put, state_of, take, take_one, the


class EndsConformance(Conformance):
    async def test_a_cancellation_says_what_it_has_met_and_made_of_it(self, store: Store) -> None:
        assert await store.jobs.end(new_id(), "why") is None
        job_id = await put(store, delay=60)
        assert await store.jobs.end(job_id, "why") == Cancelled(State.CANCELLED, State.QUEUED)
        again = await store.jobs.end(job_id, "once more")
        assert again == Cancelled(State.CANCELLED, State.CANCELLED)
        assert not again.has_ended
        for outcome in (Dead("no"), Unknown("who knows")):
            job_id = await put(store)
            await end(store, await take_one(store), outcome)
            before = await state_of(store, job_id)
            met = await store.jobs.end(job_id, "why")
            assert met == Cancelled(State.CANCELLED, before[0])
            assert met.has_ended

    async def test_one_that_runs_is_no_end_and_one_that_is_over_neither(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        for running in (False, True):
            met = await store.jobs.end(job_id, "why", running=running)
            assert met == Cancelled(State.RUNNING, State.RUNNING)
            assert not met.has_ended
        await end(store, claim, Done())
        assert await store.jobs.end(job_id, "why") == Cancelled(State.SUCCEEDED, State.SUCCEEDED)

    async def test_of_many_at_once_one_has_ended_it(self, store: Store) -> None:
        for _ in range(5):
            job_id = await put(store, delay=60)

            async def cancel(job_id: str = job_id) -> bool:
                async with store.transaction() as tx:
                    met = await store.jobs.end(job_id, "why", tx=tx)
                    return met is not None and met.has_ended

            assert sorted(await asyncio.gather(*(cancel() for _ in range(6)))) == [False] * 5 + [True]

    async def test_what_has_expired_is_named_with_its_end(self, store: Store) -> None:
        fresh = await put(store, task="a", expires=10, queue="other")
        claim = await begun(store, expires=10)
        await end(store, claim, Dead("no"))  # an effect is open: unknown
        other = await begun(store, expires=10)
        await store.claims.release([other])
        await self.advance(store, 11)
        with suppress(Rollback):
            async with store.transaction() as tx:
                assert len(await store.holds.end_expired(tx=tx)) == 2
                raise Rollback
        assert await state_of(store, fresh) == READY
        async with store.transaction() as tx:
            ended = await store.holds.end_expired(tx=tx)
            assert await store.holds.end_expired(tx=tx) == []
        assert sorted(ended, key=lambda each: each.job_id) == sorted(
            [
                Ended(fresh, "a", State.CANCELLED),
                Ended(other.job_id, other.task, State.UNKNOWN),
            ],
            key=lambda each: each.job_id,
        )

    async def test_expired_ones_are_ended_so_many_at_a_time(self, store: Store) -> None:
        for _ in range(5):
            await put(store, expires=10)
        await self.advance(store, 11)
        assert [len(await store.holds.end_expired(limit=2)) for _ in range(4)] == [2, 2, 1, 0]

    async def test_a_claim_goes_back_with_the_transaction_or_not_at_all(self, store: Store) -> None:
        for _ in range(2):
            await put(store)
        one, two = await take(store, 2)
        with suppress(Rollback):
            async with store.transaction() as tx:
                assert await store.claims.release([one], tx=tx) == [True]
                assert await store.holds.hold([two], Held.UNKNOWN_TASK, tx=tx) == [True]
                raise Rollback
        assert {(await the(store, each.job_id)).state for each in (one, two)} == {State.RUNNING}
        async with store.transaction() as tx:
            assert await store.claims.release([one], tx=tx) == [True]
            assert await store.claims.release([one], tx=tx) == [False]
            assert await store.holds.hold([two], Held.UNKNOWN_TASK, tx=tx) == [True]
        assert await state_of(store, one.job_id) == READY
        assert await state_of(store, two.job_id) == held(Held.UNKNOWN_TASK)

    async def test_one_that_was_asked_to_stop_is_cancelled_by_going_back(self, store: Store) -> None:
        for back in ("release", "hold"):
            job_id = await put(store)
            claim = await take_one(store)
            await store.jobs.cancel(job_id, "enough")
            async with store.transaction() as tx:
                if back == "release":
                    await store.claims.release([claim], tx=tx)
                else:
                    await store.holds.hold([claim], Held.GUARD, tx=tx)
                record = await store.jobs.get(job_id, tx=tx)
                assert record is not None
                assert (record.state, record.reason) == (State.CANCELLED, "enough")

    async def test_an_open_effect_parks_a_success_in_a_transaction_that_asks_for_it(
        self, store: Store
    ) -> None:
        for outcome in (Done(), Dead("no")):
            claim = await begun(store, effect(Progress.BEGUN))
            async with store.transaction() as tx:
                assert await store.claims.finish([Finish(claim, outcome)], tx=tx, parks=True) == [True]
                record = await store.jobs.get(claim.job_id, tx=tx)
                assert record is not None
                assert record.state is State.UNKNOWN
            record = await the(store, claim.job_id)
            why = ENDED if isinstance(outcome, Done) else "no"
            assert (record.state, record.reason) == (State.UNKNOWN, f"{why}, and {DOUBT}")
