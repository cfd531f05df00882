"""Get, find and count, in every state; with enqueue and cancel, all promises of `store.jobs`."""

from __future__ import annotations

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Count, NewJob
from holdfast.store.states import Held, State
from holdfast.testing.conformance.cancels import CancelConformance
from holdfast.testing.conformance.enqueue import EnqueueConformance, MaxWaitingConformance, UniqueConformance
from holdfast.testing.conformance.kit import end, ids, job, put, put_many, raises, take, take_one, the, total
from holdfast.testing.conformance.moves import MoveConformance


class JobsConformance(
    EnqueueConformance, UniqueConformance, MaxWaitingConformance, CancelConformance, MoveConformance
):
    async def test_jobs_are_found_by_the_beginning_of_their_id(self, store: Store) -> None:
        some = [f"01a1de3c-4a80-7c45-bf6d-00000000000{last}" for last in "123"]
        other = "01a1de3d-0000-7c45-bf6d-000000000001"
        for each in (*some, other):
            await put(store, id=each)
        await end(store, await take_one(store))  # what is over is found, too
        assert await store.jobs.starting("01a1de3c") == some
        assert await store.jobs.starting("01a1de3c-4", limit=2) == some[:2]
        assert await store.jobs.starting(some[1]) == [some[1]]
        assert await store.jobs.starting("01a1de3d") == [other]
        assert await store.jobs.starting("01a1de3e") == []
        for wrong in ("01a1de3", "01A1DE3C", "01a1de3c4", "%%%%%%%%", f"{other}0"):
            with raises(UsageError, "beginning of a job's id"):
                await store.jobs.starting(wrong)

    async def test_an_id_that_nobody_has_seen_is_none(self, store: Store) -> None:
        assert await store.jobs.get(new_id()) is None

    async def test_get_finds_a_job_in_every_state(self, store: Store) -> None:
        for state, job_id in (await one_of_each(store)).items():
            record = await the(store, job_id)
            assert (record.id, record.state) == (job_id, state)

    async def test_find_finds_a_job_in_every_state(self, store: Store) -> None:
        every = await one_of_each(store)
        for state, job_id in every.items():
            found = await store.jobs.find(state=state)
            assert [record.id for record in found] == [job_id], state
            assert found == [await the(store, job_id)]
        assert {record.id for record in await store.jobs.find()} == set(every.values())

    async def test_find_selects_by_queue_task_and_reason(self, store: Store) -> None:
        mail = await put(store, queue="mail")
        other = await put(store, task="other")
        later = await put(store, delay=60)
        done = await put(store, queue="done")
        await end(store, await take_one(store, "done"))
        assert [record.id for record in await store.jobs.find(queue="mail")] == [mail]
        assert [record.id for record in await store.jobs.find(queue="done")] == [done]
        assert [record.id for record in await store.jobs.find(task="other")] == [other]
        assert [record.id for record in await store.jobs.find(held=Held.TIME)] == [later]
        assert await store.jobs.find(queue="mail", task="other") == []
        assert await store.jobs.find(queue="nobody") == []

    async def test_find_gives_the_newest_first_and_no_more_than_asked(self, store: Store) -> None:
        made = []
        for _ in range(4):
            made.append(await put(store))
            await self.advance(store, 1)
        found = [record.id for record in await store.jobs.find(limit=3)]
        assert found == made[:0:-1]

    async def test_find_selects_by_tenant(self, store: Store) -> None:
        done = await put(store, tenant="acme")
        await store.holds.promote()
        await end(store, await take_one(store))
        await self.advance(store, 1)
        mine = await put(store, tenant="acme")
        await put(store, tenant="other")
        await put(store)
        assert [record.id for record in await store.jobs.find(tenant="acme")] == [mine, done]
        assert [record.id for record in await store.jobs.find(tenant="acme", held=Held.ARRIVED)] == [mine]
        assert await store.jobs.find(tenant="nobody") == []

    async def test_find_goes_on_before_a_job(self, store: Store) -> None:
        """Page after page, live jobs and those that are over, each once."""
        made = []
        for number in range(7):
            made.append(await put(store, queue="done" if number % 2 else "default"))
            if number % 2:
                await end(store, await take_one(store, "done"))
            await self.advance(store, 1)
        pages, before = list[list[str]](), None
        while found := await store.jobs.find(before=before, limit=3):
            pages.append([record.id for record in found])
            before = pages[-1][-1]
        assert pages == [made[6:3:-1], made[3:0:-1], made[:1]]
        assert [record.id for record in await store.jobs.find(before=made[4], queue="default")] == [
            made[2],
            made[0],
        ]

    async def test_find_goes_on_before_a_job_that_is_gone(self, store: Store) -> None:
        made = []
        for _ in range(3):
            made.append(await put(store))
            await self.advance(store, 1)
        first, gone, last = made
        await store.jobs.cancel(gone, "why")
        await self.advance(store, 4 * 86_400)
        await store.history.prune(keep=86_400)
        assert await store.jobs.get(gone) is None
        assert [record.id for record in await store.jobs.find(before=gone)] == [first]
        assert {record.id for record in await store.jobs.find(before=new_id())} == {first, last}
        assert await store.jobs.find(before=first) == []
        assert await store.jobs.find(before="00000000-0000-7000-8000-000000000000") == []

    async def test_find_gives_the_newest_first_also_of_what_is_over(self, store: Store) -> None:
        made = []
        for _ in range(4):
            made.append(await put(store))
            await end(store, await take_one(store))
            await self.advance(store, 1)
        found = [record.id for record in await store.jobs.find(state=State.SUCCEEDED, limit=3)]
        assert found == made[:0:-1]
        assert len(await store.jobs.find(limit=2)) == 2

    async def test_count_counts_live_jobs_by_queue_state_and_reason(self, store: Store) -> None:
        assert await store.jobs.count() == []
        await one_of_each(store)
        await put_many(store, 2, delay=60)
        await put_many(store, 3, queue="mail")
        counts = {(each.queue, each.state, each.held): each.number for each in await store.jobs.count()}
        assert counts == {
            ("default", State.QUEUED, None): 1,
            ("default", State.QUEUED, Held.TIME): 2,
            ("default", State.RUNNING, None): 1,
            ("default", State.DEAD, None): 1,
            ("default", State.UNKNOWN, None): 1,
            ("mail", State.QUEUED, None): 3,
        }
        assert all(isinstance(each, Count) for each in await store.jobs.count())

    async def test_another_client_sees_what_was_acknowledged(self, store: Store) -> None:
        other = await self.second(store)
        job_id = await put(store)
        assert (await the(other, job_id)).state is State.QUEUED
        assert ids(await take(other)) == [job_id]
        assert (await the(store, job_id)).state is State.RUNNING

    async def test_a_thousand_jobs_are_enqueued_in_one_call(self, store: Store) -> None:
        jobs: list[NewJob] = [job(args=f"[{number}]") for number in range(1000)]
        await store.jobs.enqueue(jobs)
        assert await total(store) == 1000
        claims = await take(store, 1000)
        assert [(claim.job_id, claim.args) for claim in claims] == [(each.id, each.args) for each in jobs]


async def one_of_each(store: Store) -> dict[State, str]:
    """A job in every state there is, by state."""
    made: dict[State, str] = {}
    for state, outcome in (
        (State.SUCCEEDED, Done('"fine"')),
        (State.DEAD, Dead("broken")),
        (State.UNKNOWN, Unknown("who knows")),
    ):
        made[state] = await put(store)
        await end(store, await take_one(store), outcome)
    made[State.CANCELLED] = await put(store)
    await store.jobs.cancel(made[State.CANCELLED], "not needed")
    made[State.RUNNING] = await put(store)
    await take_one(store)
    made[State.QUEUED] = await put(store)
    return made
