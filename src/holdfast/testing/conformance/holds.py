"""Promote, hold, unhold, expire, repair: from held to ready and back."""

from __future__ import annotations

from holdfast.store.ports import Store
from holdfast.store.records import Gated
from holdfast.store.states import Held, State
from holdfast.testing.conformance.concurrency import ConcurrencyConformance
from holdfast.testing.conformance.gates import GatesConformance
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    end,
    held,
    ids,
    put,
    put_many,
    state_of,
    take,
    take_one,
    the,
    total,
)
from holdfast.testing.conformance.ordering import OrderingConformance
from holdfast.testing.conformance.tenants import TenantsConformance


class PromoteConformance(Conformance):
    async def test_nothing_to_promote_is_zero(self, store: Store) -> None:
        await put(store)
        assert await store.holds.promote() == 0

    async def test_a_job_is_ready_when_its_time_has_come_and_not_before(self, store: Store) -> None:
        job_id = await put(store, delay=10)
        await self.advance(store, 9.5)
        assert await store.holds.promote() == 0
        assert await state_of(store, job_id) == held(Held.TIME)
        await self.advance(store, 0.5)
        assert await store.holds.promote() == 1
        assert await state_of(store, job_id) == READY
        assert await store.holds.promote() == 0

    async def test_promote_looks_at_no_more_than_asked_oldest_first(self, store: Store) -> None:
        made = await put_many(store, 5, tenant="a")
        assert await store.holds.promote(limit=2) == 2
        assert [await state_of(store, job_id) for job_id in made] == [READY] * 2 + [held(Held.ARRIVED)] * 3
        assert [await store.holds.promote(limit=2) for _ in range(3)] == [2, 1, 0]

    async def test_due_jobs_are_served_in_the_order_of_their_times(self, store: Store) -> None:
        late, early = await put(store, delay=10), await put(store, delay=5)
        await self.advance(store, 10)
        await store.holds.promote()
        assert ids(await take(store, 10)) == [early, late]

    async def test_promote_gives_the_first_reason_that_is_missing(self, store: Store) -> None:
        keys = {"ordered": "o", "concurrency": "c", "concurrency_limit": 1, "tenant": "t"}
        first, behind = [await put(store, **keys) for _ in range(2)]
        later = await put(store, delay=60, concurrency="c", concurrency_limit=1, tenant="t")
        slotless = await put(store, concurrency="c", concurrency_limit=1, tenant="t")
        roomless = await put(store, tenant="t")
        await store.holds.promote(window=1)
        assert await state_of(store, first) == READY
        assert await state_of(store, behind) == held(Held.ORDERING)
        assert await state_of(store, later) == held(Held.TIME)
        assert await state_of(store, slotless) == held(Held.CONCURRENCY)
        assert await state_of(store, roomless) == held(Held.TENANT)


class ByHandConformance(Conformance):
    async def test_hold_is_uncharged_and_only_unhold_ends_it(self, store: Store) -> None:
        job_id = await put(store, guard="mailer")
        assert await store.holds.hold([await take_one(store)], Held.GUARD) == [True]
        record = await the(store, job_id)
        assert (record.state, record.held, record.attempt) == (State.QUEUED, Held.GUARD, 0)
        assert (record.lease_until, record.interruptions) == (None, 0)
        await self.advance(store, 100 * LEASE)
        assert await store.holds.promote() == 0
        assert await store.holds.repair() == 0
        assert await store.claims.rescue() == []
        assert await take(store, 10) == []
        assert await store.holds.unhold(Held.GUARD) == 1
        assert (await take_one(store)).attempt == 1

    async def test_a_reason_may_be_given_as_text(self, store: Store) -> None:
        job_id = await put(store)
        assert await store.holds.hold([await take_one(store)], "guard") == [True]  # type: ignore[arg-type]
        assert [record.id for record in await store.jobs.find(state="queued", held="guard")] == [job_id]  # type: ignore[arg-type]
        assert await store.holds.unhold("guard") == 1  # type: ignore[arg-type]

    async def test_unhold_lets_go_of_this_reason_only(self, store: Store) -> None:
        by_guard, by_task = await put_many(store, 2)
        first, second = await take(store, 2)
        await store.holds.hold([first], Held.GUARD)
        await store.holds.hold([second], Held.UNKNOWN_TASK)
        assert await state_of(store, by_task) == held(Held.UNKNOWN_TASK)
        assert await store.holds.unhold(Held.UNKNOWN_TASK) == 1
        assert ids(await take(store, 10)) == [by_task]
        assert await state_of(store, by_guard) == held(Held.GUARD)

    async def test_unhold_selects_by_queue_task_and_guard(self, store: Store) -> None:
        one = await put(store, guard="g")
        mail = await put(store, queue="mail", guard="g")
        task = await put(store, task="other", guard="g")
        other = await put(store, guard="h")
        claims = await store.claims.claim({"default": 5, "mail": 5}, lease=LEASE, worker="w")
        assert await store.holds.hold(claims, Held.GUARD) == [True] * 4
        assert await store.holds.unhold(Held.GUARD, queue="mail") == 1
        assert await state_of(store, mail) == READY
        assert await store.holds.unhold(Held.GUARD, tasks=["other", "third"]) == 1
        assert await state_of(store, task) == READY
        assert await store.holds.unhold(Held.GUARD, tasks=[]) == 0
        assert await store.holds.unhold(Held.GUARD, guard="h") == 1
        assert await state_of(store, other) == READY
        assert await state_of(store, one) == held(Held.GUARD)
        assert await store.holds.unhold(Held.GUARD, guard="g", queue="default", tasks=["mail.send"]) == 1
        assert await state_of(store, one) == READY

    async def test_what_is_gated_is_counted_by_guard(self, store: Store) -> None:
        for guard, number in (("h", 1), ("g/b", 3), ("g/a", 2), (None, 1)):
            await put_many(store, number, guard=guard)
        assert await store.holds.gated() == []
        await store.holds.hold(await take(store, 10), Held.GUARD)
        found = [Gated(None, 1), Gated("g/a", 2), Gated("g/b", 3), Gated("h", 1)]
        assert await store.holds.gated() == found
        assert await store.holds.gated(limit=2) == found[:2]
        assert await store.holds.gated(after="g/a", limit=1) == found[2:3]
        assert await store.holds.unhold(Held.GUARD, guard="g/b", limit=2) == 2
        await store.holds.unhold(Held.GUARD, guard="h")
        assert await store.holds.gated() == [Gated(None, 1), Gated("g/a", 2), Gated("g/b", 1)]

    async def test_unhold_lets_go_of_the_oldest_first_and_no_more_than_asked(self, store: Store) -> None:
        made = await put_many(store, 4)
        claims = await take(store, 4)
        await store.holds.hold(claims[::-1], Held.GUARD)
        assert await store.holds.unhold(Held.GUARD, limit=3) == 3
        assert ids(await take(store, 10)) == made[:3]
        assert await state_of(store, made[3]) == held(Held.GUARD)

    async def test_what_has_slots_or_a_tenant_is_looked_at_again(self, store: Store) -> None:
        for keys in ({"concurrency": "c", "concurrency_limit": 1}, {"tenant": "t"}):
            job_id = await put(store, **keys)
            await store.holds.promote()
            await store.holds.hold([await take_one(store)], Held.GUARD)
            assert await store.holds.unhold(Held.GUARD) == 1
            assert await state_of(store, job_id) == held(Held.ARRIVED)
            await store.holds.promote()
            await end(store, await take_one(store))


