"""Dead jobs: replayed as if nothing had been tried, or discarded; always with an audit row."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.kernel.errors import TooManyWaiting, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done, Retry, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish, Replayed
from holdfast.store.states import Held, State
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
    take_suspect,
    the,
)


async def die(store: Store, **options: Any) -> str:
    """A job that has died in its first attempt."""
    job_id = await put(store, **options)
    await store.holds.promote()
    claim = await take_one(store, options.get("queue", "default"))
    assert claim.job_id == job_id
    assert await end(store, claim, Dead("broken"))
    return job_id


async def replay(store: Store, *job_ids: str, args: str | None = None) -> list[str]:
    """The outcomes."""
    answers = await store.dead.replay(job_ids, actor="ada", args=args)
    assert [answer.job_id for answer in answers] == list(job_ids)
    return [answer.outcome for answer in answers]


class ReplayConformance(Conformance):
    async def test_a_replay_is_part_of_the_callers_transaction(self, store: Store) -> None:
        job_id, twin = await die(store, unique="u"), await die(store, unique="u")
        with suppress(Rollback):
            async with store.transaction() as tx:
                assert await store.dead.replay([job_id], actor="ada", tx=tx) == [Replayed(job_id, "queued")]
                raise Rollback
        assert (await the(store, job_id)).state is State.DEAD
        assert await store.audit.find(subject=job_id) == []
        async with store.transaction() as tx:
            answers = await store.dead.replay([job_id, twin, new_id()], actor="ada", tx=tx)
        assert [answer.outcome for answer in answers] == ["queued", "unique_taken", "not_dead"]
        assert ids(await take(store, 5)) == [job_id]

    async def test_many_are_replayed_in_one_transaction(self, store: Store) -> None:
        made = await put_many(store, 600)
        await store.claims.finish([Finish(claim, Dead("broken")) for claim in await take(store, 600)])
        async with store.transaction() as tx:
            answers = await store.dead.replay(made, actor="ada", tx=tx)
        assert {answer.outcome for answer in answers} == {"queued"}
        assert len(await take(store, 1000)) == 600

    async def test_a_discard_is_part_of_the_callers_transaction(self, store: Store) -> None:
        job_id = await die(store)
        with suppress(Rollback):
            async with store.transaction() as tx:
                assert await store.dead.discard([job_id], actor="ada", reason="no use", tx=tx) == [True]
                raise Rollback
        assert (await the(store, job_id)).state is State.DEAD
        async with store.transaction() as tx:
            await store.dead.discard([job_id], actor="ada", reason="no use", tx=tx)
        assert (await the(store, job_id)).state is State.CANCELLED

    async def test_a_replayed_job_is_ready_again(self, store: Store) -> None:
        job_id = await die(store)
        assert await store.dead.replay([job_id], actor="ada") == [Replayed(job_id, "queued")]
        record = await the(store, job_id)
        assert (record.state, record.held, record.attempt, record.reason) == (State.QUEUED, None, 0, None)
        assert (record.worker, record.started_at) == (None, None)
        claim = await take_one(store)
        assert (claim.job_id, claim.attempt, claim.generation, claim.args) == (job_id, 1, 0, "{}")
        assert await end(store, claim)

    async def test_the_errors_of_a_replayed_job_are_kept(self, store: Store) -> None:
        job_id = await put(store)
        await end(store, await take_one(store), Retry(error="first"))
        await end(store, await take_one(store), Dead("second"))
        before = await the(store, job_id)
        await replay(store, job_id)
        record = await the(store, job_id)
        assert record.errors == before.errors
        assert [(each.attempt, each.error) for each in record.errors] == [(1, "first"), (2, "second")]
        assert record.enqueued_at == before.enqueued_at

    async def test_a_poisonous_job_is_no_suspect_any_more(self, store: Store) -> None:
        job_id = await put(store)
        await take_one(store)
        await store.claims.rescue_worker("w1")
        for _ in range(3):
            await take_suspect(store)
            await store.claims.rescue_worker("w1")
        assert (await the(store, job_id)).state is State.DEAD
        assert await replay(store, job_id) == ["queued"]
        record = await the(store, job_id)
        assert (record.interruptions, record.strikes, record.suspect) == (0, 0, False)
        claim = await take_one(store)
        assert (claim.job_id, claim.attempt, claim.interruptions) == (job_id, 1, 0)

    async def test_the_token_of_its_death_is_void_and_still_settled(self, store: Store) -> None:
        job_id = await put(store)
        old = await take_one(store)
        await end(store, old, Dead("broken"))
        await replay(store, job_id)
        assert await store.claims.settle(job_id, old.token)
        claim = await take_one(store)
        assert claim.token > old.token
        assert not await end(store, old)
        assert await end(store, claim)

    async def test_replayed_jobs_are_served_in_the_order_given_after_what_is_ready(
        self, store: Store
    ) -> None:
        dead = [await die(store) for _ in range(3)]
        ready = await put(store)
        await replay(store, dead[2], dead[0], dead[1])
        assert ids(await take(store, 10)) == [ready, dead[2], dead[0], dead[1]]

    async def test_edited_arguments_are_a_new_generation(self, store: Store) -> None:
        job_id = await die(store, args='{"to": "nobody"}')
        assert await replay(store, job_id, args='{"to": "zoë"}') == ["queued"]
        claim = await take_one(store)
        assert (claim.args, claim.generation) == ('{"to": "zoë"}', 1)
        await end(store, claim, Dead("again"))
        assert await replay(store, job_id) == ["queued"]
        record = await the(store, job_id)
        assert (record.args, record.generation) == ('{"to": "zoë"}', 1)

    async def test_arguments_are_edited_for_one_job_at_a_time(self, store: Store) -> None:
        dead = [await die(store) for _ in range(2)]
        for job_ids in (dead, [], [dead[0], dead[0]]):
            with raises(UsageError, "args", str(len(job_ids))):
                await store.dead.replay(job_ids, actor="ada", args="{}")
        assert {(await the(store, job_id)).state for job_id in dead} == {State.DEAD}
        assert await store.audit.find() == []

    async def test_what_is_not_dead_is_left_alone(self, store: Store) -> None:
        ready = await put(store, queue="ready")
        done = await put(store)
        await end(store, await take_one(store))
        unknown = await put(store)
        await end(store, await take_one(store), Unknown("who knows"))
        running = await put(store)
        await take_one(store)
        given = [ready, done, unknown, running, new_id()]
        before = [await store.jobs.get(job_id) for job_id in given]
        assert await replay(store, *given) == ["not_dead"] * 5
        assert await store.dead.discard(given, actor="ada", reason="why") == [False] * 5
        assert [await store.jobs.get(job_id) for job_id in given] == before
        assert await store.audit.find() == []

    async def test_a_job_given_twice_is_replayed_once(self, store: Store) -> None:
        job_id = await die(store)
        assert await replay(store, job_id, job_id) == ["queued", "not_dead"]
        assert len(await store.audit.find(subject=job_id)) == 1

    async def test_nothing_to_replay_is_no_answer(self, store: Store) -> None:
        assert await store.dead.replay([], actor="ada") == []
        assert await store.dead.discard([], actor="ada", reason="why") == []

    async def test_a_taken_unique_key_keeps_it_dead(self, store: Store) -> None:
        first = await die(store, unique="u")
        second = await put(store, unique="u")
        assert second != first
        assert await replay(store, first, first) == ["unique_taken", "unique_taken"]
        assert (await the(store, first)).state is State.DEAD
        assert await store.audit.find() == []
        await end(store, await take_one(store), Done())
        assert await replay(store, first) == ["queued"]
        assert await put(store, unique="u") == first

    async def test_of_two_with_one_unique_key_the_first_is_replayed(self, store: Store) -> None:
        dead = [await die(store, unique="u") for _ in range(2)]
        assert await replay(store, dead[1], dead[0]) == ["queued", "unique_taken"]
        assert await state_of(store, dead[1]) == READY

    async def test_a_replay_and_an_enqueue_at_once_leave_one_with_the_unique_key(self, store: Store) -> None:
        other = await self.second(store)
        for number in range(10):
            job_id = await die(store, unique=f"u{number}")
            outcomes, twin = await asyncio.gather(replay(other, job_id), put(store, unique=f"u{number}"))
            alone = (await the(store, job_id)).state is State.DEAD
            assert outcomes == ["unique_taken" if alone else "queued"]
            assert (twin != job_id) is alone
            await take(store, 10)

    async def test_a_replayed_job_with_keys_arrives(self, store: Store) -> None:
        for options in (
            {"ordered": "o"},
            {"concurrency": "c", "concurrency_limit": 1},
            {"tenant": "t"},
        ):
            job_id = await die(store, **options)
            assert await replay(store, job_id) == ["queued"]
            assert await state_of(store, job_id) == held(Held.ARRIVED), options
            await store.holds.promote()
            await end(store, await take_one(store))
            assert (await the(store, job_id)).state is State.SUCCEEDED

    async def test_a_replayed_job_waits_for_its_turn_again(self, store: Store) -> None:
        first = await die(store, ordered="o")
        second = await put(store, ordered="o")
        await store.holds.promote()
        assert await replay(store, first) == ["queued"]
        await store.holds.promote()
        assert await state_of(store, first) == held(Held.ORDERING)
        claim = await take_one(store)
        assert claim.job_id == second
        await end(store, claim)
        assert ids(await take(store, 10)) == [first]

    async def test_a_job_that_would_have_expired_is_replayed_all_the_same(self, store: Store) -> None:
        job_id = await die(store, expires=10)
        await self.advance(store, 60)
        await replay(store, job_id)
        assert await store.holds.expire() == 0
        assert (await the(store, job_id)).expires_at is None
        assert ids(await take(store)) == [job_id]

    async def test_every_replay_leaves_an_audit_row(self, store: Store) -> None:
        dead = [await die(store, args='{"n": 1}') for _ in range(2)]
        await replay(store, *dead)
        for job_id in dead:
            (row,) = await store.audit.find(subject=job_id)
            assert (row.actor, row.action, row.at) == ("ada", "dead.replay", await store.now())
            assert _decoded(row.before) == {"state": "dead", "generation": 0}
            assert _decoded(row.after) == {"state": "queued", "generation": 0}

    async def test_the_audit_row_shows_edited_arguments(self, store: Store) -> None:
        job_id = await die(store, args='{"n": 1}')
        await replay(store, job_id, args='{"n": 2}')
        (row,) = await store.audit.find(subject=job_id)
        assert _decoded(row.before) == {"state": "dead", "generation": 0, "args": {"n": 1}}
        assert _decoded(row.after) == {"state": "queued", "generation": 1, "args": {"n": 2}}

    async def test_a_replayed_job_counts_as_waiting(self, store: Store) -> None:
        job_id = await die(store, task="bounded", max_waiting=1)
        await replay(store, job_id)
        assert (await the(store, job_id)).state is State.QUEUED
        with raises(TooManyWaiting, "max_waiting"):
            await put(store, task="bounded", max_waiting=1)


class DiscardConformance(Conformance):
    async def test_a_discarded_job_is_cancelled_with_the_reason(self, store: Store) -> None:
        job_id = await die(store)
        await self.advance(store, 5)
        assert await store.dead.discard([job_id, job_id], actor="ada", reason="no use") == [True, False]
        record = await the(store, job_id)
        assert (record.state, record.reason) == (State.CANCELLED, "no use")
        assert (record.attempt, record.worker, record.finished_at) == (1, "w1", await store.now())
        assert [each.error for each in record.errors] == ["broken"]
        assert await store.jobs.count() == []

    async def test_every_discard_leaves_an_audit_row(self, store: Store) -> None:
        job_id = await die(store)
        await store.dead.discard([job_id], actor="ada", reason="half \ud83e a fox")
        (row,) = await store.audit.find()
        assert (row.actor, row.action, row.subject) == ("ada", "dead.discard", job_id)
        assert _decoded(row.before) == {"state": "dead"}
        assert _decoded(row.after) == {"state": "cancelled", "reason": "half \\ud83e a fox"}

    async def test_thousands_are_decided_in_one_call(self, store: Store) -> None:
        many = await put_many(store, 1_200)
        claims = await take(store, 1_200)
        await store.claims.finish([_dead(claim) for claim in claims])
        answers = await store.dead.replay(many, actor="ada")
        assert [(each.job_id, each.outcome) for each in answers] == [(job_id, "queued") for job_id in many]
        assert ids(await take(store, 1_200)) == many
        assert len(await store.audit.find(limit=10_000)) == 1_200

    async def test_thousands_are_discarded_in_one_call(self, store: Store) -> None:
        many = await put_many(store, 1_200)
        await store.claims.finish([_dead(claim) for claim in await take(store, 1_200)])
        assert all(await store.dead.discard(many, actor="ada", reason="no use"))
        assert await store.jobs.count() == []


class DeadConformance(ReplayConformance, DiscardConformance):
    """All promises of `store.dead`."""


def _dead(claim: Claim) -> Finish:
    return Finish(claim, Dead("broken"))


def _decoded(text: str | None) -> Any:
    assert text is not None
    return msgspec.json.decode(text)
