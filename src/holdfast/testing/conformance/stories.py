"""The story of a job: its planned time stays, and each claim that did not succeed is told, once, on every store alike."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Cancel, Dead, Outcome, Retry, Snooze, Unknown
from holdfast.store.ports import Store
from holdfast.store.states import Held, State
from holdfast.store.story import KEPT, Entry
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import end, put, raises, take_one, take_suspect, the


async def outcomes(store: Store, job_id: str) -> list[str]:
    return [entry.outcome for entry in await store.jobs.entries(job_id)]


async def ended(store: Store, *ends: Outcome, **options: Any) -> str:
    """A job whose claims have ended so, one after the other."""
    job_id = await put(store, **options)
    for each in ends:
        assert await end(store, await take_one(store), each)
    return job_id


class StoriesConformance(Conformance):
    async def test_the_planned_time_stays(self, store: Store) -> None:
        at = await store.now() + 60
        job_id, plain = await put(store, at=at), await put(store)
        assert (await the(store, job_id)).due_at == at
        assert (await the(store, plain)).due_at is None
        assert await end(store, await take_one(store))
        await self.advance(store, 61)
        await store.holds.promote()
        assert await end(store, await take_one(store), Retry(error="no"))
        assert (await the(store, job_id)).due_at == at
        assert await end(store, await take_one(store))
        record = await the(store, job_id)
        assert (record.state, record.due_at) == (State.SUCCEEDED, at)

    async def test_a_move_is_the_new_plan_and_is_told(self, store: Store) -> None:
        job_id, at = await put(store, delay=60), await store.now() + 100
        await store.jobs.move(job_id, at=at)
        await store.jobs.move(job_id, priority=7)
        assert (await the(store, job_id)).due_at == at
        first, second = await store.jobs.entries(job_id)
        assert (first.outcome, first.due_at, first.priority) == ("moved", at, None)
        assert (second.outcome, second.due_at, second.priority) == ("moved", None, 7)

    async def test_a_job_that_succeeds_at_once_has_nothing_written(self, store: Store) -> None:
        for options in ({}, {"ordered": "one"}, {"delay": 0.0}):
            job_id = await put(store, **options)
            await store.holds.promote()
            assert await end(store, await take_one(store))
            assert await store.jobs.entries(job_id) == []
        assert await store.jobs.entries(new_id()) == []

    async def test_each_claim_is_told_with_its_worker_and_times(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store, worker="w7")
        began = await store.now()
        await self.advance(store, 5)
        assert await end(store, claim, Retry(error="no"))
        [entry] = await store.jobs.entries(job_id)
        assert (entry.number, entry.outcome, entry.attempt) == (1, "failed", 1)
        assert (entry.token, entry.worker, entry.fence) == (claim.token, "w7", None)
        assert entry.began_at is not None
        assert abs(entry.began_at - began) < 0.001
        assert abs(entry.ended_at - began - 5) < 0.001
        assert (await the(store, job_id)).errors[0].at == entry.ended_at

    async def test_every_end_has_its_word(self, store: Store) -> None:
        failed = Retry(error="no")
        for outcome, word in (
            (Dead("why"), "dead"),
            (Unknown("why"), "unknown"),
            (Cancel("why"), "cancelled"),
        ):
            assert await outcomes(store, await ended(store, failed, outcome)) == ["failed", word]
        job_id = await ended(store, failed, failed)
        assert await end(store, await take_one(store))
        assert await outcomes(store, job_id) == ["failed", "failed"]

    async def test_what_is_put_back_is_told(self, store: Store) -> None:
        job_id = await put(store)
        await store.claims.release([await take_one(store)])
        await store.holds.hold([await take_one(store)], Held.UNKNOWN_TASK)
        released, put_aside = await store.jobs.entries(job_id)
        assert (released.outcome, released.held) == ("released", None)
        assert (put_aside.outcome, put_aside.held) == ("held", "unknown_task")

    async def test_a_death_under_a_job_is_told_with_both_tokens(self, store: Store) -> None:
        job_id, lost = await put(store), await take_one(store)
        await store.claims.rescue_worker("w1")
        [entry] = await store.jobs.entries(job_id)
        assert (entry.outcome, entry.token, entry.worker) == ("interrupted", lost.token, "w1")
        assert entry.fence is not None
        assert entry.fence > lost.token
        for _ in range(3):
            await take_suspect(store)
            await store.claims.rescue_worker("w1")
        assert await outcomes(store, job_id) == ["interrupted"] * 3 + ["dead"]

    async def test_who_is_asked_to_stop_is_told_as_cancelled(self, store: Store) -> None:
        job_id, claim = await put(store), await take_one(store)
        await store.jobs.cancel(job_id, "no longer wanted")
        assert await end(store, claim, Snooze(after=5, reason="later"))
        [entry] = await store.jobs.entries(job_id)
        assert (entry.outcome, entry.words, entry.held) == ("cancelled", "no longer wanted", None)

    async def test_a_lost_claim_tells_nothing(self, store: Store) -> None:
        job_id, lost = await put(store), await take_one(store)
        await store.claims.rescue_worker("w1")
        assert not await end(store, lost, Retry(error="late"))
        assert await outcomes(store, job_id) == ["interrupted"]

    # --- the words of what put it off ---

    async def test_the_words_of_a_snooze_are_its_reason_while_it_is_held_for_that(self, store: Store) -> None:
        job_id = await ended(store, Snooze(after=30, reason="the gallery sleeps"))
        assert (await the(store, job_id)).reason == "the gallery sleeps"
        await self.advance(store, 31)
        await store.holds.promote()
        assert (await the(store, job_id)).reason is None
        assert await end(store, await take_one(store), Retry(after=5, error="no"))
        assert (await the(store, job_id)).reason is None
        [entry, _] = await store.jobs.entries(job_id)
        assert (entry.words, entry.held) == ("the gallery sleeps", "time")
        assert entry.until is not None
        assert abs(entry.until - entry.ended_at - 30) < 0.001

    async def test_the_words_of_a_guard_are_its_reason(self, store: Store) -> None:
        job_id = await ended(store, Snooze(guard="site/7", reason="told to come later"))
        record = await the(store, job_id)
        assert (record.held, record.reason) == (Held.GUARD, "told to come later")
        await store.holds.open_gates({"site/7": 1})
        assert (await the(store, job_id)).reason is None
        [entry] = await store.jobs.entries(job_id)
        assert (entry.outcome, entry.key) == ("held", "site/7")

    async def test_another_time_takes_the_words_away(self, store: Store) -> None:
        job_id = await ended(store, Snooze(after=30, reason="later"))
        await store.jobs.move(job_id, priority=1)
        assert (await the(store, job_id)).reason == "later"
        await store.jobs.move(job_id, delay=60)
        assert (await the(store, job_id)).reason is None

    async def test_words_are_not_those_of_another_hold(self, store: Store) -> None:
        """Promoted from its time, and held by its guard in the head of the queue: nobody has said why."""
        job_id = await ended(store, Snooze(after=1, reason="later"), guard="g1")
        await self.advance(store, 2)
        await store.holds.promote()
        assert await store.holds.shut_gates(["default"], keys=["g1"]) == 1
        record = await the(store, job_id)
        assert (record.held, record.reason) == (Held.GUARD, None)

    # --- bounds ---

    async def test_what_repeats_is_counted_in_one_entry(self, store: Store) -> None:
        job_id = await put(store)
        for _ in range(5):
            assert await end(store, await take_one(store), Snooze(reason="later"))
        assert await end(store, await take_one(store), Snooze(reason="much later"))
        first, second = await store.jobs.entries(job_id)
        assert (first.times, first.number, first.words) == (5, 1, "later")
        assert first.began_at is not None
        assert (second.times, second.number) == (1, 2)

    async def test_put_offs_do_not_push_out_the_attempts(self, store: Store) -> None:
        job_id = await ended(store, Retry(error="no"))
        for number in range(KEPT + 5):
            assert await end(store, await take_one(store), Snooze(reason=f"no. {number}"))
        entries = await store.jobs.entries(job_id)
        assert len(entries) == KEPT + 1
        assert (entries[0].outcome, entries[0].number) == ("failed", 1)
        assert [entries[1].words, entries[-1].words] == ["no. 5", f"no. {KEPT + 4}"]
        assert entries[-1].number == KEPT + 6

    # --- transactions, and the end ---

    async def test_what_is_rolled_back_is_not_told(self, store: Store) -> None:
        job_id = await put(store, delay=60)
        with raises(RuntimeError):
            async with store.transaction() as tx:
                await store.jobs.move(job_id, delay=5, tx=tx)
                raise RuntimeError
        assert await store.jobs.entries(job_id) == []

    async def test_it_goes_on_after_a_decision(self, store: Store) -> None:
        job_id = await ended(store, Dead("why"))
        await store.dead.replay([job_id], actor="ada")
        assert await end(store, await take_one(store), Unknown("who knows"))
        await store.steps.resolve(job_id, actor="ada", done=False)
        assert await end(store, await take_one(store))
        assert await outcomes(store, job_id) == ["dead", "unknown"]

    async def test_it_is_pruned_with_its_job(self, store: Store) -> None:
        job_id = await ended(store, Retry(error="no"))
        assert await end(store, await take_one(store))
        assert await outcomes(store, job_id) == ["failed"]
        await self.advance(store, 3 * 86_400)
        await store.history.prune(keep=60)
        assert await store.jobs.get(job_id) is None
        assert await store.jobs.entries(job_id) == []

    async def test_entries_are_the_same_on_both_stores(self, store: Store) -> None:
        """Of everything that an entry can have, in one: what a database keeps of it is what comes back."""
        job_id = await ended(store, Snooze(after=5, lock="post:7", reason="„Anführung“ \\ \x1f"))
        [entry] = await store.jobs.entries(job_id)
        assert entry == Entry(
            outcome="snoozed", number=1, ended_at=entry.ended_at, attempt=1, token=entry.token, worker="w1",
            began_at=entry.began_at, words="„Anführung“ \\ \x1f", held="time", key="post:7", until=entry.until,
        )  # fmt: skip
