"""Reports: how far a running job says it is."""

from __future__ import annotations

from holdfast.kernel.outcomes import Dead, Done, Retry
from holdfast.store.ports import Store
from holdfast.store.records import NOTE_LIMIT
from holdfast.store.states import Held
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import end, put, take_one, take_suspect, the


class ReportConformance(Conformance):
    async def _told(self, store: Store, job_id: str) -> tuple[float | None, str | None]:
        record = await the(store, job_id)
        return record.progress, record.note

    async def test_a_report_is_in_the_record(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        assert await self._told(store, job_id) == (None, None)
        assert await store.claims.report(claim, progress=0.25, note="3 of 12 files, Zoë's next")
        assert await self._told(store, job_id) == (0.25, "3 of 12 files, Zoë's next")
        (found,) = await store.jobs.find()
        assert (found.progress, found.note) == (0.25, "3 of 12 files, Zoë's next")

    async def test_what_is_not_reported_stays(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.claims.report(claim, progress=0)
        await store.claims.report(claim, note="copying")
        assert await self._told(store, job_id) == (0.0, "copying")
        assert await store.claims.report(claim)
        assert await store.claims.report(claim, progress=1)
        assert await self._told(store, job_id) == (1.0, "copying")

    async def test_only_the_holder_reports(self, store: Store) -> None:
        job_id = await put(store)
        lost = await take_one(store)
        await store.claims.report(lost, progress=0.5)
        await self.advance(store, 31)
        assert await store.claims.report(lost, progress=0.6), "nobody has taken it yet: the token decides"
        await store.claims.rescue()
        assert not await store.claims.report(lost, progress=0.7, note="still here")
        assert await self._told(store, job_id) == (None, None)
        claim = await take_suspect(store)
        assert not await store.claims.report(lost, progress=0.8)
        assert await self._told(store, job_id) == (None, None)
        assert await end(store, claim, Done())
        assert not await store.claims.report(claim, progress=1)

    async def test_a_new_attempt_begins_with_nothing(self, store: Store) -> None:
        job_id = await put(store)
        for put_back in ("retry", "release", "hold", "replay"):
            claim = await take_one(store)
            assert await self._told(store, job_id) == (None, None), put_back
            assert await store.claims.report(claim, progress=0.5, note="half")
            match put_back:
                case "retry":
                    await end(store, claim, Retry())
                case "release":
                    await store.claims.release([claim])
                case "hold":
                    await store.holds.hold([claim], Held.GUARD)
                    await store.holds.unhold(Held.GUARD)
                case "replay":
                    await end(store, claim, Dead("broken"))
                    assert await self._told(store, job_id) == (None, None)
                    await store.dead.replay([job_id], actor="ada")
            assert await self._told(store, job_id) == (None, None), put_back
        await take_one(store)
        assert await self._told(store, job_id) == (None, None)

    async def test_a_renewal_keeps_the_report(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.claims.report(claim, progress=0.5, note="half")
        await store.claims.renew([claim], lease=30)
        await store.jobs.cancel(job_id, "stop")
        assert await self._told(store, job_id) == (0.5, "half")

    async def test_a_note_is_never_refused(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        for note in ("x" * 5_000, "bytes \0 and half \ud83e a fox", "\U0001f98a" * 501, ""):
            assert await store.claims.report(claim, note=note)
            _, kept = await self._told(store, job_id)
            assert kept is not None
            assert len(kept) <= NOTE_LIMIT
        assert kept == ""
