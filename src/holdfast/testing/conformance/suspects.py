"""Suspects: a job whose worker died runs alone from then on, and three deaths while alone end it."""

from __future__ import annotations

from holdfast.kernel.outcomes import Dead, Done, Retry
from holdfast.store.ports import Store
from holdfast.store.records import STRIKES_LIMIT, Enqueued
from holdfast.store.states import Held, State
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


async def make_suspect(store: Store, *, worker: str = "w1") -> None:
    await take(store, 1, worker=worker)
    await store.claims.rescue_worker(worker)


class SuspectsConformance(Conformance):
    async def test_a_suspect_is_claimed_alone_and_never_with_others(self, store: Store) -> None:
        suspect = await put(store)
        await make_suspect(store)
        plain = await put(store)
        assert ids(await take(store, 10)) == [plain]
        claim = await take_suspect(store)
        assert (claim.job_id, claim.alone, claim.attempt, claim.interruptions) == (suspect, True, 2, 1)
        assert await store.claims.claim_suspect(["default"], lease=LEASE, worker="w") is None

    async def test_only_suspects_are_claimed_as_suspects(self, store: Store) -> None:
        await put(store)
        assert await store.claims.claim_suspect(["default"], lease=LEASE, worker="w") is None
        assert await store.claims.claim_suspect([], lease=LEASE, worker="w") is None

    async def test_the_oldest_suspect_of_the_queues_comes_first(self, store: Store) -> None:
        made = []
        for queue in ("mail", "default", "mail"):
            made.append(await put(store, queue=queue))
            await take_one(store, queue)
            await store.claims.rescue_worker("w1")
        claims = [
            await store.claims.claim_suspect(["mail", "default"], lease=LEASE, worker="w") for _ in range(3)
        ]
        assert [claim.job_id for claim in claims if claim is not None] == made

    async def test_a_suspect_of_a_queue_that_was_not_asked_for_is_left_alone(self, store: Store) -> None:
        await put(store)
        await make_suspect(store)
        assert await store.claims.claim_suspect(["mail"], lease=LEASE, worker="w") is None

    async def test_a_suspect_of_a_paused_queue_is_left_alone(self, store: Store) -> None:
        await put(store)
        await make_suspect(store)
        await store.queues.pause("default", by="ada")
        assert await store.claims.claim_suspect(["default"], lease=LEASE, worker="w") is None
        await store.queues.resume("default", by="ada")
        await take_suspect(store)

    async def test_an_expired_suspect_is_skipped(self, store: Store) -> None:
        await put(store, expires=60)
        await make_suspect(store)
        await self.advance(store, 60)
        assert await store.claims.claim_suspect(["default"], lease=LEASE, worker="w") is None

    async def test_an_expired_suspect_hides_no_older_one_of_another_queue(self, store: Store) -> None:
        made = []
        for queue, expires in (("mail", 60), ("default", None), ("mail", None)):
            made.append(await put(store, queue=queue, expires=expires))
            await take_one(store, queue)
            await store.claims.rescue_worker("w1")
        await self.advance(store, 60)
        claim = await store.claims.claim_suspect(["mail", "default"], lease=LEASE, worker="w")
        assert claim is not None
        assert claim.job_id == made[1]

    async def test_a_suspect_stays_one_after_a_retry(self, store: Store) -> None:
        await put(store)
        await make_suspect(store)
        await end(store, await take_suspect(store), Retry())
        assert await take(store) == []
        await take_suspect(store)

    async def test_a_suspect_may_succeed(self, store: Store) -> None:
        job_id = await put(store)
        await make_suspect(store)
        assert await end(store, await take_suspect(store), Done("1"))
        record = await the(store, job_id)
        assert (record.state, record.attempt, record.interruptions) == (State.SUCCEEDED, 2, 1)

    async def test_interruptions_in_company_are_no_strikes(self, store: Store) -> None:
        job_ids = await put_many(store, 5)
        await take(store, 5)
        await store.claims.rescue_worker("w1")
        for job_id in job_ids:
            record = await the(store, job_id)
            assert (record.interruptions, record.strikes, record.state) == (1, 0, State.QUEUED)

    async def test_three_strikes_while_alone_and_the_job_is_dead(self, store: Store) -> None:
        job_id = await put(store)
        await make_suspect(store)
        for strike in range(1, STRIKES_LIMIT + 1):
            await take_suspect(store)
            await self.advance(store, LEASE)
            (rescue,) = await store.claims.rescue()
            dead = strike == STRIKES_LIMIT
            assert (rescue.state, rescue.interruptions) == (State.DEAD if dead else State.QUEUED, strike + 1)
            record = await the(store, job_id)
            assert (record.state, record.strikes) == (rescue.state, strike)
        assert (await the(store, job_id)).reason, "a dead job says why"
        assert await store.claims.claim_suspect(["default"], lease=LEASE, worker="w") is None

    async def test_a_job_dead_by_strikes_gives_back_what_it_held(self, store: Store) -> None:
        options = {"ordered": "o", "concurrency": "c", "concurrency_limit": 1}
        first = await put(store, unique="u", **options)
        behind = await put(store, **options)
        await store.holds.promote()
        await make_suspect(store)
        for _ in range(STRIKES_LIMIT):
            assert await state_of(store, behind) == held(Held.ORDERING)
            await store.holds.promote()
            await take_suspect(store)
            await store.claims.rescue_worker("w1")
        assert (await the(store, first)).state is State.DEAD
        assert await state_of(store, behind) == READY
        again = job(unique="u")
        assert await store.jobs.enqueue([again]) == [Enqueued(again.id, created=True)]

    async def test_a_finish_while_alone_is_no_strike(self, store: Store) -> None:
        job_id = await put(store)
        await make_suspect(store)
        for _ in range(STRIKES_LIMIT + 1):
            await end(store, await take_suspect(store), Retry(error="failed, and lived"))
        assert (await the(store, job_id)).strikes == 0
        await end(store, await take_suspect(store), Dead("enough"))

    async def test_a_released_suspect_may_be_claimed_again(self, store: Store) -> None:
        await put(store)
        await make_suspect(store)
        claim = await take_suspect(store)
        assert await store.claims.release([claim]) == [True]
        again = await take_suspect(store)
        assert (again.job_id, again.attempt, again.alone) == (claim.job_id, claim.attempt, True)
