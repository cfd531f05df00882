"""Move: another time or priority for a queued job, and whatever else is left alone; by itself and in a transaction."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Cancel, Dead, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
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
    the,
)


async def within(store: Store, job_id: str, *, commits: bool = True, **wish: Any) -> State | None:
    """Move in a transaction."""
    async with store.transaction() as tx:
        found = await store.jobs.move(job_id, **wish, tx=tx)
        if not commits:
            raise Rollback
    return found


class MoveConformance(Conformance):
    async def test_moving_an_id_that_nobody_has_seen_answers_none(self, store: Store) -> None:
        assert await store.jobs.move(new_id(), delay=5.0) is None
        assert await within(store, new_id(), delay=5.0) is None

    async def test_a_job_that_waits_for_its_time_gets_another(self, store: Store) -> None:
        job_id = await put(store, delay=60)
        at = await store.now() + 100
        assert await store.jobs.move(job_id, at=at) is State.QUEUED
        record = await the(store, job_id)
        assert (record.held, record.run_at) == (Held.TIME, at)
        await self.advance(store, 99)
        await store.holds.promote()
        assert await state_of(store, job_id) == held(Held.TIME)
        await self.advance(store, 2)
        await store.holds.promote()
        assert await state_of(store, job_id) == READY

    async def test_a_job_is_brought_forward_to_now(self, store: Store) -> None:
        wishes: tuple[dict[str, Any], ...] = ({"delay": 0.0}, {"at": 5.0})
        for wish in wishes:
            job_id = await put(store, delay=60)
            assert await store.jobs.move(job_id, **wish) is State.QUEUED
            assert await state_of(store, job_id) == READY
            assert ids(await take(store, 5)) == [job_id]

    async def test_a_ready_job_is_put_off(self, store: Store) -> None:
        job_id = await put(store)
        assert await store.jobs.move(job_id, delay=5.0) is State.QUEUED
        assert await take(store, 5) == []
        await self.advance(store, 6)
        await store.holds.promote()
        assert ids(await take(store, 5)) == [job_id]

    async def test_a_job_that_has_become_ready_again_is_served_last(self, store: Store) -> None:
        early, other = await put(store, delay=5), await put(store)
        await store.jobs.move(early, delay=0.0)
        assert ids(await take(store, 5)) == [other, early]

    async def test_another_priority_counts_at_once(self, store: Store) -> None:
        first, second = await put(store), await put(store)
        assert await store.jobs.move(second, priority=5) is State.QUEUED
        assert (await the(store, second)).priority == 5
        assert ids(await take(store, 5)) == [second, first]

    async def test_another_priority_stays_through_a_retry(self, store: Store) -> None:
        job_id = await put(store)
        await store.jobs.move(job_id, priority=7)
        await end(store, await take_one(store), Retry(after=5))
        assert (await the(store, job_id)).priority == 7

    async def test_it_keeps_its_id_arguments_keys_attempts_and_steps(self, store: Store) -> None:
        job_id = await put(store, unique="post:7", args='{"post":7}', ordered="o", tenant="t")
        await store.holds.promote()
        claim = await take_one(store)
        step = Step(name="upload", number=0, kind=Kind.STEP, progress=Progress.DONE, result="1")
        assert await store.steps.write(claim, step)
        await end(store, claim, Retry(after=60, error="oops"))
        assert await store.jobs.move(job_id, delay=5.0) is State.QUEUED
        record = await the(store, job_id)
        found = (record.unique, record.args, record.ordered, record.tenant, record.attempt)
        assert found == ("post:7", '{"post":7}', "o", "t", 1)
        assert [error.error for error in record.errors] == ["oops"]
        assert [each.name for each in await store.steps.load(job_id, record.generation)] == ["upload"]
        await self.advance(store, 6)
        await store.holds.promote()
        assert (await take_one(store)).attempt == 2

    async def test_a_running_job_is_left_alone_and_the_answer_says_so(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        before = await the(store, job_id)
        assert await store.jobs.move(job_id, delay=5.0, priority=9) is State.RUNNING
        assert await within(store, job_id, delay=5.0) is State.RUNNING
        assert await the(store, job_id) == before
        assert await end(store, claim)
        assert await store.jobs.move(job_id, delay=5.0) is State.SUCCEEDED

    async def test_what_is_over_dead_or_unknown_is_left_alone(self, store: Store) -> None:
        outcomes = ((Cancel("no"), State.CANCELLED), (Dead("no"), State.DEAD), (Unknown("?"), State.UNKNOWN))
        for outcome, state in outcomes:
            job_id = await put(store)
            await end(store, await take_one(store), outcome)
            before = await the(store, job_id)
            assert await store.jobs.move(job_id, delay=5.0, priority=9) is state
            assert await the(store, job_id) == before

    async def test_one_in_line_keeps_its_place_and_waits_for_its_time_afterwards(self, store: Store) -> None:
        first, second = [await put(store, ordered="o") for _ in range(2)]
        await store.holds.promote()
        assert await store.jobs.move(second, delay=5.0) is State.QUEUED
        assert await state_of(store, second) == held(Held.ORDERING)
        await end(store, await take_one(store))
        assert await state_of(store, second) == held(Held.TIME)
        await self.advance(store, 6)
        await store.holds.promote()
        assert await state_of(store, second) == READY
        assert first != second

    async def test_one_that_has_its_turn_keeps_it_while_it_waits(self, store: Store) -> None:
        first, second = [await put(store, ordered="o") for _ in range(2)]
        await store.holds.promote()
        await store.jobs.move(first, delay=5.0)
        assert await state_of(store, first) == held(Held.TIME)
        assert await state_of(store, second) == held(Held.ORDERING)

    async def test_a_ready_job_that_is_put_off_gives_back_its_slot(self, store: Store) -> None:
        first, second = [await put(store, concurrency="c", concurrency_limit=1) for _ in range(2)]
        await store.holds.promote()
        await store.jobs.move(first, delay=5.0)
        assert [await state_of(store, each) for each in (first, second)] == [held(Held.TIME), READY]
        await store.jobs.move(first, delay=0.0)
        await store.holds.promote()
        assert await state_of(store, first) == held(Held.CONCURRENCY)

    async def test_a_ready_job_that_is_put_off_gives_back_its_room_in_the_window(self, store: Store) -> None:
        made = await put_many(store, 3, tenant="t")
        await store.holds.promote(window=1)
        await store.jobs.move(made[0], delay=5.0)
        assert [await state_of(store, each) for each in made] == [held(Held.TIME), READY, held(Held.TENANT)]

    async def test_one_of_a_tenant_that_is_brought_forward_is_looked_at(self, store: Store) -> None:
        job_id = await put(store, tenant="t", delay=60)
        await store.holds.promote()
        await store.jobs.move(job_id, delay=0.0)
        assert await state_of(store, job_id) == held(Held.ARRIVED)
        await store.holds.promote()
        assert await state_of(store, job_id) == READY

    async def test_what_its_guard_holds_is_put_off_and_else_stays_held(self, store: Store) -> None:
        job_id = await put(store, guard="g")
        await store.holds.hold([await take_one(store)], Held.GUARD)
        await store.jobs.move(job_id, delay=0.0)
        assert await state_of(store, job_id) == held(Held.GUARD)
        await store.jobs.move(job_id, delay=5.0)
        assert await state_of(store, job_id) == held(Held.TIME)
        assert await store.holds.gated() == []

    async def test_what_the_guard_of_a_step_holds_still_waits_for_that_guard(self, store: Store) -> None:
        """Without its key nobody would ever let it go."""
        job_id = await put(store)
        assert await end(
            store, await take_one(store), Snooze(reason="no call for user:7", guard="site/user:7")
        )
        await store.jobs.move(job_id, delay=0.0)
        [record] = await store.holds.explained([await the(store, job_id)])
        assert record.held_by is not None
        assert (record.held_by.reason, record.held_by.name) == ("guard", "site/user:7")
        assert record.reason == "no call for user:7"
        assert await store.holds.gates() == ["site/user:7"]
        assert await store.holds.open_gates({"site/user:7": 1}) == {"site/user:7": 1}
        assert await state_of(store, job_id) == READY

    async def test_it_still_expires_at_its_time(self, store: Store) -> None:
        job_id = await put(store, delay=5, expires=20)
        await store.jobs.move(job_id, delay=100.0)
        await self.advance(store, 21)
        await store.holds.expire()
        assert (await the(store, job_id)).state is State.CANCELLED

    async def test_it_is_moved_if_and_only_if_its_transaction_commits(self, store: Store) -> None:
        job_id = await put(store, delay=60)
        before = await the(store, job_id)
        with raises(Rollback):
            await within(store, job_id, delay=0.0, priority=3, commits=False)
        assert await the(store, job_id) == before
        assert await within(store, job_id, delay=0.0, priority=3) is State.QUEUED
        assert [claim.job_id for claim in await take(store, 5)] == [job_id]

    async def test_what_asks_for_nothing_or_for_two_times_is_refused(self, store: Store) -> None:
        job_id = await put(store)
        with raises(UsageError, "at, delay or priority"):
            await store.jobs.move(job_id)
        with raises(UsageError, "not both"):
            await store.jobs.move(job_id, at=1.0, delay=2.0)
        with raises(UsageError, "priority", "101"):
            await store.jobs.move(job_id, priority=101)
        with raises(UsageError, "delay", "-1"):
            await store.jobs.move(job_id, delay=-1.0)
