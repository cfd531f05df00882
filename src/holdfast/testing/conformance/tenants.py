"""Tenants: those of one queue take turns, and one that is alone gets everything."""

from __future__ import annotations

from holdfast.kernel.outcomes import Done
from holdfast.store.ports import Store
from holdfast.store.records import Finish
from holdfast.store.states import Held
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    held,
    ids,
    put,
    put_many,
    state_of,
    take,
    take_one,
    take_suspect,
)


async def drain(store: Store, at_once: int) -> list[str]:
    """Run everything that is ready, so many at a time; the ids in the order in which they were served."""
    served: list[str] = []
    while claims := await take(store, at_once):
        served += ids(claims)
        await store.claims.finish([Finish(claim, Done()) for claim in claims])
    return served


class TenantsConformance(Conformance):
    async def test_a_tenant_has_no_more_ready_than_its_window(self, store: Store) -> None:
        made = await put_many(store, 5, tenant="a")
        await store.holds.promote(window=2)
        assert [await state_of(store, job_id) for job_id in made] == [READY] * 2 + [held(Held.TENANT)] * 3

    async def test_the_window_is_for_each_queue_and_tenant(self, store: Store) -> None:
        for queue in ("default", "mail"):
            for tenant in ("a", "b"):
                await put_many(store, 2, tenant=tenant, queue=queue)
        await store.holds.promote(window=1)
        assert len(await take(store, 10)) == 2
        assert len(await take(store, 10, "mail")) == 2

    async def test_a_claim_fills_the_window_again(self, store: Store) -> None:
        made = await put_many(store, 6, tenant="a")
        await store.holds.promote(window=2)
        assert ids(await take(store, 2)) == made[:2]
        assert [await state_of(store, job_id) for job_id in made[2:]] == [READY] * 2 + [held(Held.TENANT)] * 2
        assert ids(await take(store, 2)) == made[2:4]

    async def test_a_claim_of_a_suspect_fills_the_window_again(self, store: Store) -> None:
        suspect = await put(store, tenant="a")
        await store.holds.promote()
        await take_one(store)
        await store.claims.rescue_worker("w1")
        behind = await put(store, tenant="a")
        await store.holds.promote(window=1)
        assert await state_of(store, suspect) == READY
        assert await state_of(store, behind) == held(Held.TENANT)
        await take_suspect(store)
        assert await state_of(store, behind) == READY

    async def test_a_lone_tenant_gets_everything(self, store: Store) -> None:
        made = await put_many(store, 500, tenant="a")
        await store.holds.promote(window=20)
        assert await drain(store, 50) == made

    async def test_a_small_tenant_is_served_within_one_window_of_a_large_one(self, store: Store) -> None:
        await put_many(store, 2000, tenant="large")
        small = await put(store, tenant="small")
        while await store.holds.promote(window=10):
            pass
        first, second = await take(store, 10), await take(store, 10)
        assert small in ids(first + second), "the small tenant should not wait for 2,000 jobs"

    async def test_one_promote_reaches_a_small_tenant_behind_a_crowd(self, store: Store) -> None:
        await put_many(store, 200, tenant="large")
        small, plain = (
            await put(store, tenant="small"),
            await put(store, concurrency="c", concurrency_limit=1),
        )
        elsewhere = await put(store, tenant="large", queue="mail")
        await store.holds.promote(window=10, limit=20)
        assert [await state_of(store, job_id) for job_id in (small, plain, elsewhere)] == [READY] * 3

    async def test_each_of_very_many_tenants_has_its_turn_behind_a_crowd(self, store: Store) -> None:
        await put_many(store, 900, tenant="large")
        small = [await put(store, tenant=f"small{number}") for number in range(250)]
        for _ in range(4):
            await store.holds.promote(window=10, limit=200)
        assert {await state_of(store, job_id) for job_id in small} == {READY}

    async def test_a_job_that_is_taken_early_overtakes_none_of_its_order(self, store: Store) -> None:
        await put_many(store, 20, tenant="large")
        first = await put(store, tenant="large", ordered="o")
        second = await put(store, tenant="small", ordered="o")
        while await store.holds.promote(window=100, limit=4):
            assert await state_of(store, second) != READY
        assert await state_of(store, first) == READY
        assert await state_of(store, second) == held(Held.ORDERING)

    async def test_a_tenant_has_its_turn_beside_crowds_that_are_due_and_small_looks(
        self, store: Store
    ) -> None:
        for number in range(12):
            await put_many(store, 4, tenant=f"big{number:02}")
        await put_many(store, 40, queue="late", delay=5)
        await self.advance(store, 6)
        small = await put(store, tenant="small")
        for _ in range(7):  # twelve others, and two of each look are chosen by their places
            await store.holds.promote(limit=8)
        assert await state_of(store, small) == READY

    async def test_tenants_take_turns(self, store: Store) -> None:
        large = await put_many(store, 100, tenant="large")
        small = await put_many(store, 10, tenant="small")
        await store.holds.promote(window=5)
        served = await drain(store, 5)
        assert sorted(served) == sorted(large + small)
        assert max(served.index(job_id) for job_id in small) < 40

    async def test_a_look_for_what_was_missed_leaves_the_turns_alone(self, store: Store) -> None:
        """It knows no worker's window: had it filled one, a whole tenant would come before the next of another."""
        made = {tenant: await put_many(store, 4, tenant=tenant) for tenant in ("a", "b")}
        await store.holds.promote(window=1)
        assert await store.holds.repair() == 0
        in_turns = [job_id for pair in zip(made["a"], made["b"], strict=True) for job_id in pair]
        assert await drain(store, 1) == in_turns

    async def test_a_ready_job_that_is_moved_away_lets_in_one_of_its_tenant(self, store: Store) -> None:
        made = await put_many(store, 4, tenant="a")
        await store.holds.promote(window=1)
        await store.jobs.move(made[0], delay=3600)
        assert [await state_of(store, job_id) for job_id in made[1:]] == [READY] + [held(Held.TENANT)] * 2

    async def test_jobs_of_a_tenant_that_wait_go_by_priority_then_age(self, store: Store) -> None:
        first, old, young = await put_many(store, 3, tenant="a")
        high = await put(store, tenant="a", priority=5)
        await store.holds.promote(window=1)
        assert await drain(store, 1) == [first, high, old, young]

    async def test_plain_jobs_know_no_window(self, store: Store) -> None:
        await put_many(store, 5)
        await store.holds.promote(window=1)
        assert len(await take(store, 10)) == 5

    async def test_running_jobs_do_not_fill_the_window(self, store: Store) -> None:
        await put_many(store, 3, tenant="a")
        await store.holds.promote(window=1)
        taken = [len(await store.claims.claim({"default": 1}, lease=LEASE, worker="w")) for _ in range(4)]
        assert taken == [1, 1, 1, 0]
