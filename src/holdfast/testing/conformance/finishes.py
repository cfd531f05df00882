"""Finish and release: what the end of a claim writes."""

from __future__ import annotations

from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import ERRORS_KEPT, Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    end,
    held,
    ids,
    put,
    put_many,
    state_of,
    take,
    take_one,
    the,
    total,
)


class FinishConformance(Conformance):
    async def test_done_is_kept_in_the_history_with_its_result(self, store: Store) -> None:
        job_id = await put(store, unique="u", correlation_id="story")
        claim = await take_one(store)
        await self.advance(store, 3)
        assert await end(store, claim, Done('{"ok": "Zoë"}'))
        record = await the(store, job_id)
        assert (record.state, record.result, record.finished_at) == (
            State.SUCCEEDED,
            '{"ok": "Zoë"}',
            await store.now(),
        )
        assert (record.token, record.attempt, record.worker) == (claim.token, 1, "w1")
        assert (record.unique, record.correlation_id) == ("u", "story")
        assert record.started_at == await store.now() - 3
        assert await total(store) == 0

    async def test_done_without_a_result(self, store: Store) -> None:
        job_id = await put(store)
        await end(store, await take_one(store), Done())
        assert (await the(store, job_id)).result is None

    async def test_cancel_is_kept_in_the_history_with_its_reason(self, store: Store) -> None:
        job_id = await put(store)
        assert await end(store, await take_one(store), Cancel("gone"))
        record = await the(store, job_id)
        assert (record.state, record.reason, record.finished_at) == (
            State.CANCELLED,
            "gone",
            await store.now(),
        )
        assert await total(store) == 0

    async def test_dead_stays_live_with_reason_and_error(self, store: Store) -> None:
        job_id = await put(store)
        assert await end(store, await take_one(store), Dead("ValueError: bad address"))
        record = await the(store, job_id)
        assert (record.state, record.reason) == (State.DEAD, "ValueError: bad address")
        assert [(error.attempt, error.error) for error in record.errors] == [(1, "ValueError: bad address")]
        assert record.lease_until is None
        assert await take(store, 10) == []

    async def test_unknown_stays_live_with_its_reason(self, store: Store) -> None:
        job_id = await put(store)
        assert await end(store, await take_one(store), Unknown("the answer was lost"))
        record = await the(store, job_id)
        assert (record.state, record.reason, record.lease_until) == (
            State.UNKNOWN,
            "the answer was lost",
            None,
        )
        assert await take(store, 10) == []

    async def test_retry_is_queued_again_with_its_error_and_its_attempt_charged(self, store: Store) -> None:
        job_id = await put(store)
        claim, now = await take_one(store), await store.now()
        assert await end(store, claim, Retry(after=5, error="TimeoutError"))
        record = await the(store, job_id)
        assert (record.state, record.held, record.run_at) == (State.QUEUED, Held.TIME, now + 5)
        assert (record.attempt, record.lease_until) == (1, None)
        assert [(error.attempt, error.at, error.error) for error in record.errors] == [
            (1, now, "TimeoutError")
        ]
        await self._not_before(store, job_id, 5)

    async def test_snooze_is_queued_again_uncharged(self, store: Store) -> None:
        job_id = await put(store)
        claim, now = await take_one(store), await store.now()
        assert await end(store, claim, Snooze(after=5, reason="not yet"))
        record = await the(store, job_id)
        assert (record.state, record.held, record.run_at) == (State.QUEUED, Held.TIME, now + 5)
        assert (record.attempt, record.errors) == (0, ())
        await self._not_before(store, job_id, 5)

    async def _not_before(self, store: Store, job_id: str, seconds: float) -> None:
        await self.advance(store, seconds - 1)
        assert await store.holds.promote() == 0
        assert await take(store, 10) == []
        await self.advance(store, 1)
        assert await store.holds.promote() == 1
        assert ids(await take(store, 10)) == [job_id]

    async def test_retry_and_snooze_after_nothing_are_ready_at_once(self, store: Store) -> None:
        for outcome in (Retry(after=0), Snooze(after=0)):
            job_id = await put(store)
            await end(store, await take_one(store), outcome)
            assert await state_of(store, job_id) == READY
            await end(store, await take_one(store))

    async def test_retry_and_snooze_of_a_job_with_slots_or_a_tenant_arrive_again(self, store: Store) -> None:
        for options in ({"concurrency": "c", "concurrency_limit": 1}, {"tenant": "t"}):
            for outcome in (Retry(after=0), Snooze(after=0)):
                job_id = await put(store, **options)
                await store.holds.promote()
                await end(store, await take_one(store), outcome)
                assert await state_of(store, job_id) == held(Held.ARRIVED)
                await store.holds.promote()
                await end(store, await take_one(store))

    async def test_errors_of_the_newest_attempts_are_kept(self, store: Store) -> None:
        job_id = await put(store)
        for number in range(1, ERRORS_KEPT + 6):
            await end(store, await take_one(store), Retry(error=f"error {number}"))
        record = await the(store, job_id)
        newest = range(6, ERRORS_KEPT + 6)
        assert [(error.attempt, error.error) for error in record.errors] == [
            (n, f"error {n}") for n in newest
        ]
        await end(store, await take_one(store), Done())
        assert (await the(store, job_id)).errors == record.errors

    async def test_a_result_may_be_long_and_have_any_character(self, store: Store) -> None:
        job_id = await put(store)
        result = '"' + "Zoë \\u0000 🦊 " * 10_000 + '"'
        await end(store, await take_one(store), Done(result))
        assert (await the(store, job_id)).result == result

    async def test_an_error_may_have_any_character(self, store: Store) -> None:
        for kind in (Dead, lambda text: Retry(error=text)):
            job_id = await put(store)
            await end(store, await take_one(store), kind("bytes \x00 and half \ud83e a fox"))
            (error,) = (await the(store, job_id)).errors
            assert error.error.startswith("bytes "), error
            assert error.error.endswith(" a fox"), error
            await store.jobs.cancel(job_id, "next")

    async def test_many_outcomes_in_one_call(self, store: Store) -> None:
        job_ids = await put_many(store, 6)
        outcomes: list[Outcome] = [
            Done("1"),
            Retry(after=5, error="e"),
            Snooze(after=5),
            Cancel("c"),
            Dead("d"),
            Unknown("u"),
        ]
        claims = await take(store, 6)
        finishes = [Finish(claim, outcome) for claim, outcome in zip(claims, outcomes, strict=True)]
        assert await store.claims.finish(finishes) == [True] * 6
        states = [(await the(store, job_id)).state for job_id in job_ids]
        assert states == [
            State.SUCCEEDED,
            State.QUEUED,
            State.QUEUED,
            State.CANCELLED,
            State.DEAD,
            State.UNKNOWN,
        ]

    async def test_finishing_nothing_is_no_error(self, store: Store) -> None:
        assert await store.claims.finish([]) == []
        assert await store.claims.finish_and_claim([], {}, lease=LEASE, worker="w") == ([], [])
        assert await store.claims.renew([], lease=LEASE) == []
        assert await store.claims.release([]) == []

    async def test_finish_and_claim_does_both(self, store: Store) -> None:
        first, second = await put_many(store, 2)
        claim = await take_one(store)
        accepted, claims = await store.claims.finish_and_claim(
            [Finish(claim, Done("1"))], {"default": 5}, lease=LEASE, worker="w2"
        )
        assert (accepted, ids(claims)) == ([True], [second])
        assert (await the(store, first)).state is State.SUCCEEDED
        assert claims[0].token > claim.token

    async def test_finish_and_claim_serves_what_the_finish_let_go(self, store: Store) -> None:
        _, second = await put_many(store, 2, ordered="o")
        await store.holds.promote()
        _, claims = await store.claims.finish_and_claim(
            [Finish(await take_one(store), Done())], {"default": 5}, lease=LEASE, worker="w"
        )
        assert ids(claims) == [second]

    async def test_release_is_uncharged(self, store: Store) -> None:
        job_id = await put(store)
        assert await store.claims.release(await take(store)) == [True]
        record = await the(store, job_id)
        assert (record.state, record.held, record.attempt) == (State.QUEUED, None, 0)
        assert (record.lease_until, record.interruptions, record.suspect) == (None, 0, False)
        assert (await take_one(store)).attempt == 1
