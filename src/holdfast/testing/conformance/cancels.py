"""Cancel: of every state, and what it passes on."""

from __future__ import annotations

from contextlib import suppress

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Cancel, Dead, Done, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    Rollback,
    end,
    held,
    put,
    state_of,
    take,
    take_one,
    the,
)


class CancelConformance(Conformance):
    async def test_cancelling_an_id_that_nobody_has_seen_answers_none(self, store: Store) -> None:
        assert await store.jobs.cancel(new_id(), "why") is None

    async def test_a_ready_or_held_job_is_cancelled_at_once(self, store: Store) -> None:
        for options in ({}, {"delay": 60}, {"ordered": "o"}, {"tenant": "t"}):
            job_id = await put(store, **options)
            assert await store.jobs.cancel(job_id, "not needed") is State.CANCELLED
            record = await the(store, job_id)
            assert (record.state, record.held, record.reason) == (State.CANCELLED, None, "not needed")
            assert (record.finished_at, record.attempt) == (await store.now(), 0)
        assert await take(store, 10) == []

    async def test_a_running_job_is_asked_to_stop_and_its_holder_is_told_by_renew(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        (before,) = await store.claims.renew([claim], lease=LEASE)
        assert before.cancel is None
        assert await store.jobs.cancel(job_id, "the user left") is State.RUNNING
        record = await the(store, job_id)
        assert (record.state, record.reason) == (State.RUNNING, "the user left")
        (renewal,) = await store.claims.renew([claim], lease=LEASE)
        assert renewal.cancel == "the user left"
        assert await end(store, claim, Cancel("stopped half-way"))
        record = await the(store, job_id)
        assert (record.state, record.reason) == (State.CANCELLED, "stopped half-way")

    async def test_a_running_job_is_left_alone_when_only_others_shall_be_cancelled(
        self, store: Store
    ) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        before = await the(store, job_id)
        assert await store.jobs.cancel(job_id, "too late", running=False) is State.RUNNING
        assert await the(store, job_id) == before
        (renewal,) = await store.claims.renew([claim], lease=LEASE)
        assert renewal.cancel is None
        assert await end(store, claim)
        assert await store.jobs.cancel(job_id, "too late", running=False) is State.SUCCEEDED

    async def test_it_is_cancelled_if_and_only_if_its_transaction_commits(self, store: Store) -> None:
        for running in (False, True):
            job_id = await put(store)
            with suppress(Rollback):
                async with store.transaction() as tx:
                    answer = await store.jobs.cancel(job_id, "gone", running=running, tx=tx)
                    assert answer is State.CANCELLED
                    raise Rollback
            assert await state_of(store, job_id) == READY
            async with store.transaction() as tx:
                await store.jobs.cancel(job_id, "gone", running=running, tx=tx)
            assert (await the(store, job_id)).state is State.CANCELLED

    async def test_a_running_job_is_asked_to_stop_when_the_transaction_commits(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        with suppress(Rollback):
            async with store.transaction() as tx:
                assert await store.jobs.cancel(claim.job_id, "left", tx=tx) is State.RUNNING
                raise Rollback
        assert [each.cancel for each in await store.claims.renew([claim], lease=LEASE)] == [None]
        async with store.transaction() as tx:
            assert await store.jobs.cancel(claim.job_id, "left", tx=tx) is State.RUNNING
        assert [each.cancel for each in await store.claims.renew([claim], lease=LEASE)] == ["left"]

    async def test_a_job_that_was_asked_to_stop_may_still_succeed(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.jobs.cancel(job_id, "too late")
        assert await end(store, claim, Done('"done"'))
        record = await the(store, job_id)
        assert (record.state, record.result) == (State.SUCCEEDED, '"done"')

    async def test_a_job_that_was_asked_to_stop_is_cancelled_instead_of_queued_again(
        self, store: Store
    ) -> None:
        for outcome in (Retry(after=5, error="oops"), Retry(), Snooze(after=5), Snooze()):
            job_id = await put(store)
            claim = await take_one(store)
            await store.jobs.cancel(job_id, "the user left")
            assert await end(store, claim, outcome), outcome
            record = await the(store, job_id)
            assert (record.state, record.reason) == (State.CANCELLED, "the user left"), outcome
            assert await store.claims.settle(job_id, claim.token), outcome

    async def test_the_error_of_a_job_that_is_cancelled_instead_of_retried_is_kept(
        self, store: Store
    ) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.jobs.cancel(job_id, "the user left")
        await end(store, claim, Retry(after=5, error="oops"))
        assert [(error.attempt, error.error) for error in (await the(store, job_id)).errors] == [(1, "oops")]

    async def test_a_job_that_was_asked_to_stop_is_cancelled_when_it_is_released_or_put_on_hold(
        self, store: Store
    ) -> None:
        for by_hold in (False, True):
            job_id = await put(store)
            claim = await take_one(store)
            await store.jobs.cancel(job_id, "the user left")
            put_back = store.holds.hold([claim], Held.GUARD) if by_hold else store.claims.release([claim])
            assert await put_back == [True]
            record = await the(store, job_id)
            assert (record.state, record.reason) == (State.CANCELLED, "the user left")

    async def test_a_job_that_was_asked_to_stop_is_cancelled_when_it_is_rescued(self, store: Store) -> None:
        job_id = await put(store, ordered="o")
        behind = await put(store, ordered="o")
        await store.holds.promote()
        await take_one(store)
        await store.jobs.cancel(job_id, "the user left")
        await self.advance(store, LEASE)
        (rescue,) = await store.claims.rescue()
        assert (rescue.job_id, rescue.state) == (job_id, State.CANCELLED)
        record = await the(store, job_id)
        assert (record.state, record.reason) == (State.CANCELLED, "the user left")
        assert await state_of(store, behind) == READY

    async def test_a_reason_may_have_any_character(self, store: Store) -> None:
        queued, running = await put(store, delay=60), await put(store)
        await take_one(store)
        for job_id in (queued, running):
            await store.jobs.cancel(job_id, "bytes \0 and half \ud83e a fox")
            reason = (await the(store, job_id)).reason
            assert reason is not None
            assert reason.startswith("bytes ")
            assert reason.endswith(" a fox")

    async def test_dead_and_unknown_jobs_are_cancelled(self, store: Store) -> None:
        for outcome in (Dead("broken"), Unknown("who knows")):
            job_id = await put(store)
            await end(store, await take_one(store), outcome)
            assert await store.jobs.cancel(job_id, "discarded") is State.CANCELLED
            record = await the(store, job_id)
            assert (record.state, record.reason, record.attempt) == (State.CANCELLED, "discarded", 1)

    async def test_a_job_that_is_over_stays_as_it_is(self, store: Store) -> None:
        done = await put(store)
        await end(store, await take_one(store), Done("1"))
        cancelled = await put(store)
        await store.jobs.cancel(cancelled, "first")
        before = [await the(store, done), await the(store, cancelled)]
        assert await store.jobs.cancel(done, "again") is State.SUCCEEDED
        assert await store.jobs.cancel(cancelled, "again") is State.CANCELLED
        assert [await the(store, done), await the(store, cancelled)] == before

    async def test_a_cancelled_job_passes_on_its_turn(self, store: Store) -> None:
        first, second, third = [await put(store, ordered="o") for _ in range(3)]
        await store.holds.promote()
        assert await state_of(store, first) == READY
        await store.jobs.cancel(second, "out of the middle")
        assert await state_of(store, third) == held(Held.ORDERING)
        await store.jobs.cancel(first, "out of the front")
        assert await state_of(store, third) == READY

    async def test_a_cancelled_unknown_job_passes_on_its_turn(self, store: Store) -> None:
        first, second = [await put(store, ordered="o") for _ in range(2)]
        await store.holds.promote()
        await end(store, await take_one(store), Unknown("who knows"))
        assert await state_of(store, second) == held(Held.ORDERING)
        await store.jobs.cancel(first, "given up")
        assert await state_of(store, second) == READY

    async def test_a_job_cancelled_while_ready_gives_back_its_slot(self, store: Store) -> None:
        first, second = [await put(store, concurrency="c", concurrency_limit=1) for _ in range(2)]
        await store.holds.promote()
        assert await state_of(store, second) == held(Held.CONCURRENCY)
        await store.jobs.cancel(first, "not needed")
        assert await state_of(store, second) == READY

    async def test_a_job_cancelled_while_ready_gives_back_its_room_in_the_window(self, store: Store) -> None:
        first, second = [await put(store, tenant="t") for _ in range(2)]
        await store.holds.promote(window=1)
        assert await state_of(store, second) == held(Held.TENANT)
        await store.jobs.cancel(first, "not needed")
        await store.holds.repair()
        assert await state_of(store, second) == READY
