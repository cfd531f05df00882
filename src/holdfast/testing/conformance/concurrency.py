"""Concurrency keys: no more at a time than there are slots, and a free slot is used at once."""

from __future__ import annotations

from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.states import Held
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import READY, end, held, ids, put, put_many, state_of, take, take_one

ONE = {"concurrency": "c", "concurrency_limit": 1}
TWO = {"concurrency": "c", "concurrency_limit": 2}


class ConcurrencyConformance(Conformance):
    async def test_no_more_are_ready_or_running_than_there_are_slots(self, store: Store) -> None:
        made = await put_many(store, 4, **TWO)
        await store.holds.promote()
        assert [await state_of(store, job_id) for job_id in made] == [READY] * 2 + [
            held(Held.CONCURRENCY)
        ] * 2
        claims = await take(store, 10)
        assert ids(claims) == made[:2]
        await store.holds.promote()
        await store.holds.repair()
        assert await take(store, 10) == []
        await end(store, claims[1])
        assert ids(await take(store, 10)) == [made[2]]

    async def test_other_keys_are_not_held_up(self, store: Store) -> None:
        await put_many(store, 2, **ONE)
        other = await put(store, concurrency="d", concurrency_limit=1)
        await store.holds.promote()
        assert other in ids(await take(store, 10))

    async def test_every_outcome_gives_back_the_slot(self, store: Store) -> None:
        outcomes: list[Outcome] = [
            Done(),
            Retry(after=60),
            Snooze(after=60),
            Cancel("gone"),
            Dead("broken"),
            Unknown("who knows"),
        ]
        made = await put_many(store, len(outcomes) + 1, **ONE)
        await store.holds.promote()
        for place, outcome in enumerate(outcomes):
            claim = await take_one(store)
            assert claim.job_id == made[place]
            await end(store, claim, outcome)
            assert await state_of(store, made[place + 1]) == READY, outcome

    async def test_release_hold_and_rescue_give_back_the_slot(self, store: Store) -> None:
        made = await put_many(store, 4, **ONE)
        await store.holds.promote()
        await store.claims.release([await take_one(store)])
        assert await state_of(store, made[1]) == READY
        await store.holds.hold([await take_one(store)], Held.GUARD)
        assert await state_of(store, made[2]) == READY
        await take_one(store)
        await store.claims.rescue_worker("w1")
        assert await state_of(store, made[3]) == READY
        assert await state_of(store, made[0]) == held(Held.ARRIVED)
        assert await state_of(store, made[2]) == held(Held.ARRIVED)

    async def test_a_retry_waits_for_a_slot_again(self, store: Store) -> None:
        first, second = await put_many(store, 2, **ONE)
        await store.holds.promote()
        await end(store, await take_one(store), Retry())
        assert await state_of(store, first) == held(Held.ARRIVED)
        await store.holds.promote()
        assert await state_of(store, first) == held(Held.CONCURRENCY)
        assert ids(await take(store, 10)) == [second]

    async def test_a_free_slot_goes_to_the_highest_priority_then_the_oldest(self, store: Store) -> None:
        await put(store, **ONE)
        await store.holds.promote()
        old, young = await put_many(store, 2, **ONE)
        high = await put(store, priority=5, **ONE)
        await store.holds.promote()
        for job_id in (high, old, young):
            await end(store, await take_one(store))
            assert await state_of(store, job_id) == READY

    async def test_several_slots_freed_at_once_are_all_used(self, store: Store) -> None:
        made = await put_many(store, 5, concurrency="c", concurrency_limit=3)
        await store.holds.promote()
        for claim in await take(store, 3):
            await end(store, claim)
        assert ids(await take(store, 10)) == made[3:]

    async def test_a_job_takes_its_slot_when_its_time_has_come_and_not_before(self, store: Store) -> None:
        later = await put(store, delay=60, **ONE)
        now = await put(store, **ONE)
        await store.holds.promote()
        assert await state_of(store, later) == held(Held.TIME)
        assert await state_of(store, now) == READY
        await self.advance(store, 60)
        await store.holds.promote()
        assert await state_of(store, later) == held(Held.CONCURRENCY)
        await end(store, await take_one(store))
        assert await state_of(store, later) == READY

    async def test_an_expired_job_gives_back_its_slot(self, store: Store) -> None:
        await put(store, expires=10, **ONE)
        second = await put(store, **ONE)
        await store.holds.promote()
        await self.advance(store, 10)
        assert await store.holds.expire() == 1
        assert await state_of(store, second) == READY
