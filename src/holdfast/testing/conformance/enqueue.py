"""Enqueue: what is stored, what is answered, and when nothing is stored."""

from __future__ import annotations

import asyncio
from enum import Enum

from holdfast.kernel.errors import TooManyWaiting
from holdfast.kernel.outcomes import Dead, Done, Retry, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Enqueued
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    READY,
    end,
    held,
    ids,
    job,
    put,
    put_many,
    raises,
    state_of,
    take,
    take_one,
    the,
    total,
)

TWIN = "019d371b-7700-7aa8-9e35-d3c6b38cb0f8"


class Queue(str, Enum):  # noqa: UP042  its text is "Queue.MAIL", as that of many programs is
    """As programs name their queues."""

    MAIL = "mail"


class EnqueueConformance(Conformance):
    async def test_nothing_is_enqueued_and_nothing_happens(self, store: Store) -> None:
        await put_many(store, 3)
        done, running, _ = await take(store, 3)
        await end(store, done)
        assert await store.jobs.enqueue([]) == []
        async with store.transaction() as tx:
            assert await store.jobs.enqueue([], tx=tx) == []
        assert await total(store) == 2
        assert await take(store, 3) == []
        assert await end(store, running)

    async def test_of_one_id_in_a_call_the_first_is_stored(self, store: Store) -> None:
        first, other = job(args='"first"', unique="u", max_waiting=1), job(unique="u")
        again = job(id=first.id, args='"again"')
        answers = await store.jobs.enqueue([first, other, again, first])
        assert answers == [
            Enqueued(first.id, True),
            Enqueued(first.id, False),
            *[Enqueued(first.id, True)] * 2,
        ]
        assert ((await the(store, first.id)).args, (await the(store, first.id)).unique) == ('"first"', "u")
        assert await total(store) == 1

    async def test_of_one_id_of_two_callers_at_once_one_is_stored(self, store: Store) -> None:
        jobs = [job(), *[job(args=f'"{number}"', id=TWIN) for number in range(5)], job()]
        await asyncio.gather(*(store.jobs.enqueue([each]) for each in jobs))
        assert await total(store) == 3
        assert len(await take(store, 10)) == 3

    async def test_a_queue_that_is_a_member_of_an_enum_is_its_name(self, store: Store) -> None:
        job_id = await put(store, queue=Queue.MAIL)
        assert [record.id for record in await store.jobs.find(queue=Queue.MAIL)] == [job_id]
        [claim] = await store.claims.claim({Queue.MAIL: 1}, lease=30, worker="w")
        assert (claim.job_id, claim.queue, type(claim.queue)) == (job_id, "mail", str)

    async def test_a_plain_job_is_ready_at_once(self, store: Store) -> None:
        job_id = await put(store)
        assert await state_of(store, job_id) == READY

    async def test_a_job_is_read_back_as_it_was_given(self, store: Store) -> None:
        new = job(
            args='{"to": "Zoë 🦊", "n": 1.5}',
            queue="mail",
            priority=7,
            delay=60,
            expires=600,
            deadline=await store.now() + 900,
            unique="welcome:42",
            ordered="user:42",
            concurrency="smtp",
            concurrency_limit=3,
            tenant="acme",
            guard="mailer",
            correlation_id="story",
            causation_id="cause",
            trace="00-1-2-01",
            generation=2,
        )
        assert await store.jobs.enqueue([new]) == [Enqueued(new.id, created=True)]
        record, now = await the(store, new.id), await store.now()
        for field in [
            "id",
            "task",
            "args",
            "queue",
            "priority",
            "unique",
            "ordered",
            "concurrency",
            "tenant",
            "guard",
            "correlation_id",
            "causation_id",
            "trace",
            "generation",
            "deadline",
        ]:
            assert getattr(record, field) == getattr(new, field), field
        assert (record.run_at, record.expires_at, record.enqueued_at) == (now + 60, now + 600, now)
        assert (record.state, record.held) == (State.QUEUED, Held.ARRIVED)
        assert (record.attempt, record.interruptions, record.strikes, record.suspect) == (0, 0, 0, False)
        assert (record.lease_until, record.worker, record.started_at, record.finished_at) == (None,) * 4
        assert (record.reason, record.result, record.errors) == (None, None, ())

    async def test_a_deadline_in_seconds_is_counted_by_the_databases_clock(self, store: Store) -> None:
        now = await store.now()
        for given, expected in (
            ({"within": 30.0}, now + 30),
            ({"within": 30.0, "deadline": now + 20}, now + 20),
            ({"within": 10, "deadline": now + 20}, now + 10),
            ({"within": 0.0}, now),
        ):
            record = await the(store, await put(store, **given))
            assert (record.deadline, record.expires_at) == (expected, expected), given
        assert [claim.deadline for claim in await take(store, 10)] == [now + 30, now + 20, now + 10]

    async def test_what_has_not_begun_by_its_deadline_has_expired(self, store: Store) -> None:
        early = await put(store, ordered="o", within=5.0, expires=60.0)
        late = await put(store, within=60.0, expires=5.0)
        held_back = await put(store, ordered="o", within=5.0)
        await store.holds.promote()
        assert (await the(store, late)).expires_at == await store.now() + 5
        await self.advance(store, 6)
        assert await take(store, 10) == []
        assert await store.holds.expire() == 3
        assert {(await the(store, each)).state for each in (early, late, held_back)} == {State.CANCELLED}

    async def test_every_character_comes_back(self, store: Store) -> None:
        """Beyond 16 bits, composed and decomposed, right to left, a line separator, and what SQL may stumble over."""
        odd = "\U0001f98a \u00e9 e\u0301 \u202e ' % $1 ? {}"
        args = f'{{"text": "\\u0000 \u2028 \\" \\\\ {odd}"}}'
        record = await the(store, await put(store, args=args, unique=odd))
        assert (record.args, record.unique) == (args, odd)
        assert (await take_one(store)).args == args

    async def test_a_future_time_holds_a_job_for_time(self, store: Store) -> None:
        by_delay = await put(store, delay=5)
        by_moment = await put(store, at=await store.now() + 5)
        assert await state_of(store, by_delay) == await state_of(store, by_moment) == held(Held.TIME)
        assert (
            (await the(store, by_delay)).run_at
            == (await the(store, by_moment)).run_at
            == await store.now() + 5
        )

    async def test_a_time_that_has_come_does_not_hold_a_job(self, store: Store) -> None:
        for options in ({"delay": 0}, {"at": await store.now()}, {"at": await store.now() - 60}):
            assert await state_of(store, await put(store, **options)) == READY

    async def test_a_job_with_keys_arrives_held(self, store: Store) -> None:
        for options in (
            {"ordered": "a"},
            {"concurrency": "b", "concurrency_limit": 1},
            {"tenant": "c"},
            {"ordered": "a", "delay": 60},
        ):
            assert await state_of(store, await put(store, **options)) == held(Held.ARRIVED)

    async def test_a_unique_key_or_a_guard_alone_holds_nothing(self, store: Store) -> None:
        assert await state_of(store, await put(store, unique="u", guard="g")) == READY

    async def test_nothing_to_enqueue_is_no_error(self, store: Store) -> None:
        assert await store.jobs.enqueue([]) == []

    async def test_answers_come_in_the_order_of_the_call(self, store: Store) -> None:
        jobs = [job() for _ in range(50)]
        answers = await store.jobs.enqueue(jobs)
        assert answers == [Enqueued(each.id, created=True) for each in jobs]
        assert ids(await take(store, 50)) == [each.id for each in jobs]

    async def test_the_same_id_again_stores_nothing_and_answers_created(self, store: Store) -> None:
        new = job()
        for _ in range(3):
            assert await store.jobs.enqueue([new], again=True) == [Enqueued(new.id, created=True)]
        assert await store.jobs.enqueue([new]) == [Enqueued(new.id, created=True)]
        assert await store.jobs.enqueue([new, new]) == [Enqueued(new.id, created=True)] * 2
        assert await total(store) == 1

    async def test_the_same_id_twice_in_one_call_is_one_job(self, store: Store) -> None:
        new = job()
        assert await store.jobs.enqueue([new, new]) == [Enqueued(new.id, created=True)] * 2
        assert await total(store) == 1

    async def test_the_same_id_again_leaves_a_running_job_alone(self, store: Store) -> None:
        new = job()
        await store.jobs.enqueue([new])
        claim = await take_one(store)
        await store.jobs.enqueue([new], again=True)
        assert (await the(store, new.id)).state is State.RUNNING
        assert await end(store, claim)

    async def test_again_finds_a_job_that_is_already_over(self, store: Store) -> None:
        new = job()
        await store.jobs.enqueue([new])
        await end(store, await take_one(store), Done("1"))
        assert await store.jobs.enqueue([new], again=True) == [Enqueued(new.id, created=True)]
        assert await total(store) == 0
        record = await the(store, new.id)
        assert (record.state, record.result) == (State.SUCCEEDED, "1")

    async def test_again_stores_only_what_is_missing(self, store: Store) -> None:
        over, live, missing = job(), job(), job()
        await store.jobs.enqueue([over])
        await end(store, await take_one(store))
        await store.jobs.enqueue([live])
        answers = await store.jobs.enqueue([over, live, missing], again=True)
        assert answers == [Enqueued(each.id, created=True) for each in (over, live, missing)]
        assert {record.id for record in await store.jobs.find(state=State.QUEUED)} == {live.id, missing.id}

    async def test_again_answers_for_its_own_id_though_another_has_the_unique_key_now(
        self, store: Store
    ) -> None:
        first, other = job(unique="u"), job(unique="u")
        await store.jobs.enqueue([first])
        await end(store, await take_one(store))
        await store.jobs.enqueue([other])
        assert await store.jobs.enqueue([first], again=True) == [Enqueued(first.id, created=True)]


