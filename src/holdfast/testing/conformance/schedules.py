"""Ticks: one job for each schedule and nominal time."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.kernel.errors import TooManyWaiting
from holdfast.store.ports import Store
from holdfast.store.records import Enqueued, Tick
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import ids, job, put, raises, take, total
from holdfast.testing.conformance.lost_answers import lost, once

NOMINAL = 1_900_000_000.0


class SchedulesConformance(Conformance):
    async def test_a_tick_enqueues_its_job_once(self, store: Store) -> None:
        new = job()
        assert await store.schedules.tick("nightly", NOMINAL, new) == Enqueued(new.id, created=True)
        assert await store.schedules.tick("nightly", NOMINAL, job()) is None
        assert await store.schedules.tick("nightly", NOMINAL, new) is None
        assert ids(await take(store, 10)) == [new.id]

    async def test_other_times_and_schedules_are_other_ticks(self, store: Store) -> None:
        for schedule, nominal in (("nightly", NOMINAL), ("nightly", NOMINAL + 0.5), ("hourly", NOMINAL)):
            assert await store.schedules.tick(schedule, nominal, job()) is not None
        assert await total(store) == 3

    async def test_a_time_that_was_passed_over_stays_so(self, store: Store) -> None:
        assert await store.schedules.last("nightly") is None
        newer = job()
        await store.schedules.tick("nightly", NOMINAL + 60, newer)
        await self.advance(store, 5)
        assert await store.schedules.tick("nightly", NOMINAL, job()) is None
        await store.schedules.tick("hourly", NOMINAL + 900, job())
        at = await store.now() - 5
        assert await store.schedules.last("nightly") == Tick("nightly", NOMINAL + 60, newer.id, at)
        assert await total(store) == 2

    async def test_a_tick_answered_by_a_unique_key_is_a_tick(self, store: Store) -> None:
        running = await put(store, unique="nightly")
        answer = await store.schedules.tick("nightly", NOMINAL, job(unique="nightly"))
        assert answer == Enqueued(running, created=False)
        assert await store.schedules.tick("nightly", NOMINAL, job(unique="nightly")) is None
        last = await store.schedules.last("nightly")
        assert last is not None
        assert last.job_id == running

    async def test_a_refused_job_leaves_no_tick(self, store: Store) -> None:
        await put(store, max_waiting=1)
        with raises(TooManyWaiting):
            await store.schedules.tick("nightly", NOMINAL, job(max_waiting=1))
        assert await store.schedules.last("nightly") is None
        assert await store.schedules.tick("nightly", NOMINAL, job()) is not None

    async def test_a_reset_schedule_ticks_earlier_times_again(self, store: Store) -> None:
        far = job()
        await store.schedules.tick("nightly", NOMINAL + 1e9, far)
        await store.schedules.tick("hourly", NOMINAL, job())
        at = await store.now()
        assert await store.schedules.tick("nightly", NOMINAL, job()) is None
        assert await store.schedules.reset("nightly", actor="ada")
        assert await store.schedules.last("nightly") is None
        assert await store.schedules.last("hourly") is not None
        assert await store.schedules.tick("nightly", NOMINAL, job()) is not None
        assert await total(store) == 3, "the jobs of the far future stay"
        (row,) = await store.audit.find(subject="schedule:nightly")
        assert (row.actor, row.action, row.after) == ("ada", "schedule.reset", None)
        assert row.before is not None
        assert msgspec.json.decode(row.before) == {"nominal": NOMINAL + 1e9, "job_id": far.id, "at": at}

    async def test_a_schedule_begins_once_and_stays_where_it_began(self, store: Store) -> None:
        began = await store.now()
        assert await store.schedules.begin("nightly") == began
        await self.advance(store, 60)
        assert await store.schedules.begin("hourly") == began + 60
        assert await store.schedules.begin("nightly") == began
        assert await (await self.second(store)).schedules.begin("nightly") == began
        assert await store.schedules.last("nightly") is None, "a beginning is no tick"
        assert await total(store) == 0

    async def test_a_beginning_refuses_no_tick(self, store: Store) -> None:
        began = await store.schedules.begin("nightly")
        for nominal in (began - 60, began, began + 60):
            new = job()
            assert await store.schedules.tick("nightly", nominal, new) == Enqueued(new.id, created=True)
            assert await store.schedules.tick("nightly", nominal, job()) is None
            assert await store.schedules.begin("nightly") == nominal, "where it was left"
            last = await store.schedules.last("nightly")
            assert last is not None
            assert last.job_id == new.id
        assert await total(store) == 3

    async def test_many_that_begin_at_once_begin_together(self, store: Store) -> None:
        clients = [store, await self.second(store), await self.second(store)]
        asked = [clients[n % 3].schedules.begin("nightly") for n in range(12)]
        assert len(set(await asyncio.gather(*asked))) == 1

    async def test_a_beginning_whose_answer_was_lost_is_kept(self, store: Store) -> None:
        with once("store.after_commit", lost()):
            began = await store.schedules.begin("nightly")
        await self.advance(store, 60)
        assert await store.schedules.begin("nightly") == began

    async def test_a_refused_job_leaves_the_beginning(self, store: Store) -> None:
        began = await store.schedules.begin("nightly")
        await put(store, max_waiting=1)
        with raises(TooManyWaiting):
            await store.schedules.tick("nightly", NOMINAL, job(max_waiting=1))
        assert await store.schedules.begin("nightly") == began

    async def test_a_beginning_is_reset(self, store: Store) -> None:
        """A wrong clock may have put it far in the future."""
        began = await store.schedules.begin("nightly")
        assert await store.schedules.reset("nightly", actor="ada")
        assert not await store.schedules.reset("nightly", actor="ada")
        (row,) = await store.audit.find(subject="schedule:nightly")
        assert row.before is not None
        assert msgspec.json.decode(row.before)["nominal"] == began
        await self.advance(store, 60)
        assert await store.schedules.begin("nightly") == began + 60

    async def test_there_is_nothing_to_reset_before_the_first_tick(self, store: Store) -> None:
        assert not await store.schedules.reset("nightly", actor="ada")
        assert await store.audit.find() == []

    async def test_a_schedule_of_any_name_is_reset(self, store: Store) -> None:
        name = "s" * 500
        await store.schedules.tick(name, NOMINAL, job())
        assert await store.schedules.reset(name, actor="ada")
        assert [row.subject for row in await store.audit.find()] == [f"schedule:{name}"]
