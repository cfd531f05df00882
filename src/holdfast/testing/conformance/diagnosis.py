"""Diagnosis: what waits is judged alike on every store, and looking changes nothing."""

from __future__ import annotations

from holdfast.kernel.outcomes import Unknown
from holdfast.store.findings import READY_TOO_LONG, STUCK_AFTER, Finding, Level
from holdfast.store.ports import Store
from holdfast.store.states import Held
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import LEASE, end, put, put_many, take, take_one


class DiagnosisConformance(Conformance):
    async def test_an_empty_store_has_no_trouble_with_its_jobs(self, store: Store) -> None:
        for check in ("tables", "leases", "paused", "unknown tasks", "unknown jobs", "waiting"):
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
        assert found.level is Level.WARN
        assert "old.task (2)" in found.found

    async def test_jobs_that_wait_for_a_person_are_counted(self, store: Store) -> None:
        await put_many(store, 3)
        for claim in await take(store, 2):
            await end(store, claim, Unknown("who knows"))
        await self.advance(store, 100)
        await put(store, queue="other")
        await end(store, await take_one(store, "other"), Unknown("who knows"))
        found = await _the(store, "unknown jobs")
        assert found.level is Level.WARN
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