class UniqueConformance(Conformance):
    async def test_a_unique_key_is_taken_while_its_job_is_not_over(self, store: Store) -> None:
        first = await put(store, unique="u", delay=5)
        await self._key_is_taken(store, first)  # held
        await self.advance(store, 5)
        await store.holds.promote()
        await self._key_is_taken(store, first)  # ready
        claim = await take_one(store)
        await self._key_is_taken(store, first)  # running
        await end(store, claim, Unknown("who knows"))
        await self._key_is_taken(store, first)  # unknown

    async def _key_is_taken(self, store: Store, first: str) -> None:
        assert await store.jobs.enqueue([job(unique="u")]) == [Enqueued(first, created=False)]
        assert await total(store) == 1

    async def test_a_unique_key_is_free_when_its_job_succeeded(self, store: Store) -> None:
        await put(store, unique="u")
        await end(store, await take_one(store))
        assert (await store.jobs.enqueue([job(unique="u")]))[0].created

    async def test_a_unique_key_is_free_when_its_job_is_dead_or_cancelled(self, store: Store) -> None:
        await put(store, unique="u")
        await end(store, await take_one(store), Dead("broken"))
        second = await put(store, unique="u")
        await store.jobs.cancel(second, "not needed")
        third = await put(store, unique="u")
        assert await state_of(store, third) == READY

    async def test_two_jobs_with_one_unique_key_in_one_call_are_one(self, store: Store) -> None:
        first, second, other = job(unique="u"), job(unique="u"), job(unique="v")
        answers = await store.jobs.enqueue([first, second, other])
        assert answers == [Enqueued(first.id, True), Enqueued(first.id, False), Enqueued(other.id, True)]
        assert await total(store) == 2

    async def test_a_repeated_call_gets_the_same_answers(self, store: Store) -> None:
        jobs = [job(unique="u"), job(unique="u"), job()]
        first = await store.jobs.enqueue(jobs)
        assert await store.jobs.enqueue(jobs, again=True) == first
        assert await total(store) == 2

    async def test_a_repeated_call_stores_no_twin_when_the_first_is_over(self, store: Store) -> None:
        jobs = [job(unique="u"), job(unique="u")]
        first = await store.jobs.enqueue(jobs)
        await end(store, await take_one(store))
        assert await store.jobs.enqueue(jobs, again=True) == first
        assert await total(store) == 0

    async def test_the_same_id_again_answers_created_also_when_it_is_dead_and_its_key_is_taken(
        self, store: Store
    ) -> None:
        first = job(unique="u")
        await store.jobs.enqueue([first])
        await end(store, await take_one(store), Dead("broken"))
        await put(store, unique="u")
        assert await store.jobs.enqueue([first], again=True) == [Enqueued(first.id, created=True)]
        assert (await the(store, first.id)).state is State.DEAD


