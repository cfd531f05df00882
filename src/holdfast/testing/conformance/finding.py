"""Jobs found by their keys, in any state, and numbers of jobs that are too many to be counted for each who asks."""

from __future__ import annotations

from holdfast.kernel.errors import UsageError
from holdfast.kernel.outcomes import Dead, Done, Unknown
from holdfast.store.counting import CROWD
from holdfast.store.ports import Store
from holdfast.store.records import Count, Finish, JobRecord
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, end, job, put, put_many, raises, take_one


def found(records: list[JobRecord]) -> list[str]:
    return [record.id for record in records]


class FindingConformance(Conformance):
    async def one_in_each_state(self, store: Store, **options: object) -> dict[State, str]:
        """In the order of their ids, with these options."""
        made: dict[State, str] = {}
        for state, outcome in (
            (State.SUCCEEDED, Done()),
            (State.DEAD, Dead("d")),
            (State.UNKNOWN, Unknown("u")),
        ):
            made[state] = await self.later(store, **options)
            await store.holds.promote()
            assert await end(store, await take_one(store), outcome)
        made[State.CANCELLED] = await self.later(store, **options)
        await store.jobs.cancel(made[State.CANCELLED], "no")
        made[State.RUNNING] = await self.later(store, **options)
        await store.holds.promote()
        await take_one(store)
        made[State.QUEUED] = await self.later(store, **options)
        return made

    async def later(self, store: Store, **options: object) -> str:
        """A job whose id comes after those before it."""
        await self.advance(store, 1)
        return await put(store, **options)

    async def test_jobs_of_a_tenant_in_any_state(self, store: Store) -> None:
        await put(store, tenant="other")
        await store.jobs.cancel((await store.jobs.find())[0].id, "no")
        made = await self.one_in_each_state(store, tenant="a")
        newest = list(made.values())[::-1]
        assert found(await store.jobs.of_tenant("a")) == newest
        for state, job_id in made.items():
            assert found(await store.jobs.of_tenant("a", states=[state])) == [job_id]
        some = [State.SUCCEEDED, State.RUNNING, State.DEAD]
        assert found(await store.jobs.of_tenant("a", states=some)) == [
            job_id for job_id in newest if job_id in {made[s] for s in some}
        ]
        assert found(await store.jobs.of_tenant("nobody")) == []

    async def test_jobs_of_a_tenant_page_by_page(self, store: Store) -> None:
        made = await self.one_in_each_state(store, tenant="a")
        newest = list(made.values())[::-1]
        pages: list[str] = []
        while page := await store.jobs.of_tenant("a", limit=2, before=pages[-1] if pages else None):
            pages += found(page)
        assert pages == newest
        ended = [State.DEAD, State.UNKNOWN]
        (last,) = await store.jobs.of_tenant("a", states=ended, before=made[State.UNKNOWN])
        assert last.id == made[State.DEAD]

    async def test_jobs_that_have_or_had_a_unique_key(self, store: Store) -> None:
        first = await self.later(store, unique="u")
        await end(store, await take_one(store))
        second = await self.later(store, unique="u")
        await end(store, await take_one(store), Dead("d"))
        third, other = await self.later(store, unique="u"), await self.later(store, unique="v")
        assert found(await store.jobs.of_unique(["u"], each=10)) == [third, second, first]
        assert found(await store.jobs.of_unique(["u"], each=2)) == [third, second]
        assert sorted(found(await store.jobs.of_unique(["v", "u", "w", "u"]))) == sorted([third, other])
        assert await store.jobs.of_unique(["w"]) == []
        (held,) = await store.jobs.of_unique(["v"])
        assert (held.unique, held.state) == ("v", State.QUEUED)

    async def test_finds_see_what_their_transaction_has_written(self, store: Store) -> None:
        async def look() -> None:
            async with store.transaction() as tx:
                new = job(unique="u", tenant="a", correlation_id="c")
                await store.jobs.enqueue([new], tx=tx)
                assert found(await store.jobs.of_unique(["u"], tx=tx)) == [new.id]
                assert found(await store.jobs.of_tenant("a", tx=tx)) == [new.id]
                assert found(await store.jobs.find(correlation_id="c", tx=tx)) == [new.id]
                raise Rollback

        with raises(Rollback):
            await look()
        assert await store.jobs.of_unique(["u"]) == await store.jobs.of_tenant("a") == []

    async def test_dead_and_unknown_jobs_go_by_age_and_by_what_else_is_asked(self, store: Store) -> None:
        made = []
        for queue in ("mail", "default", "mail"):
            made.append(await self.later(store, queue=queue))
            await end(store, await take_one(store, queue), Dead("d"))
        await self.later(store)
        assert found(await store.jobs.find(state=State.DEAD)) == made[::-1]
        assert found(await store.jobs.find(state=State.DEAD, queue="mail")) == [made[2], made[0]]
        assert found(await store.jobs.find(state=State.DEAD, before=made[2], limit=1)) == [made[1]]
        assert found(await store.jobs.find(state=State.DEAD, tenant="a")) == []
        assert await store.jobs.find(state=State.UNKNOWN) == []

    async def test_what_cannot_be_a_key_or_a_state_is_refused(self, store: Store) -> None:
        with raises(UsageError):
            await store.jobs.of_unique("u")
        with raises(UsageError):
            await store.jobs.of_tenant("")
        with raises(UsageError):
            await store.jobs.of_tenant("a", states=["asleep"])  # type: ignore[list-item]
        with raises(UsageError):
            await store.jobs.of_tenant("a", before="nothing")


