"""Diagnosis: what waits is judged alike on every store, and looking changes nothing."""

from __future__ import annotations

from holdfast.kernel.outcomes import Dead, Unknown
from holdfast.store.findings import DIED_LATELY, READY_TOO_LONG, STUCK_AFTER, Finding, Level
from holdfast.store.ports import Store
from holdfast.store.states import Held
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import LEASE, end, put, put_many, take, take_one
from holdfast.testing.conformance.workers import TTL, worker

CHECKS = (
    "workers", "leases", "paused", "queues", "unknown tasks", "dead jobs", "unknown jobs", "waiting"
)  # fmt: skip


class DiagnosisConformance(Conformance):
    async def test_an_empty_store_has_no_trouble_with_its_jobs(self, store: Store) -> None:
        for check in ("tables", *CHECKS):
            assert (await _the(store, check)).level is Level.OK, check

    async def test_it_needs_no_open_store(self, store: Store) -> None:
        await store.close()
        assert (await _the(store, "tables")).level is Level.OK

    async def test_a_lease_that_ended_long_ago_is_bad_since_nobody_rescues(self, store: Store) -> None:
        await put_many(store, 3)
        await take(store, 2)
        await self.advance(store, LEASE + STUCK_AFTER - 1)
        assert (await _the(store, "leases")).level is Level.OK
        await self.advance(store, 2)
        found = await _the(store, "leases")
        assert found.level is Level.BAD
        assert "2 of 2;" in found.found
        assert await store.claims.rescue() != []  # looking has rescued nobody
        assert (await _the(store, "leases")).level is Level.OK

    async def test_jobs_that_wait_in_a_paused_queue_are_worth_a_warning(self, store: Store) -> None:
        await store.queues.pause("mail", by="ada")
        assert (await _the(store, "paused")).level is Level.OK
        await put_many(store, 3, queue="mail")
        found = await _the(store, "paused")
        assert found.level is Level.WARN
        assert "mail (3)" in found.found

    async def test_tasks_that_nobody_knows_are_named(self, store: Store) -> None:
        await put_many(store, 2, task="old.task")
        await store.holds.hold(await take(store, 2), Held.UNKNOWN_TASK)
        found = await _the(store, "unknown tasks")
        assert found.level is Level.BAD
        assert "old.task (2)" in found.found
        await store.workers.register(worker("newer", tasks=("old.task",)), ttl=TTL)
        found = await _the(store, "unknown tasks")
        assert found.level is Level.OK
        assert "let them go: old.task (2)" in found.found

    async def test_tasks_that_no_worker_of_their_queue_knows_are_named_at_once(self, store: Store) -> None:
        await put_many(store, 2, task="new.task")
        await put(store, task="elsewhere", ordered="o")
        await store.workers.register(worker("w1", tasks=("a",)), ttl=TTL)
        await store.workers.register(
            worker("w2", queues={"mail": 1}, tasks=("new.task", "elsewhere")), ttl=TTL
        )
        found = await _the(store, "unknown tasks")
        assert found.level is Level.BAD
        assert "new.task (2), elsewhere (1)." in found.found
        assert (await _the(store, "queues")).level is Level.OK

    async def test_queues_that_no_live_worker_serves_are_named_at_once(self, store: Store) -> None:
        await put_many(store, 2, queue="mail")
        await put(store, queue="money", ordered="o")
        await put(store, queue="later", delay=60)
        await put(store, queue="paused")
        await store.queues.pause("paused", by="ada")
        await store.workers.register(worker("w1", queues={"other": 1}), ttl=TTL)
        found = await _the(store, "queues")
        assert found.level is Level.BAD
        assert "mail (2), money (1)." in found.found
        assert "-q mail." in (found.todo or "")
        assert (await _the(store, "unknown tasks")).level is Level.OK  # each is told once
        await store.workers.register(
            worker("w2", queues={"mail": 1, "money": 1}, tasks=("mail.send",)), ttl=TTL
        )
        assert (await _the(store, "queues")).level is Level.OK
        await self.advance(store, 60)  # now both are dead, and what waited for its time could run
        assert "mail (2), later (1), money (1)." in (await _the(store, "queues")).found

    async def test_who_leaves_serves_nothing_any_more(self, store: Store) -> None:
        await put(store)
        await store.workers.register(worker("w1", tasks=("mail.send",)), ttl=TTL)
        assert (await _the(store, "queues")).level is Level.OK
        await store.workers.beat("w1", ttl=TTL, draining=True)
        assert (await _the(store, "queues")).level is Level.BAD

    async def test_dead_jobs_are_counted_by_task(self, store: Store) -> None:
        await put_many(store, 2)
        await put(store, task="report.build")
        for claim in await take(store, 3):
            await end(store, claim, Dead("ValueError"))
            await self.advance(store, 5)
        found = await _the(store, "dead jobs")
        assert found.level is Level.BAD
        assert "mail.send (2), report.build (1); the newest ran 15 s ago" in found.found
        assert "holdfast dead list --task" in (found.todo or "")

    async def test_workers_that_died_lately_are_named(self, store: Store) -> None:
        for name, ttl in (("w1", 5), ("w2", 9), ("w3", TTL)):
            await store.workers.register(worker(name), ttl=ttl)
        await store.workers.charge({"w1": 1, "w2": 3, "w3": 100})
        await self.advance(store, 10)
        found = await _the(store, "workers")
        assert found.level is Level.WARN
        assert "alive: 1; died within the last hour: 2, the last one 1 s ago (w2)" in found.found
        assert "put back for them: 4" in found.found
        await store.workers.beat("w3", ttl=10_000)
        await self.advance(store, DIED_LATELY)
        assert (await _the(store, "workers")).level is Level.OK

    async def test_jobs_that_wait_for_a_person_are_counted(self, store: Store) -> None:
        await put_many(store, 3)
        for claim in await take(store, 2):
            await end(store, claim, Unknown("who knows"))
        await self.advance(store, 100)
        await put(store, queue="other")
        await end(store, await take_one(store, "other"), Unknown("who knows"))
        found = await _the(store, "unknown jobs")
        assert found.level is Level.BAD
        assert ": 3; the oldest was enqueued 100 s ago" in found.found
        assert "holdfast unknown list" in (found.todo or "")

    async def test_a_ready_job_that_nobody_takes_is_worth_a_warning(self, store: Store) -> None:
        await put(store, queue="slow")
        await self.advance(store, READY_TOO_LONG - 1)
        assert (await _the(store, "waiting")).level is Level.OK
        await self.advance(store, 2)
        found = await _the(store, "waiting")
        assert found.level is Level.WARN
        assert "'slow'" in found.found
        await store.queues.pause("slow", by="ada")  # that is told by another finding
        assert (await _the(store, "waiting")).level is Level.OK

    async def test_a_job_waits_from_its_time_on(self, store: Store) -> None:
        await put(store, delay=1_000)
        await self.advance(store, 1_001)
        await store.holds.promote()
        assert (await _the(store, "waiting")).level is Level.OK
        await take_one(store)


async def _the(store: Store, check: str) -> Finding:
    findings = [finding for finding in await store.diagnosis.examine() if finding.check == check]
    assert len(findings) == 1, f"one finding should be about {check}: {findings}"
    return findings[0]
