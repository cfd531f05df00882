"""Pause and resume: nobody claims from a paused queue."""

from __future__ import annotations

from holdfast.store.ports import Store
from holdfast.store.records import Paused
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import LEASE, end, ids, put, take, take_one


class QueuesConformance(Conformance):
    async def test_nobody_claims_from_a_paused_queue(self, store: Store) -> None:
        mail, other = await put(store, queue="mail"), await put(store)
        await store.queues.pause("mail", by="ada")
        second = await self.second(store)
        claims = await second.claims.claim({"mail": 5, "default": 5}, lease=LEASE, worker="w")
        assert ids(claims) == [other]
        await second.queues.resume("mail", by="bob")
        assert ids(await take(store, 5, "mail")) == [mail]

    async def test_a_paused_queue_still_takes_jobs_and_what_runs_goes_on(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await store.queues.pause("default", by="ada")
        waiting = await put(store)
        assert len(await store.claims.renew([claim], lease=LEASE)) == 1
        assert await end(store, claim)
        await store.queues.resume("default", by="ada")
        assert ids(await take(store, 5)) == [waiting]

    async def test_finish_and_claim_respects_a_pause(self, store: Store) -> None:
        await put(store)
        await store.queues.pause("default", by="ada")
        answer = await store.claims.finish_and_claim([], {"default": 5}, lease=LEASE, worker="w")
        assert answer == ([], [])

    async def test_paused_says_which_by_whom_and_since_when(self, store: Store) -> None:
        assert await store.queues.paused() == []
        await store.queues.pause("mail", by="ada")
        since = await store.now()
        await self.advance(store, 5)
        await store.queues.pause("mail", by="bob")
        assert await store.queues.paused() == [Paused("mail", "ada", since)]
        await store.queues.resume("mail", by="bob")
        assert await store.queues.paused() == []

    async def test_a_queue_that_nobody_has_used_can_be_paused(self, store: Store) -> None:
        await store.queues.pause("new", by="ada")
        await put(store, queue="new")
        assert await take(store, 5, "new") == []

    async def test_resuming_what_is_not_paused_is_no_error(self, store: Store) -> None:
        await store.queues.resume("mail", by="ada")
        assert await store.queues.paused() == []
        assert await store.audit.find(subject="queue:mail") == []

    async def test_pause_and_resume_leave_audit_rows(self, store: Store) -> None:
        await store.queues.pause("mail", by="ada")
        await self.advance(store, 5)
        await store.queues.resume("mail", by="bob")
        rows = await store.audit.find(subject="queue:mail")
        assert [(row.actor, row.action) for row in rows] == [
            ("bob", "queue.resumed"),
            ("ada", "queue.paused"),
        ]
        assert rows[0].at == await store.now()

    async def test_waits_are_those_of_the_oldest_ready_job_of_each_queue(self, store: Store) -> None:
        assert await store.queues.waits() == {}
        await put(store, queue="mail")
        await self.advance(store, 30)
        await put(store, queue="mail", priority=5)
        await put(store)
        await put(store, queue="later", delay=600.0)
        await put(store, queue="paused")
        await store.queues.pause("paused", by="ada")
        await self.advance(store, 10)
        waits = await store.queues.waits()
        assert {queue: round(seconds) for queue, seconds in waits.items()} == {"mail": 40, "default": 10}
        assert len(await store.queues.waits(limit=1)) == 1