class CountingConformance(Conformance):
    async def test_without_a_tally_all_are_counted(self, store: Store) -> None:
        await put_many(store, CROWD + 5)
        await put_many(store, 3, queue="mail", delay=60)
        assert await store.jobs.count() == [
            Count("default", State.QUEUED, None, CROWD + 5),
            Count("mail", State.QUEUED, Held.TIME, 3),
        ]

    async def test_a_tally_tells_of_a_crowd_and_when(self, store: Store) -> None:
        await put_many(store, CROWD, queue="a")
        await put_many(store, CROWD, queue="b")
        await put_many(store, 3, delay=60)
        assert await store.jobs.tally() == 1
        then = await store.now()
        await put_many(store, 7, queue="b")
        await put(store, queue="c")
        late = Count("default", State.QUEUED, Held.TIME, 3)
        assert [(each.queue, each.number, each.at) for each in await store.jobs.count() if each != late][
            :2
        ] == [
            ("a", CROWD, then),
            ("b", CROWD, then),
        ]
        assert late in await store.jobs.count()
        assert await store.jobs.tally() == 0, "it is not time yet"
        await self.advance(store, 1000)
        assert await store.jobs.tally() == 2 - 1
        numbers = {each.queue: each.number for each in await store.jobs.count() if each.held is None}
        assert numbers == {"a": CROWD, "b": CROWD + 7, "c": 1}

    async def test_when_a_crowd_has_gone_all_are_counted_again(self, store: Store) -> None:
        await put_many(store, CROWD)
        assert await store.jobs.tally() == 1
        claims = await store.claims.claim({"default": 10}, lease=30, worker="w")
        await store.claims.finish([Finish(claim, Done()) for claim in claims])
        assert await store.jobs.count() == [Count("default", State.QUEUED, None, CROWD - 10)]
        await self.advance(store, 1000)
        assert await store.jobs.tally() == 0
        await put_many(store, 10)
        assert await store.jobs.count() == [Count("default", State.QUEUED, None, CROWD)]

    async def test_nothing_is_tallied_of_few(self, store: Store) -> None:
        await put_many(store, 5)
        assert await store.jobs.tally() == 0
        assert await store.jobs.count() == [Count("default", State.QUEUED, None, 5)]
