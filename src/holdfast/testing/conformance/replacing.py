"""A taken unique key: what stands there is told, and a queued job gets new time and arguments when that is asked for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Retry, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Enqueued, NewJob, Standing
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, end, put, raises, take, take_one, the

DONE = Step(name="upload", number=0, kind=Kind.STEP, progress=Progress.DONE)


def job(**options: Any) -> NewJob:
    return NewJob(id=new_id(), task=options.pop("task", "t"), unique="u", **options)


async def again(store: Store, *, tx: object | None = None, **options: Any) -> Enqueued:
    [answer] = await store.jobs.enqueue([job(**options)], tx=tx)
    return answer


class ReplacingConformance(Conformance):
    async def test_a_taken_key_says_what_stands(self, store: Store) -> None:
        now = await store.now()
        first = await again(store, at=now + 60)
        assert (first.created, first.standing) == (True, None)
        second = await again(store, at=now + 90, args='{"n":2}')
        assert (second.id, second.created) == (first.id, False)
        assert second.standing == Standing(first.id, State.QUEUED, now + 60)
        record = await the(store, first.id)
        assert (record.run_at, record.args) == (now + 60, "{}")

    async def test_a_queued_one_gets_the_time_and_the_arguments(self, store: Store) -> None:
        now = await store.now()
        first = await again(store, at=now + 60, expires=100)
        for when in (now + 90, now + 30):
            args = f'{{"n":{when:.0f}}}'
            answer = await again(store, at=when, args=args, replace=True, priority=7)
            assert (answer.id, answer.created) == (first.id, False)
            assert answer.standing == Standing(first.id, State.QUEUED, when, True)
            record = await the(store, first.id)
            assert (record.run_at, record.args, record.priority) == (when, args, 7)
            assert record.expires_at is None
            assert (await store.jobs.find(limit=10))[1:] == []

    async def test_without_a_time_it_is_due_at_once(self, store: Store) -> None:
        first = await again(store, delay=60)
        answer = await again(store, args='{"n":2}', replace=True)
        assert answer.standing is not None
        assert answer.standing.replaced
        claim = await take_one(store)
        assert (claim.job_id, claim.args) == (first.id, '{"n":2}')

    async def test_one_that_is_ready_waits_for_its_new_time(self, store: Store) -> None:
        await again(store)
        answer = await again(store, delay=60, replace=True)
        assert answer.standing is not None
        assert answer.standing.replaced
        assert await take(store, 1) == []
        assert (await the(store, answer.id)).held is Held.TIME

    async def test_one_that_runs_or_is_unknown_is_left_alone(self, store: Store) -> None:
        first = await again(store)
        claim = await take_one(store)
        for state in (State.RUNNING, State.UNKNOWN):
            answer = await again(store, delay=60, args='{"n":2}', replace=True)
            assert not answer.created
            assert answer.standing is not None
            assert (answer.standing.id, answer.standing.state) == (first.id, state)
            assert not answer.standing.replaced
            record = await the(store, first.id)
            assert (record.state, record.args) == (state, "{}")
            if state is State.RUNNING:
                await end(store, claim, Unknown("who knows"))

    async def test_a_free_key_stores_a_job(self, store: Store) -> None:
        first = await again(store, replace=True)
        assert first.created
        await end(store, await take_one(store), Done())
        second = await again(store, replace=True)
        assert second.created
        assert second.id != first.id

    async def test_one_with_recorded_steps_keeps_its_arguments(self, store: Store) -> None:
        first = await again(store)
        claim = await take_one(store)
        assert await store.steps.write(claim, DONE)
        await end(store, claim, Retry(after=60, error="no"))
        other = await again(store, args='{"n":2}', delay=5, replace=True)
        assert other.standing is not None
        assert (other.standing.state, other.standing.replaced) == (State.QUEUED, False)
        same = await again(store, delay=5, replace=True)
        assert same.standing is not None
        assert same.standing.replaced
        record = await the(store, first.id)
        assert (record.args, record.attempt) == ("{}", 1)
        assert record.run_at == await store.now() + 5

    async def test_other_keys_are_refused_and_nothing_is_stored(self, store: Store) -> None:
        first = await again(store, delay=60, tenant="a")
        others: list[dict[str, Any]] = [
            {"tenant": "b"},
            {"tenant": "a", "queue": "other"},
            {"tenant": "a", "task": "other"},
            {"tenant": "a", "ordered": "o"},
        ]
        for options in others:
            with raises(UsageError, "replace=True: job"):
                await again(store, replace=True, args='{"n":2}', **options)
        assert (await the(store, first.id)).args == "{}"
        with raises(UsageError, "give unique"):
            NewJob(id=new_id(), task="t", replace=True)

    async def test_what_shares_slots_and_order_goes_on_as_it_should(self, store: Store) -> None:
        keys: dict[str, Any] = {"ordered": "o", "concurrency": "c", "concurrency_limit": 1}
        first = await again(store, **keys)
        behind = await put(store, **keys)
        await store.holds.promote()
        answer = await again(store, args='{"n":2}', replace=True, **keys)
        assert answer.standing is not None
        assert answer.standing.replaced
        await store.holds.promote()
        claim = await take_one(store)
        assert (claim.job_id, claim.args) == (first.id, '{"n":2}')
        await end(store, claim, Done())
        await store.holds.promote()
        assert (await take_one(store)).job_id == behind

    async def test_it_commits_with_the_callers_transaction_or_not_at_all(self, store: Store) -> None:
        first = await again(store, delay=60)
        with suppress(Rollback):
            async with store.transaction() as tx:
                answer = await again(store, args='{"n":2}', delay=5, replace=True, tx=tx)
                assert answer.standing is not None
                assert answer.standing.replaced
                raise Rollback
        assert (await the(store, first.id)).args == "{}"
        async with store.transaction() as tx:
            await again(store, args='{"n":2}', delay=5, replace=True, tx=tx)
        record = await the(store, first.id)
        assert (record.args, record.run_at) == ('{"n":2}', await store.now() + 5)

    async def test_a_worker_and_who_replaces_never_both_have_it(self, store: Store) -> None:
        """What runs, runs with the arguments that the answer tells of."""
        for number in range(15):
            first = await again(store)
            replacing = asyncio.gather(
                *(again(store, args=f'{{"n":{number}}}', replace=True) for _ in range(3))
            )
            claims, answers = await asyncio.gather(take(store, 1), replacing)
            replaced = [each.standing is not None and each.standing.replaced for each in answers]
            if not claims:  # it was locked just then
                claims = await take(store, 1)
            [claim] = claims
            assert claim.job_id == first.id
            assert (claim.args == "{}") == (not any(replaced))
            await end(store, claim, Done())

    async def test_many_at_once_leave_one_job(self, store: Store) -> None:
        answers = await asyncio.gather(
            *(again(store, delay=60, args=f'{{"n":{number}}}', replace=True) for number in range(8))
        )
        assert len({each.id for each in answers}) == 1
        assert sorted(each.created for each in answers) == [False] * 7 + [True]
        assert all(each.created or (each.standing and each.standing.replaced) for each in answers)

    async def test_of_many_in_one_call_each_replaces_its_own(self, store: Store) -> None:
        def one(key: str, n: int) -> NewJob:
            return NewJob(id=new_id(), task="t", unique=key, args=f'{{"n":{n}}}', delay=60, replace=True)

        first = await store.jobs.enqueue([one("a", 1), one("b", 1)])
        second = await store.jobs.enqueue([one("b", 2), one("c", 2), one("a", 2), one("c", 3)])
        assert [each.created for each in second] == [False, True, False, False]
        assert [second[0].id, second[2].id] == [first[1].id, first[0].id]
        assert second[3].id == second[1].id
        found = {each.unique: each.args for each in await store.jobs.find(limit=10)}
        assert found == dict.fromkeys("abc", '{"n":2}')
