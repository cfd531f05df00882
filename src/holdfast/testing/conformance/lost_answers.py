"""The answer to a commit is lost: a verb that can tell what became of it tells, and does nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.errors import CommitUnknown, StoreError, StoreUnavailable
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.event_records import Delivery, NewStray
from holdfast.store.ports import Store
from holdfast.store.records import Enqueued, Finish
from holdfast.store.states import Held, State
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
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
from holdfast.testing.conformance.outbox import emit, event, relay, the_event

OUTCOMES: list[Outcome] = [Done("1"), Retry(), Retry(after=5), Snooze(), Cancel("c"), Dead("d"), Unknown("u")]


@contextmanager
def once(point: str, error: StoreError, at: int = 1) -> Generator[None, None, None]:
    """Fail there, the first time or a later one."""
    with armed(point, _failing(error, at)):
        yield


def _failing(error: StoreError, at: int) -> Callable[[str], None]:
    seen: list[str] = []

    def fail(name: str) -> None:
        seen.append(name)
        if len(seen) == at:
            raise error

    return fail


def lost() -> CommitUnknown:
    return CommitUnknown("the answer was lost")


class LostAnswersConformance(Conformance):
    async def test_a_finish_whose_answer_was_lost_was_accepted(self, store: Store) -> None:
        for options in ({}, {"concurrency": "c", "concurrency_limit": 9}):
            for outcome in OUTCOMES:
                job_id = await put(store, **options)
                await store.holds.promote()
                (claim,) = [claim for claim in await take(store, 99) if claim.job_id == job_id]
                with once("store.after_commit", lost()):
                    assert await store.claims.finish([Finish(claim, outcome)]) == [True], outcome
                assert (await the(store, job_id)).state is not State.RUNNING
                assert await store.claims.finish([Finish(claim, outcome)]) == [False], outcome

    async def test_of_two_outcomes_only_the_first_was_accepted(self, store: Store) -> None:
        for first, second in ((Done("1"), Dead("x")), (Done("1"), Retry()), (Dead("x"), Done("1"))):
            await put(store)
            claim = await take_one(store)
            with once("store.after_commit", lost()):
                answers = await store.claims.finish([Finish(claim, first), Finish(claim, second)])
            assert answers == [True, False]

    async def test_a_finish_that_claims_tells_what_became_of_the_finish(self, store: Store) -> None:
        for outcome in (Done(), Dead("x")):
            await put_many(store, 2)
            claim = await take_one(store)
            with once("store.after_commit", lost()):
                answer = await store.claims.finish_and_claim(
                    [Finish(claim, outcome)], {"default": 1}, lease=LEASE, worker="w1"
                )
            assert answer == ([True], []), "what was claimed is rescued when its lease ends"
            assert await take(store, 9) == []

    async def test_what_was_put_back_is_put_back_once(self, store: Store) -> None:
        await put_many(store, 2)
        one, two = await take(store, 2)
        with once("store.after_commit", lost()):
            assert await store.claims.release([one]) == [True]
        with once("store.after_commit", lost()):
            assert await store.holds.hold([two], Held.GUARD) == [True]
        assert (await take_one(store)).attempt == 1
        assert (await the(store, two.job_id)).held is Held.GUARD

    async def test_what_is_as_good_twice_is_done_again(self, store: Store) -> None:
        ordered = await put(store, ordered="o")
        with once("store.after_commit", lost()):
            await store.holds.promote()
        assert await state_of(store, ordered) == READY
        claim = await take_one(store)
        with once("store.after_commit", lost()):
            assert ids(await store.claims.renew([claim], lease=LEASE)) == [ordered]  # type: ignore[arg-type]
        with once("store.after_commit", lost()):
            assert await store.jobs.cancel(ordered, "no") is State.RUNNING
        with once("store.after_commit", lost()):
            await store.queues.pause("mail", by="ada")
        assert len(await store.audit.find()) == 1
        for prune in (store.leases.prune, store.keys.prune):
            with once("store.after_commit", lost()):
                assert await prune() == 0
        with once("store.after_commit", lost()):
            assert await store.claims.rescue() == []
        assert await store.claims.settle(ordered, claim.token) is False

    async def test_a_lease_that_was_taken_is_ours(self, store: Store) -> None:
        with once("store.after_commit", lost()):
            lease = await store.leases.acquire("leader", owner="w1", ttl=30)
        assert lease is not None
        with once("store.after_commit", lost()):
            assert await store.leases.renew(lease, ttl=60) is not None

    async def test_a_tick_that_was_stored_is_ours(self, store: Store) -> None:
        new = job()
        with once("store.after_commit", lost()):
            assert await store.schedules.tick("nightly", 5.0, new) == Enqueued(new.id, created=True)
        assert await total(store) == 1

    async def test_events_that_were_emitted_are_stored_once(self, store: Store) -> None:
        for number in (1, 3, 700):
            new = [event("a") for _ in range(number)]
            before = await store.outbox.version("a")
            with once("store.after_commit", lost()):
                answers = await store.outbox.emit([*new, event(None)])
            assert [answer.version for answer in answers] == [
                *range(before + 1, before + number + 1),
                None,
            ]
            assert await store.outbox.version("a") == before + number

    async def test_positions_that_were_given_are_kept(self, store: Store) -> None:
        ids, lease = await emit(store, "a", "b"), await relay(store)
        with once("store.after_commit", lost()):
            positions = await store.outbox.stamp(lease, ids)
        assert positions is not None
        assert [each.position for each in await store.outbox.log()] == positions
        assert await store.outbox.stamp(lease, ids) == positions

    async def test_a_delivery_that_was_stored_is_ours(self, store: Store) -> None:
        made = [Delivery(name, job(ordered="o")) for name in ("e1", "e2")]
        with once("store.after_commit", lost()):
            assert await store.inbox.deliver("billing", made, upto=2) == [True, True]
        assert await total(store) == 2
        with once("store.after_commit", lost()):
            assert (await store.inbox.subscribe("billing")).position == 2

    async def test_a_stray_is_kept_once(self, store: Store) -> None:
        with once("store.after_commit", lost()):
            ids = await store.strays.keep(
                "redis", "billing", [NewStray(b"raw", "no JSON"), NewStray(b"2", "why")]
            )
        assert [stray.id for stray in await store.strays.find()] == ids[::-1]
        for prune in (store.outbox.prune, store.inbox.prune):
            with once("store.after_commit", lost()):
                assert await prune(keep=0) == 0

    async def test_what_failed_is_charged_once_or_is_unknown(self, store: Store) -> None:
        """Whoever asked looks at the event before it says so again."""
        [event_id], lease = await emit(store, "a"), await relay(store)
        with once("store.after_commit", lost()), raises(CommitUnknown):
            await store.outbox.failed(lease, event_id, "busy", rest=5)
        assert (await the_event(store, event_id)).tries == 1

    async def test_jobs_that_were_rescued_are_unknown(self, store: Store) -> None:
        """Whoever asked would not be told which they were."""
        job_id = await put(store)
        await take_one(store)
        await self.advance(store, LEASE)
        with once("store.after_commit", lost()), raises(CommitUnknown):
            await store.claims.rescue()
        assert await state_of(store, job_id) == READY


class OneCommitConformance(Conformance):
    async def test_finish_and_claim_happen_both_or_neither(self, store: Store) -> None:
        for outcome in (Done(), Dead("x"), Cancel("c")):
            for at in (1, 2):
                await put_many(store, 2)
                claim = await take_one(store)
                with once("store.before_commit", StoreUnavailable("the disk is gone"), at):
                    try:
                        await store.claims.finish_and_claim(
                            [Finish(claim, outcome)], {"default": 1}, lease=LEASE, worker="w2"
                        )
                    except StoreUnavailable:
                        assert at == 1, "there is only one commit"
                ended = (await the(store, claim.job_id)).state is not State.RUNNING
                taken = [
                    record for record in await store.jobs.find(state=State.RUNNING) if record.worker == "w2"
                ]
                assert bool(taken) is ended is (at == 2)
                await self._end_all(store)

    async def _end_all(self, store: Store) -> None:
        for worker in ("w1", "w2"):
            await store.claims.rescue_worker(worker)
        for record in await store.jobs.find():
            await store.jobs.cancel(record.id, "over")
