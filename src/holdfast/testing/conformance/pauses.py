"""Tenants that are paused: nothing of them is claimed, nothing is forgotten, and all goes on in the order of its times."""

from __future__ import annotations

from asyncio import gather

from holdfast.kernel.errors import UsageError
from holdfast.kernel.outcomes import Done
from holdfast.store.held_records import HeldBy, HeldFor
from holdfast.store.ports import Store
from holdfast.store.records import Finish, PausedTenant
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    Rollback,
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
)
from holdfast.testing.conformance.tenants import drain


async def pause(store: Store, tenant: str = "a", **more: object) -> None:
    await store.tenants.pause(tenant, reason="needs a new login", by="ada", **more)


async def resume(store: Store, tenant: str = "a") -> None:
    await store.tenants.resume(tenant, by="bob")
    while await store.holds.promote():
        pass


class PausesConformance(Conformance):
    async def test_no_job_of_a_paused_tenant_is_claimed(self, store: Store) -> None:
        mine, other, plain = await put(store, tenant="a"), await put(store, tenant="b"), await put(store)
        await store.holds.promote()
        await pause(store)
        late = await put(store, tenant="a")
        await store.holds.promote()
        second = await self.second(store)
        claims = await second.claims.claim({"default": 5}, lease=LEASE, worker="w")
        assert sorted(ids(claims)) == sorted([other, plain])
        assert [await state_of(store, job_id) for job_id in (mine, late)] == [held(Held.PAUSED)] * 2
        await resume(second)
        assert ids(await take(store, 5)) == [mine, late]

    async def test_what_runs_of_a_paused_tenant_goes_on(self, store: Store) -> None:
        await put(store, tenant="a")
        await store.holds.promote()
        claim = await take_one(store)
        await pause(store)
        assert len(await store.claims.renew([claim], lease=LEASE)) == 1
        assert await end(store, claim)

    async def test_a_suspect_of_a_paused_tenant_is_not_claimed(self, store: Store) -> None:
        suspect = await put(store, tenant="a")
        await store.holds.promote()
        await take_one(store)
        await store.claims.rescue_worker("w1")
        await pause(store)
        await store.holds.promote()
        assert await store.claims.claim_suspect(["default"], lease=LEASE, worker="w") is None
        await resume(store)
        assert (await take_suspect(store)).job_id == suspect

    async def test_a_job_is_held_when_it_becomes_due_and_not_before(self, store: Store) -> None:
        await pause(store)
        job_id = await put(store, tenant="a", delay=60)
        await store.holds.promote()
        assert await state_of(store, job_id) == held(Held.TIME)
        await self.advance(store, 61)
        await store.holds.promote()
        assert await state_of(store, job_id) == held(Held.PAUSED)

    async def test_a_release_goes_by_the_times(self, store: Store) -> None:
        first = await put(store, tenant="a")
        await store.holds.promote()
        await pause(store)
        delays = [50, 10, 40, 20, 30]
        made = [await put(store, tenant="a", delay=delay) for delay in delays]
        await self.advance(store, 60)
        while await store.holds.promote():
            pass
        await store.tenants.resume("a", by="bob")
        last = await put(store, tenant="a")
        while await store.holds.promote(limit=2):
            pass
        by_time = [made[delays.index(delay)] for delay in sorted(delays)]
        assert await drain(store, 2) == [first, *by_time, last]

    async def test_a_release_of_a_full_window_goes_by_the_times(self, store: Store) -> None:
        made = await put_many(store, 8, tenant="a")
        await store.holds.promote(window=3)
        await pause(store)
        made += await put_many(store, 4, tenant="a")
        await store.holds.promote(window=3)
        await store.tenants.resume("a", by="bob")
        while await store.holds.promote(window=3):
            pass
        assert await drain(store, 2) == made

    async def test_a_release_takes_turns_with_what_is_due(self, store: Store) -> None:
        await pause(store)
        await put_many(store, 40, tenant="a")
        other = await put(store, tenant="b", delay=5)
        while await store.holds.promote():
            pass
        await self.advance(store, 6)
        await store.tenants.resume("a", by="bob")
        await store.holds.promote(limit=4)
        assert await state_of(store, other) == READY

    async def test_a_pause_gives_back_slots_and_passes_them_on(self, store: Store) -> None:
        key = {"concurrency": "c", "concurrency_limit": 1}
        mine, other = await put(store, tenant="a", **key), await put(store, **key)
        await store.holds.promote()
        assert await state_of(store, other) == held(Held.CONCURRENCY)
        await pause(store)
        assert [await state_of(store, job_id) for job_id in (mine, other)] == [held(Held.PAUSED), READY]

    async def test_a_pause_gives_back_the_slot_of_a_job_that_waits_for_its_window(self, store: Store) -> None:
        """Jobs of other tenants would wait for that slot until the resume."""
        key = {"concurrency": "c", "concurrency_limit": 1}
        first = await put(store, tenant="a")
        await store.holds.promote(window=1)
        mine = await put(store, tenant="a", **key)
        await store.holds.promote(window=1)
        assert await state_of(store, mine) == held(Held.TENANT)
        other = await put(store, tenant="b", **key)
        await store.holds.promote(window=1)
        assert await state_of(store, other) == held(Held.CONCURRENCY)
        await pause(store)
        assert [await state_of(store, job_id) for job_id in (mine, other)] == [held(Held.PAUSED), READY]
        assert ids(await take(store, 5)) == [other]
        await store.holds.repair()
        await resume(store)
        assert await drain(store, 2) == [first]
        assert await state_of(store, mine) == held(Held.CONCURRENCY)

    async def test_a_pause_again_keeps_the_first_words(self, store: Store) -> None:
        await pause(store)
        since = await store.now()
        await self.advance(store, 5)
        await store.tenants.pause("a", reason="holiday", by="bob")
        assert await store.tenants.paused() == [PausedTenant("a", "needs a new login", "ada", since)]

    async def test_a_pause_during_a_release_holds_again(self, store: Store) -> None:
        await pause(store)
        made = await put_many(store, 4, tenant="a")
        await store.holds.promote()
        await store.tenants.resume("a", by="bob")
        await store.holds.promote(limit=2)
        await pause(store)
        while await store.holds.promote():
            pass
        assert await take(store, 5) == []
        await resume(store)
        assert await drain(store, 1) == made

    async def test_a_pause_commits_with_the_callers_rows_or_not_at_all(self, store: Store) -> None:
        job_id = await put(store, tenant="a")
        await store.holds.promote()

        async def rolled_back() -> None:
            async with store.transaction() as tx:
                await pause(store, tx=tx)
                raise Rollback

        with raises(Rollback):
            await rolled_back()
        assert await store.tenants.paused() == []
        assert await state_of(store, job_id) == READY
        async with store.transaction() as tx:
            await pause(store, tx=tx)
        assert await state_of(store, job_id) == held(Held.PAUSED)
        async with store.transaction() as tx:
            await store.tenants.resume("a", by="bob", tx=tx)
        while await store.holds.promote():
            pass
        assert ids(await take(store, 1)) == [job_id]

    async def test_the_pause_is_told_with_its_words(self, store: Store) -> None:
        job_id = await put(store, tenant="a")
        await pause(store)
        expected = HeldBy(reason=HeldFor.PAUSED, name="a", by="ada", words="needs a new login")
        for _ in range(2):  # before a promote has seen it, and after
            (record,) = await store.holds.explained([await self._found(store, job_id)])
            assert record.held_by == expected
            await store.holds.promote()
        later = await put(store, tenant="a", delay=60)
        (record,) = await store.holds.explained([await self._found(store, later)])
        assert record.held_by is not None
        assert record.held_by.reason is HeldFor.TIME

    async def test_a_paused_job_can_be_cancelled_moved_and_expire(self, store: Store) -> None:
        await pause(store)
        gone, moved = await put(store, tenant="a"), await put(store, tenant="a")
        late = await put(store, tenant="a", expires=5)
        await store.holds.promote()
        assert await store.jobs.cancel(gone, "no") is State.CANCELLED
        assert await store.jobs.move(moved, delay=60) is State.QUEUED
        await self.advance(store, 6)
        assert await store.holds.expire() == 1
        assert (await state_of(store, moved))[1] == Held.TIME
        assert (await state_of(store, late))[0] is State.CANCELLED

    async def test_a_paused_job_keeps_its_turn(self, store: Store) -> None:
        first, second = await put(store, tenant="a", ordered="o"), await put(store, ordered="o")
        await store.holds.promote()
        await pause(store)
        await store.holds.promote()
        assert await take(store, 5) == []
        await resume(store)
        assert await drain(store, 5) == [first, second]

    async def test_no_race_claims_a_job_of_a_paused_tenant_or_loses_one(self, store: Store) -> None:
        """Against the moment when a job is due, an enqueue, a promote and a claim, 200 times."""
        other, ran = await self.second(store), list[str]()

        async def work(most: int = 5) -> int:
            claims = await other.claims.claim({"default": most}, lease=LEASE, worker="w")
            await other.claims.finish([Finish(claim, Done()) for claim in claims])
            ran.extend(ids(claims))
            return len(claims)

        for number in range(200):
            due = await put(store, tenant="a", delay=1)
            await self.advance(store, 1)
            first, last = number % 2, number // 2 % 2
            racers = [other.holds.promote(), pause(store), put(store, tenant="a"), work()]
            answers = await gather(*racers[first:], *racers[:first])
            assert await work() == 0, "a job of a paused tenant was claimed"
            racers = [
                other.holds.promote(),
                store.tenants.resume("a", by="bob"),
                put(store, tenant="a"),
                work(),
            ]
            answers += await gather(*racers[last:], *racers[:last])
            made = {due, *(answer for answer in answers if isinstance(answer, str))}
            for _ in range(20):
                await store.holds.promote()
                await work()
                if made <= set(ran):
                    break
            assert made <= set(ran), f"race {number} has lost a job"
        assert len(ran) == len(set(ran)) == 600

    async def test_repair_finds_nothing_and_breaks_nothing(self, store: Store) -> None:
        await pause(store)
        await put_many(store, 3, tenant="a")
        await store.holds.promote()
        assert await store.holds.repair() == 0
        await resume(store)
        assert await store.holds.repair() == 0
        assert len(await take(store, 5)) == 3

    async def test_pausing_a_tenant_leaves_audit_rows(self, store: Store) -> None:
        await pause(store)
        await pause(store)
        await store.tenants.resume("a", by="bob")
        await store.tenants.resume("a", by="bob")
        rows = await store.audit.find(subject="tenant:a")
        assert [(row.actor, row.action) for row in rows] == [
            ("bob", "tenant.resumed"),
            ("ada", "tenant.paused"),
        ]
        assert rows[1].after == '{"reason":"needs a new login"}'

    async def test_names_of_tenants_are_checked(self, store: Store) -> None:
        with raises(UsageError):
            await store.tenants.pause("", reason="r", by="ada")
        with raises(UsageError):
            await store.tenants.pause("a", reason=7, by="ada")  # type: ignore[arg-type]

    async def _found(self, store: Store, job_id: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
        record = await store.jobs.get(job_id)
        assert record is not None
        return record


class DueOrderConformance(Conformance):
    """What was enqueued for a time goes by its times, whatever else it has."""

    async def test_jobs_of_a_tenant_go_by_their_times(self, store: Store) -> None:
        delays = [7, 3, 9, 1, 5, 8, 2, 6, 4, 10]
        made = {delay: await put(store, tenant="a", delay=delay) for delay in delays}
        await self.advance(store, 20)
        while await store.holds.promote(window=3, limit=4):
            pass
        assert await drain(store, 2) == [made[delay] for delay in sorted(delays)]

    async def test_within_a_priority_they_go_by_their_times(self, store: Store) -> None:
        made = {
            (priority, delay): await put(store, tenant="a", delay=delay, priority=priority)
            for priority, delay in [(0, 3), (5, 9), (0, 1), (5, 4), (0, 2)]
        }
        await self.advance(store, 20)
        await store.holds.promote(window=100)
        order = [(5, 4), (5, 9), (0, 1), (0, 2), (0, 3)]
        assert await drain(store, 1) == [made[each] for each in order]

    async def test_a_job_with_a_later_time_stays_behind_a_line(self, store: Store) -> None:
        made = await put_many(store, 6, tenant="a")
        await store.holds.promote(window=2)
        taken = ids(await take(store, 1))
        late = await put(store, tenant="a")
        await store.holds.promote(window=4)
        assert taken + await drain(store, 1) == [*made, late]

    async def test_jobs_of_one_slot_go_by_their_times(self, store: Store) -> None:
        made = {
            delay: await put(store, delay=delay, concurrency="c", concurrency_limit=1)
            for delay in (3, 1, 4, 2)
        }
        await self.advance(store, 20)
        await store.holds.promote()
        assert await drain(store, 1) == [made[delay] for delay in (1, 2, 3, 4)]

    async def test_an_order_by_time_goes_by_the_times(self, store: Store) -> None:
        late = await put(store, ordered="o", by_time=True, delay=60)
        soon = await put(store, ordered="o", by_time=True, delay=10)
        now = await put(store, ordered="o", by_time=True)
        await store.holds.promote()
        assert ids(await take(store, 5)) == [now]
        await self.advance(store, 11)
        await store.holds.promote()
        assert await state_of(store, soon) == held(Held.ORDERING)  # one at a time all the same
        await self.advance(store, 60)
        await store.holds.promote()
        assert await state_of(store, late) == held(Held.ORDERING)

    async def test_after_an_outage_an_order_by_time_goes_by_the_times(self, store: Store) -> None:
        delays = [7, 3, 9, 1, 5]
        made = {delay: await put(store, ordered="o", by_time=True, delay=delay) for delay in delays}
        await self.advance(store, 20)
        await store.holds.promote()
        assert await drain(store, 5) == [made[delay] for delay in sorted(delays)]

    async def test_one_in_an_order_by_time_can_be_moved(self, store: Store) -> None:
        first = await put(store, ordered="o", by_time=True, delay=10)
        second = await put(store, ordered="o", by_time=True, delay=20)
        await store.holds.promote()
        assert await store.jobs.move(second, delay=5) is State.QUEUED
        await self.advance(store, 6)
        await store.holds.promote()
        assert await state_of(store, second) == READY
        await self.advance(store, 5)
        await store.holds.promote()
        assert await state_of(store, first) == held(Held.ORDERING)
        assert await store.jobs.move(first, delay=60) is State.QUEUED
        assert await state_of(store, first) == held(Held.TIME)
        assert await store.jobs.move(first, delay=0) is State.QUEUED
        assert await drain(store, 5) == [second]
        await store.holds.promote()
        assert await drain(store, 5) == [first]

    async def test_by_time_needs_an_order(self, store: Store) -> None:
        with raises(UsageError, "ordered"):
            await put(store, by_time=True)
