"""Prune: what was over long ago is forgotten, what lives is not."""

from __future__ import annotations

from holdfast.kernel.outcomes import Dead, Unknown
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import end, put, take_one, the, total

DAY = 86_400.0


class HistoryConformance(Conformance):
    async def test_nothing_to_prune_is_zero(self, store: Store) -> None:
        assert (await store.history.prune(keep=0)).jobs == 0

    async def test_what_was_over_longer_ago_is_forgotten(self, store: Store) -> None:
        """Three days apart, because a store may forget by whole days."""
        old = await put(store)
        await end(store, await take_one(store))
        cancelled = await put(store)
        await store.jobs.cancel(cancelled, "not needed")
        await self.advance(store, 3 * DAY)
        young = await put(store)
        await end(store, await take_one(store))
        assert (await store.history.prune(keep=4 * DAY)).jobs == 0
        assert (await store.history.prune(keep=DAY)).jobs == 2
        assert await store.jobs.get(old) is None
        assert await store.jobs.get(cancelled) is None
        await the(store, young)
        assert (await store.history.prune(keep=DAY)).jobs == 0

    async def test_what_was_over_less_long_ago_is_kept(self, store: Store) -> None:
        job_id = await put(store)
        await end(store, await take_one(store))
        await self.advance(store, DAY - 1)
        assert (await store.history.prune(keep=DAY)).jobs == 0
        await the(store, job_id)

    async def test_live_jobs_are_never_pruned(self, store: Store) -> None:
        kept = []
        for outcome in (Dead("broken"), Unknown("who knows")):
            kept.append(await put(store))
            await end(store, await take_one(store), outcome)
        kept.append(await put(store))
        await take_one(store)
        kept += [await put(store), await put(store, delay=60)]
        await self.advance(store, 1000 * DAY)
        assert (await store.history.prune(keep=0)).jobs == 0
        assert await total(store) == len(kept)

    async def test_jobs_end_also_on_days_that_nobody_prepared(self, store: Store) -> None:
        made = []
        for _ in range(3):
            made.append(await put(store))
            await end(store, await take_one(store))
            await self.advance(store, 400 * DAY)
        for job_id in made:
            await the(store, job_id)
        assert (await store.history.prune(keep=500 * DAY)).jobs == 2
        await store.history.prune(keep=500 * DAY)
        await the(store, made[2])
