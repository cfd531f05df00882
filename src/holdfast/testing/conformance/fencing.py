"""Fencing: whoever lost a claim gets no write accepted, and of those who hold one, each is accepted once."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import LEASE, end, put, put_many, take, take_one, take_suspect, the

OUTCOMES: list[Outcome] = [Done("1"), Retry(), Retry(after=5), Snooze(), Cancel("c"), Dead("d"), Unknown("u")]


class FencingConformance(Conformance):
    async def test_a_lost_holder_gets_nothing_accepted_once_the_job_is_rescued(self, store: Store) -> None:
        job_id = await put(store)
        lost = await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        await self._nothing_is_accepted(store, lost)
        assert (await the(store, job_id)).state is State.QUEUED

    async def test_a_lost_holder_gets_nothing_accepted_while_another_holds_the_job(
        self, store: Store
    ) -> None:
        job_id = await put(store)
        lost = await take_one(store, worker="w1")
        await self.advance(store, LEASE)
        await store.claims.rescue()
        holder = await take_suspect(store, worker="w2")
        await self._nothing_is_accepted(store, lost)
        record = await the(store, job_id)
        assert (record.state, record.token, record.worker) == (State.RUNNING, holder.token, "w2")
        assert await end(store, holder, Done('"mine"'))
        await self._nothing_is_accepted(store, lost)
        assert (await the(store, job_id)).result == '"mine"'

    async def test_a_lost_holder_of_a_worker_declared_dead_gets_nothing_accepted(self, store: Store) -> None:
        await put(store)
        lost = await take_one(store, worker="w1")
        await store.claims.rescue_worker("w1")
        await self._nothing_is_accepted(store, lost)

    async def _lost_and_held(self, store: Store, **options: object) -> tuple[Claim, Claim]:
        """Two claims of one job: the token of the first is old."""
        await put(store, **options)
        await store.holds.promote()
        lost = await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        await store.holds.promote()
        return lost, await take_suspect(store)

    async def test_in_one_call_an_old_token_takes_nothing_from_the_newest(self, store: Store) -> None:
        for options in ({}, {"concurrency": "c", "concurrency_limit": 1}):
            for ends in ((Done(), Done()), (Retry(), Done()), (Done(), Retry())):
                lost, held = await self._lost_and_held(store, **options)
                finishes = [Finish(lost, ends[0]), Finish(held, ends[1])]
                assert await store.claims.finish(finishes) == [False, True]
                await self._empty(store, held.job_id)
            lost, held = await self._lost_and_held(store, **options)
            accepted, _ = await store.claims.finish_and_claim(
                [Finish(lost, Done()), Finish(held, Done())], {}, lease=LEASE, worker="w"
            )
            assert accepted == [False, True]
            lost, held = await self._lost_and_held(store, **options)
            assert await store.holds.hold([lost, held, held], Held.GUARD) == [False, True, False]
            await self._empty(store, held.job_id)
            lost, held = await self._lost_and_held(store, **options)
            assert await store.claims.release([held, lost, held]) == [True, False, False]
            await self._empty(store, held.job_id)

    async def _empty(self, store: Store, job_id: str) -> None:
        await store.jobs.cancel(job_id, "enough")

    async def test_callers_at_once_with_an_old_and_the_newest_token(self, store: Store) -> None:
        """Their finishes may go into one transaction; each is answered for itself."""
        for _ in range(5):
            lost, held = await self._lost_and_held(store)
            answers = await asyncio.gather(*(end(store, claim, Done()) for claim in (lost, held, lost)))
            assert answers == [False, True, False]

    async def _nothing_is_accepted(self, store: Store, lost: Claim) -> None:
        before = await the(store, lost.job_id)
        for outcome in OUTCOMES:
            assert not await end(store, lost, outcome), outcome
        assert await store.claims.renew([lost], lease=LEASE) == []
        assert await store.claims.release([lost]) == [False]
        assert await store.holds.hold([lost], Held.GUARD) == [False]
        accepted, _ = await store.claims.finish_and_claim([Finish(lost, Done())], {}, lease=LEASE, worker="w")
        assert accepted == [False]
        assert not await store.claims.settle(lost.job_id, lost.token)
        assert await the(store, lost.job_id) == before

    async def test_a_claim_of_another_store_ends_no_job_here(self, store: Store) -> None:
        """Its row and token may be those of a job of ours; its id is not."""
        for options in ({}, {"unique": "u", "concurrency": "c", "concurrency_limit": 1}):
            job_id = await put(store, **options)
            await store.holds.promote()
            claim = await take_one(store)
            stranger = msgspec.structs.replace(claim, job_id=new_id())
            before = await the(store, job_id)
            for outcome in OUTCOMES:
                assert not await end(store, stranger, outcome), outcome
            assert await store.claims.renew([stranger], lease=2 * LEASE) == []
            assert await store.claims.release([stranger]) == [False]
            assert not await store.claims.report(stranger, progress=0.5)
            assert await store.holds.hold([stranger], Held.GUARD) == [False]
            assert await the(store, job_id) == before
            both = [Finish(stranger, Done("1")), Finish(claim, Done("2"))]
            assert await store.claims.finish(both) == [False, True]
            assert (await the(store, job_id)).result == "2"

    async def test_a_finish_is_accepted_once(self, store: Store) -> None:
        for first in OUTCOMES:
            job_id = await put(store)
            claim = await take_one(store)
            assert await end(store, claim, first)
            before = await the(store, job_id)
            for second in OUTCOMES:
                assert not await end(store, claim, second), (first, second)
            assert await store.claims.renew([claim], lease=LEASE) == []
            assert await store.claims.release([claim]) == [False]
            assert await the(store, job_id) == before
            await store.jobs.cancel(job_id, "next")

    async def test_the_same_claim_twice_in_one_call_is_accepted_once(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        accepted = await store.claims.finish([Finish(claim, Done("1")), Finish(claim, Dead("d"))])
        assert accepted == [True, False]
        record = await the(store, job_id)
        assert (record.state, record.result) == (State.SUCCEEDED, "1")

    async def test_a_released_claim_is_no_longer_held(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        assert await store.claims.release([claim]) == [True]
        assert await store.claims.release([claim]) == [False]
        assert not await end(store, claim)
        assert await store.claims.renew([claim], lease=LEASE) == []

    async def test_a_claim_that_was_put_on_hold_is_no_longer_held(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        assert await store.holds.hold([claim], Held.GUARD) == [True]
        assert await store.holds.hold([claim], Held.GUARD) == [False]
        assert not await end(store, claim)

    async def test_lost_and_held_claims_in_one_call_are_told_apart(self, store: Store) -> None:
        await put_many(store, 3)
        claims = await take(store, 3)
        await end(store, claims[1])
        accepted = await store.claims.finish([Finish(claim, Done()) for claim in claims])
        assert accepted == [True, False, True]

    async def test_of_many_finishes_at_once_one_is_accepted(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        clients = [store, await self.second(store)]
        answers = await asyncio.gather(*(end(clients[n % 2], claim, Done(str(n))) for n in range(20)))
        assert answers.count(True) == 1
        assert (await the(store, claim.job_id)).result == str(answers.index(True))

    async def test_tokens_only_grow(self, store: Store) -> None:
        tokens = []
        for _ in range(5):
            await put(store)
            claim = await take_one(store)
            tokens.append(claim.token)
            await end(store, claim)
        assert tokens == sorted(set(tokens))
        assert tokens[0] >= 2**40

    async def test_rescue_draws_a_new_token(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.claims.rescue_worker("w1")
        token = (await the(store, job_id)).token
        assert token is None or token > claim.token
        assert (await take_suspect(store)).token > (token or claim.token)

    async def test_tokens_grow_across_a_raised_epoch(self, store: Store) -> None:
        await put_many(store, 2)
        before = await take_one(store)
        epoch = await store.raise_epoch()
        after = await take_one(store)
        assert before.token < 2 * 2**40 <= after.token
        assert epoch == before.token // 2**40 + 1
        assert await end(store, before), "raising the epoch takes nothing from who holds a claim"
        assert await store.raise_epoch() == epoch + 1


class SettleConformance(Conformance):
    async def test_settle_knows_that_a_finish_was_accepted(self, store: Store) -> None:
        for outcome in OUTCOMES:
            job_id = await put(store)
            claim = await take_one(store)
            assert not await store.claims.settle(job_id, claim.token), "it still runs"
            await end(store, claim, outcome)
            assert await store.claims.settle(job_id, claim.token), outcome
            assert not await store.claims.settle(job_id, claim.token + 1), outcome
            await store.jobs.cancel(job_id, "next")

    async def test_settle_knows_that_a_finish_was_not_accepted(self, store: Store) -> None:
        job_id = await put(store)
        lost = await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        assert not await store.claims.settle(job_id, lost.token)
        holder = await take_suspect(store)
        assert not await store.claims.settle(job_id, lost.token)
        await end(store, holder)
        assert not await store.claims.settle(job_id, lost.token)
        assert await store.claims.settle(job_id, holder.token)