class ExpireConformance(Conformance):
    async def test_an_expired_job_is_cancelled_and_says_so(self, store: Store) -> None:
        ready, later = await put(store, expires=10), await put(store, expires=10, delay=60)
        keyed = await put(store, expires=10, tenant="t")
        alive = await put(store, expires=10.5)
        await self.advance(store, 9.5)
        assert await store.holds.expire() == 0
        await self.advance(store, 0.5)
        assert await store.holds.expire() == 3
        for job_id in (ready, later, keyed):
            record = await the(store, job_id)
            assert (record.state, record.reason, record.finished_at) == (
                State.CANCELLED,
                "expired",
                await store.now(),
            )
        assert await state_of(store, alive) == READY

    async def test_expire_takes_no_more_than_asked(self, store: Store) -> None:
        await put_many(store, 5, expires=1)
        await self.advance(store, 1)
        assert [await store.holds.expire(limit=2) for _ in range(4)] == [2, 2, 1, 0]

    async def test_a_job_that_runs_does_not_expire(self, store: Store) -> None:
        await put(store, expires=1)
        claim = await take_one(store)
        await self.advance(store, 1)
        assert await store.holds.expire() == 0
        assert await end(store, claim)

    async def test_an_expired_unique_key_is_free(self, store: Store) -> None:
        await put(store, expires=1, unique="u")
        await self.advance(store, 1)
        await store.holds.expire()
        await put(store, unique="u")
        assert await total(store) == 1


class RepairConformance(Conformance):
    async def test_repair_finds_nothing_unless_something_was_missed(self, store: Store) -> None:
        await put_many(store, 3, ordered="o")
        await put_many(store, 3, concurrency="c", concurrency_limit=1)
        await put_many(store, 3, tenant="t")
        await store.holds.promote()
        assert await store.holds.repair() == 0
        for claim in await take(store, 10):
            await end(store, claim)
            assert await store.holds.repair() == 0

    async def test_repair_finds_a_free_turn(self, store: Store) -> None:
        first, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        await self.bench.tear_out(store, first)
        assert await state_of(store, second) == held(Held.ORDERING)
        assert await store.holds.repair() == 1
        assert await state_of(store, second) == READY

    async def test_repair_finds_a_free_slot(self, store: Store) -> None:
        first, second = await put_many(store, 2, concurrency="c", concurrency_limit=1)
        await store.holds.promote()
        await self.bench.tear_out(store, first)
        assert await store.holds.repair() == 1
        assert await state_of(store, second) == READY

    async def test_repair_finds_room_in_a_window(self, store: Store) -> None:
        first, second = await put_many(store, 2, tenant="t")
        await store.holds.promote(window=1)
        await self.bench.tear_out(store, first)
        assert await store.holds.repair() == 1
        assert await state_of(store, second) == READY


class HoldsConformance(
    PromoteConformance,
    OrderingConformance,
    ConcurrencyConformance,
    TenantsConformance,
    ByHandConformance,
    GatesConformance,
    ExpireConformance,
    RepairConformance,
):
    """All promises of `store.holds`."""