class MaxWaitingConformance(Conformance):
    async def test_max_waiting_refuses_one_too_many_and_stores_nothing(self, store: Store) -> None:
        await put_many(store, 2, max_waiting=3)
        with raises(TooManyWaiting, "mail.send", "3"):
            await put_many(store, 2, max_waiting=3)
        assert await total(store) == 2
        await put(store, max_waiting=3)
        assert await total(store) == 3

    async def test_max_waiting_refuses_the_whole_call(self, store: Store) -> None:
        plain, full = job(task="other"), [job(max_waiting=1), job(max_waiting=1)]
        with raises(TooManyWaiting):
            await store.jobs.enqueue([plain, *full])
        assert await total(store) == 0

    async def test_max_waiting_counts_ready_and_held_jobs_of_the_task_that_were_bounded(
        self, store: Store
    ) -> None:
        await put(store, max_waiting=2, delay=60)
        await put(store, task="other", max_waiting=2)
        await put(store)  # not bounded
        await put(store, max_waiting=2)
        with raises(TooManyWaiting):
            await put(store, max_waiting=2)

    async def test_max_waiting_does_not_count_what_runs_or_is_over(self, store: Store) -> None:
        await put_many(store, 2, max_waiting=2)
        first, _ = await take(store, 2)
        await end(store, first)
        await put_many(store, 2, max_waiting=2)
        assert await total(store) == 3

    async def test_max_waiting_counts_a_job_again_when_it_is_queued_again(self, store: Store) -> None:
        await put(store, max_waiting=1)
        await end(store, await take_one(store), Retry(after=5))
        with raises(TooManyWaiting):
            await put(store, max_waiting=1)

    async def test_max_waiting_does_not_count_a_repeat_or_a_taken_unique_key(self, store: Store) -> None:
        first = job(max_waiting=1, unique="u")
        await store.jobs.enqueue([first])
        assert await store.jobs.enqueue([first], again=True) == [Enqueued(first.id, created=True)]
        twin = job(max_waiting=1, unique="u")
        assert await store.jobs.enqueue([twin]) == [Enqueued(first.id, created=False)]

    async def test_max_waiting_does_not_count_a_repeat_that_is_already_over(self, store: Store) -> None:
        first = job(max_waiting=1)
        await store.jobs.enqueue([first])
        await end(store, await take_one(store))
        await put(store, max_waiting=1)
        assert await store.jobs.enqueue([first], again=True) == [Enqueued(first.id, created=True)]
        assert await total(store) == 1
