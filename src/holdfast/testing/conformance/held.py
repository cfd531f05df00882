"""Why a job does not run yet, and who has what it waits for: the same on every store."""

from __future__ import annotations

from holdfast.kernel.outcomes import Retry, Snooze
from holdfast.store.held_records import HeldBy, HeldFor, Holder
from holdfast.store.ports import Store
from holdfast.store.records import Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import end, put, put_many, take, take_one, the


async def reason(store: Store, job_id: str) -> HeldBy | None:
    (found,) = await store.holds.explained([await the(store, job_id)])
    assert found.id == job_id
    return found.held_by


class HeldConformance(Conformance):
    async def test_a_ready_job_and_one_that_runs_are_held_by_nothing(self, store: Store) -> None:
        ready = await put(store)
        assert await reason(store, ready) is None
        await take_one(store)
        assert await reason(store, ready) is None
        assert await store.holds.explained([]) == []

    async def test_a_job_in_a_paused_queue_says_who_has_paused_it(self, store: Store) -> None:
        job_id = await put(store, queue="mail")
        await store.queues.pause("mail", by="ada")
        assert await reason(store, job_id) == HeldBy(reason=HeldFor.PAUSED, name="mail", by="ada")

    async def test_a_job_with_a_time_says_which(self, store: Store) -> None:
        job_id = await put(store, delay=60)
        assert await reason(store, job_id) == HeldBy(reason=HeldFor.TIME, until=await store.now() + 60)

    async def test_a_job_that_nobody_has_looked_at_says_so(self, store: Store) -> None:
        job_id = await put(store, ordered="o")
        assert await reason(store, job_id) == HeldBy(reason=HeldFor.ARRIVED)

    async def test_a_job_in_order_names_the_one_before_it(self, store: Store) -> None:
        first, second = await put(store, ordered="o"), await put(store, ordered="o")
        await store.holds.promote()
        before = Holder(first, "mail.send", State.QUEUED, None)
        assert await reason(store, second) == HeldBy(reason=HeldFor.ORDERING, name="o", job=before)
        await take_one(store)
        now = await store.now()
        running = Holder(first, "mail.send", State.RUNNING, now)
        assert await reason(store, second) == HeldBy(reason=HeldFor.ORDERING, name="o", job=running)

    async def test_a_job_without_a_slot_names_one_that_has_one(self, store: Store) -> None:
        keys = {"concurrency": "c", "concurrency_limit": 2}
        first = await put(store, **keys)
        await put_many(store, 1, **keys)
        last = await put(store, **keys)
        await store.holds.promote()
        found = await reason(store, last)
        assert found is not None
        assert (found.reason, found.name, found.number, found.limit) == (HeldFor.CONCURRENCY, "c", 2, 2)
        assert found.job == Holder(first, "mail.send", State.QUEUED, None)

    async def test_a_job_of_a_tenant_says_how_many_are_before_it(self, store: Store) -> None:
        await put_many(store, 2, tenant="acme")
        last = await put(store, tenant="acme")
        await store.holds.promote(window=2)
        assert await reason(store, last) == HeldBy(reason=HeldFor.TENANT, name="acme", number=2)

    async def test_a_job_that_its_guard_refused_names_it(self, store: Store) -> None:
        job_id = await put(store, guard="stripe")
        await store.holds.hold([await take_one(store)], Held.GUARD)
        assert await reason(store, job_id) == HeldBy(reason=HeldFor.GUARD, name="stripe")

    async def test_a_job_of_an_unknown_task_names_it(self, store: Store) -> None:
        job_id = await put(store, task="new.task")
        await store.holds.hold([await take_one(store)], Held.UNKNOWN_TASK)
        assert await reason(store, job_id) == HeldBy(reason=HeldFor.UNKNOWN_TASK, name="new.task")

    async def test_a_job_that_waits_for_a_lock_names_the_lock_and_who_has_it(self, store: Store) -> None:
        holder = await put(store, task="shop.ship")
        claim = await take_one(store)
        owner = f"worker-1/{holder}/{claim.token}"
        await store.leases.acquire("one", owner=owner, ttl=30)
        waiting = await put(store)
        await end(store, await take_one(store), Snooze(after=1, lock="one"))
        now = await store.now()
        job = Holder(holder, "shop.ship", State.RUNNING, now)
        assert await reason(store, waiting) == HeldBy(reason=HeldFor.LOCK, name="one", until=now + 1, job=job)
        await self.advance(store, 30)  # nobody has it any more: at its next look it is taken
        found = await reason(store, waiting)
        assert found == HeldBy(reason=HeldFor.LOCK, name="one", until=now + 1)

    async def test_a_lock_that_no_job_holds_names_its_owner(self, store: Store) -> None:
        await store.leases.acquire("one", owner="report", ttl=30)
        waiting = await put(store)
        await end(store, await take_one(store), Snooze(after=1, lock="one"))
        found = await reason(store, waiting)
        assert found is not None
        assert (found.reason, found.by, found.job) == (HeldFor.LOCK, "report", None)

    async def test_a_job_that_waits_for_a_time_again_forgets_the_lock(self, store: Store) -> None:
        for outcome in (Snooze(after=5), Retry(after=5)):
            job_id = await put(store)
            await end(store, await take_one(store), Snooze(after=1, lock="one"))
            await self.advance(store, 1)
            await store.holds.promote()
            assert await reason(store, job_id) is None
            (claim,) = await take(store, 1)
            await store.claims.finish([Finish(claim, outcome)])
            assert await reason(store, job_id) == HeldBy(reason=HeldFor.TIME, until=await store.now() + 5)

    async def test_many_are_explained_together_in_their_order(self, store: Store) -> None:
        ids = [await put(store, delay=60), await put(store), await put(store, ordered="o")]
        records = [await the(store, each) for each in ids]
        found = await store.holds.explained(records)
        assert [each.id for each in found] == ids
        assert [each.held_by and each.held_by.reason for each in found] == [
            HeldFor.TIME,
            None,
            HeldFor.ARRIVED,
        ]
