"""Many at once, through several clients: nothing is taken twice, nothing is stored twice."""

from __future__ import annotations

import asyncio
from collections import Counter

from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish
from holdfast.store.states import State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import LEASE, end, ids, job, put, put_many, take, take_one, total

WORKERS = 20


class RacesConformance(Conformance):
    async def clients(self, store: Store, number: int = 3) -> list[Store]:
        return [store, *[await self.second(store) for _ in range(number - 1)]]

    async def test_no_job_is_claimed_twice(self, store: Store) -> None:
        made = await put_many(store, 200)
        clients = await self.clients(store)
        taken = await asyncio.gather(
            *(take(clients[n % 3], 15, worker=f"w{n}") for n in range(WORKERS)),
        )
        claimed = [job_id for claims in taken for job_id in ids(claims)]
        assert len(claimed) == len(set(claimed)), "a job was claimed twice"
        claimed += ids(await take(store, 200))
        assert sorted(claimed) == sorted(made)
        assert all(len(claims) <= 15 for claims in taken), "more than asked"

    async def test_tokens_of_claims_at_once_differ(self, store: Store) -> None:
        await put_many(store, WORKERS)
        clients = await self.clients(store)
        taken = await asyncio.gather(*(take(clients[n % 3], 1) for n in range(WORKERS)))
        tokens = [claim.token for claims in taken for claim in claims]
        assert len(tokens) == len(set(tokens)), "two claim calls have one token"

    async def test_finishing_and_claiming_at_once_does_everything_once(self, store: Store) -> None:
        made = await put_many(store, 120)
        clients = await self.clients(store)

        async def work(client: Store, worker: str) -> list[str]:
            done: list[str] = []
            claims = await take(client, 4, worker=worker)
            while claims:
                finishes = [Finish(claim, Done()) for claim in claims]
                accepted, following = await client.claims.finish_and_claim(
                    finishes, {"default": 4}, lease=LEASE, worker=worker
                )
                done += [claim.job_id for claim, ok in zip(claims, accepted, strict=True) if ok]
                claims = following
            return done

        done = await asyncio.gather(*(work(clients[n % 3], f"w{n}") for n in range(WORKERS)))
        assert sorted(job_id for ids_ in done for job_id in ids_) == sorted(made)
        assert await total(store) == 0

    async def test_of_unique_enqueues_at_once_one_is_created(self, store: Store) -> None:
        clients = await self.clients(store)
        answers = await asyncio.gather(
            *(clients[n % 3].jobs.enqueue([job(unique="u")]) for n in range(WORKERS))
        )
        assert Counter(answer.created for (answer,) in answers) == {True: 1, False: WORKERS - 1}
        assert len({answer.id for (answer,) in answers}) == 1
        assert await total(store) == 1

    async def test_of_batches_with_crossed_unique_keys_all_are_answered(self, store: Store) -> None:
        clients = await self.clients(store)
        keys = [f"u{n}" for n in range(10)]
        answers = await asyncio.gather(
            *(
                clients[n % 3].jobs.enqueue([job(unique=key) for key in (keys if n % 2 else reversed(keys))])
                for n in range(WORKERS)
            )
        )
        assert sum(answer.created for batch in answers for answer in batch) == len(keys)
        assert await total(store) == len(keys)

    async def test_the_same_id_at_once_is_one_job(self, store: Store) -> None:
        clients, new = await self.clients(store), job()
        answers = await asyncio.gather(
            *(clients[n % 3].jobs.enqueue([new], again=True) for n in range(WORKERS))
        )
        assert all(answer.created for (answer,) in answers)
        assert await total(store) == 1

    async def test_an_expired_claim_is_rescued_by_one(self, store: Store) -> None:
        await put_many(store, 10)
        await take(store, 10)
        await self.advance(store, LEASE)
        clients = await self.clients(store)
        rescued = await asyncio.gather(*(clients[n % 3].claims.rescue() for n in range(WORKERS)))
        assert Counter(each.job_id for batch in rescued for each in batch).most_common(1)[0][1] == 1
        assert sum(len(batch) for batch in rescued) == 10

    async def test_cancel_and_claim_at_once_agree(self, store: Store) -> None:
        clients = await self.clients(store, 2)
        for _ in range(10):
            job_id = await put(store)
            taken, state = await asyncio.gather(take(clients[0]), clients[1].jobs.cancel(job_id, "stop"))
            assert state is (State.RUNNING if taken else State.CANCELLED)
            for claim in taken:
                await end(store, claim)

    async def test_promotion_at_once_keeps_order_and_limits(self, store: Store) -> None:
        for _ in range(20):
            await put(store, ordered="o")
            await put(store, concurrency="c", concurrency_limit=3)
        clients = await self.clients(store)
        await asyncio.gather(*(clients[n % 3].holds.promote(limit=7) for n in range(WORKERS)))
        await store.holds.promote()
        await self._bounded(await take(store, 100))

    async def _bounded(self, claims: list[Claim]) -> None:
        assert sum(claim.ordered is not None for claim in claims) == 1
        assert sum(claim.concurrency is not None for claim in claims) == 3

    async def test_work_at_once_keeps_order_and_limits(self, store: Store) -> None:
        ordered = [await put(store, ordered="o") for _ in range(15)]
        slotted = [await put(store, concurrency="c", concurrency_limit=2) for _ in range(15)]
        await store.holds.promote()
        clients = await self.clients(store)
        running: Counter[str] = Counter()
        seen: list[str] = []

        async def work(client: Store, worker: str) -> None:
            while len(seen) < len(ordered) + len(slotted):
                claims = await take(client, 2, worker=worker)
                for claim in claims:
                    key = claim.ordered or claim.concurrency or ""
                    running[key] += 1
                    assert running["o"] <= 1, "two jobs of one ordering key run"
                    assert running["c"] <= 2, "more run than there are slots"
                await asyncio.sleep(0)  # others may run now
                for claim in claims:
                    # Before the finish: from its commit on the next one may be claimed.
                    running[claim.ordered or claim.concurrency or ""] -= 1
                    seen.append(claim.job_id)
                await client.claims.finish([Finish(claim, Done()) for claim in claims])
                await client.holds.promote()

        await asyncio.wait_for(asyncio.gather(*(work(clients[n % 3], f"w{n}") for n in range(6))), 30)
        assert [job_id for job_id in seen if job_id in set(ordered)] == ordered
        assert sorted(seen) == sorted(ordered + slotted)

    async def test_a_tick_at_once_is_one_job(self, store: Store) -> None:
        clients = await self.clients(store)
        answers = await asyncio.gather(
            *(clients[n % 3].schedules.tick("nightly", 1_900_000_000.0, job()) for n in range(WORKERS))
        )
        assert sum(answer is not None for answer in answers) == 1
        assert await total(store) == 1

    async def test_a_lease_at_once_has_one_owner(self, store: Store) -> None:
        clients = await self.clients(store)
        leases = await asyncio.gather(
            *(clients[n % 3].leases.acquire("leader", owner=f"w{n}", ttl=30) for n in range(WORKERS))
        )
        assert sum(lease is not None for lease in leases) == 1

    async def test_a_snoozing_crowd_loses_nothing(self, store: Store) -> None:
        made = await put_many(store, 40)
        clients = await self.clients(store)

        async def once(client: Store, worker: str) -> None:
            for claim in await take(client, 2, worker=worker):
                await end(client, claim, Retry(error="again"))

        await asyncio.gather(*(once(clients[n % 3], f"w{n}") for n in range(WORKERS)))
        assert sorted(ids(await take(store, 100))) == sorted(made)

    async def test_a_wrong_clock_of_a_client_decides_nothing(self, store: Store) -> None:
        """A jump of an hour either way, on every clock but the database's, changes no ownership."""
        await put(store)
        later = await put(store, delay=60)
        claim = await take_one(store)
        skew = getattr(self.bench.world, "skew", None)
        if skew is None:
            return
        for jump in (3600.0, -7200.0, 3600.0):
            skew(jump)
            assert await store.claims.rescue() == []
            assert await store.holds.promote() == 0
            assert len(await store.claims.renew([claim], lease=LEASE)) == 1
        await self.advance(store, 60)
        assert len(await store.claims.rescue()) == 1
        assert await store.holds.promote() == 1
        assert ids(await take(store)) == [later]
