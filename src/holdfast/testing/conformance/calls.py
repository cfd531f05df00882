"""How many calls a step has made, and when the last of them began: an intent without a call counts for nothing."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.outcomes import Retry
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import end, put, take_one


def effect(progress: Progress, calls: int, **options: Any) -> Step:
    return Step(name="publish", number=0, kind=Kind.AT_MOST_ONCE, progress=progress, calls=calls, **options)


async def calls_of(store: Store, claim: Claim) -> tuple[int, float | None]:
    [found] = await store.steps.load(claim.job_id, claim.generation)
    return found.calls, found.begun_at


def near(found: float | None, wanted: float) -> bool:
    return found is not None and abs(found - wanted) < 0.001


class CallsConformance(Conformance):
    async def test_an_intent_counts_as_a_call_until_more_is_known(self, store: Store) -> None:
        await put(store)
        claim, began = await take_one(store), await store.now()
        await store.steps.write(claim, effect(Progress.BEGUN, 0, intent=True))
        await self.advance(store, 5)
        calls, at = await calls_of(store, claim)
        assert calls == 1
        assert near(at, began)

    async def test_the_end_of_a_call_keeps_its_begin(self, store: Store) -> None:
        await put(store)
        claim, began = await take_one(store), await store.now()
        for progress in (Progress.DONE, Progress.DONE):  # said again, after a lost answer
            await store.steps.write(claim, effect(Progress.BEGUN, 0, intent=True))
            await self.advance(store, 5)
            await store.steps.write(claim, effect(progress, 1))
            calls, at = await calls_of(store, claim)
            assert calls == 1
            assert near(at, began)

    async def test_a_refused_intent_leaves_the_call_before_it(self, store: Store) -> None:
        await put(store)
        claim, began = await take_one(store), await store.now()
        await store.steps.write(claim, effect(Progress.BEGUN, 0, intent=True))
        await self.advance(store, 5)
        await store.steps.write(claim, effect(Progress.FAILED, 1))
        await store.steps.write(claim, effect(Progress.BEGUN, 1, intent=True))
        await self.advance(store, 5)
        await store.steps.write(claim, effect(Progress.FAILED, 1))
        calls, at = await calls_of(store, claim)
        assert calls == 1
        assert near(at, began)

    async def test_a_refused_first_intent_is_no_call(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await store.steps.write(claim, effect(Progress.BEGUN, 0, intent=True))
        await store.steps.write(claim, effect(Progress.FAILED, 0))
        assert await calls_of(store, claim) == (0, None)

    async def test_a_later_run_adds_to_what_it_has_read(self, store: Store) -> None:
        """It died in its call: whether that was made, nobody knows, so it counts."""
        await put(store)
        claim = await take_one(store)
        await store.steps.write(claim, effect(Progress.BEGUN, 0, intent=True))
        await end(store, claim, Retry())
        await self.advance(store, 5)
        later, began = await take_one(store), await store.now()
        calls, _ = await calls_of(store, later)
        await store.steps.write(later, effect(Progress.BEGUN, calls, intent=True))
        await self.advance(store, 5)
        await store.steps.write(later, effect(Progress.DONE, calls + 1))
        calls, at = await calls_of(store, later)
        assert calls == 2
        assert near(at, began)

    async def test_what_says_nothing_of_calls_changes_none(self, store: Store) -> None:
        await put(store)
        claim, began = await take_one(store), await store.now()
        await store.steps.write(claim, effect(Progress.BEGUN, 0, intent=True))
        await store.steps.write(claim, effect(Progress.DONE, 1))
        await self.advance(store, 5)
        await store.steps.write(claim, effect(Progress.ASIDE, 0))
        calls, at = await calls_of(store, claim)
        assert calls == 1
        assert near(at, began)

    async def test_a_step_without_an_intent_says_how_long_it_took(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await self.advance(store, 60)
        await store.steps.write(claim, Step(name="upload", number=0, calls=3, took=7.5))
        [found] = await store.steps.load(claim.job_id, 0)
        assert found.calls == 3
        assert near(found.begun_at, found.at - 7.5)
