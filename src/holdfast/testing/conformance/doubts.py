"""No job is over or dead by itself while nobody knows of an `at_most_once` effect: it is unknown, and a person looks."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.kernel.errors import StepLeft
from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze
from holdfast.store.ports import Store
from holdfast.store.records import AuditEntry, Claim, Finish, Rescue
from holdfast.store.states import Held, State
from holdfast.store.steps import OPEN, Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    end,
    held,
    put,
    raises,
    state_of,
    take,
    take_one,
    take_suspect,
    the,
)

DOUBT = "nobody knows whether effect 'publish' was done"
KEYS: list[dict[str, Any]] = [{}, {"ordered": "o", "unique": "u", "concurrency": "c", "concurrency_limit": 1}]


def effect(progress: Progress, name: str = "publish", number: int = 0, **options: Any) -> Step:
    options.setdefault("kind", Kind.AT_MOST_ONCE)
    return Step(name=name, number=number, progress=progress, **options)


# Of none of these a person must be asked.
HARMLESS = [
    effect(Progress.DONE),
    effect(Progress.FAILED),
    effect(Progress.HANDLED),
    effect(Progress.BEGUN, kind=Kind.AT_LEAST_ONCE),
    effect(Progress.BEGUN, kind=Kind.KEYED),
    effect(Progress.DONE, kind=Kind.STEP),
]


async def begun(store: Store, step: Step | None = None, **options: Any) -> Claim:
    """A running job that has begun to publish."""
    await put(store, **options)
    await store.holds.promote()
    claim = await take_one(store)
    assert await store.steps.write(claim, step or effect(Progress.BEGUN))
    return claim


async def strike(store: Store, claim: Claim, times: int = 3) -> Claim:
    """Interrupted, and then this often while it runs alone, but for the last time."""
    await store.claims.rescue_worker("w1")
    for left in range(times, 0, -1):
        await store.holds.promote()
        claim = await take_suspect(store)
        if left > 1:
            await store.claims.rescue_worker("w1")
    return claim


async def is_in_doubt(store: Store, claim: Claim, why: str) -> None:
    record = await the(store, claim.job_id)
    assert (record.state, record.reason) == (State.UNKNOWN, f"{why}, and {DOUBT}")
    assert await progress_of(store, claim) == {"publish": Progress.UNKNOWN}
    [found] = await store.jobs.find(state=State.UNKNOWN)
    assert found.id == claim.job_id


async def progress_of(store: Store, claim: Claim) -> dict[str, Progress]:
    return {each.name: each.progress for each in await store.steps.load(claim.job_id, claim.generation)}


class DoubtsConformance(Conformance):
    # --- strikes ---

    async def test_a_job_that_kills_its_workers_is_unknown(self, store: Store) -> None:
        why = "its worker died under it 3 times while it ran alone"
        for options in KEYS:
            for by_lease in (True, False):
                claim = await strike(store, await begun(store, **options))
                if by_lease:
                    await self.advance(store, LEASE + 1)
                    rescued = await store.claims.rescue()
                else:
                    rescued = await store.claims.rescue_worker("w1")
                assert rescued == [Rescue(claim.job_id, "w1", State.UNKNOWN, 4, "mail.send")]
                await is_in_doubt(store, claim, why)
                assert not await end(store, claim)
                answer = await store.steps.resolve(claim.job_id, actor="ada", done=True, result="1")
                assert answer.outcome == "queued"
                await store.holds.promote()
                again = await take_one(store)
                assert (again.job_id, again.has_steps) == (claim.job_id, True)
                assert await end(store, again)

    async def test_a_job_that_kills_its_workers_with_nothing_open_is_dead(self, store: Store) -> None:
        for step in HARMLESS:
            claim = await strike(store, await begun(store, step))
            [rescued] = await store.claims.rescue_worker("w1")
            assert (rescued.state, (await the(store, claim.job_id)).state) == (State.DEAD, State.DEAD)
            assert await progress_of(store, claim) == {"publish": step.progress}

    async def test_what_an_older_generation_began_is_no_doubt(self, store: Store) -> None:
        claim = await begun(store, effect(Progress.DONE))
        await end(store, claim, Dead("x"))
        await store.dead.replay([claim.job_id], actor="ada", args="{}")
        later = await take_one(store)
        assert not later.has_steps
        assert await end(store, later)
        assert (await the(store, claim.job_id)).state is State.SUCCEEDED

    async def test_a_rescue_in_a_transaction(self, store: Store) -> None:
        claim = await strike(store, await begun(store))
        async with store.transaction() as tx:
            [rescued] = await store.claims.rescue_worker("w1", tx=tx)
            await store.audit.write(AuditEntry(actor="a", action="told", subject=claim.job_id), tx=tx)
        assert rescued.state is State.UNKNOWN
        assert (await the(store, claim.job_id)).state is State.UNKNOWN

    async def test_it_keeps_its_turn_and_gives_back_its_slot(self, store: Store) -> None:
        claim = await strike(store, await begun(store, **KEYS[1]))
        behind = await put(store, ordered="o")
        beside = await put(store, concurrency="c", concurrency_limit=1)
        await store.holds.promote()
        assert await state_of(store, beside) == held(Held.CONCURRENCY)
        await store.claims.rescue_worker("w1")
        assert await state_of(store, beside) == READY
        assert await state_of(store, behind) == held(Held.ORDERING)
        assert await put(store, unique="u") == claim.job_id

    # --- expiry ---

    async def test_a_job_that_expires_after_it_has_begun_is_unknown(self, store: Store) -> None:
        for outcome in (Retry(after=60), Retry(), Snooze(after=60)):
            for options in KEYS:
                claim = await begun(store, expires=10, **options)
                assert await end(store, claim, outcome)
                await store.holds.promote()
                await self.advance(store, 11)
                assert await store.holds.expire() == 1
                await is_in_doubt(store, claim, "expired")
                assert await store.holds.expire() == 0
                await store.jobs.cancel(claim.job_id, "enough")

    async def test_one_that_expires_with_nothing_open_is_cancelled(self, store: Store) -> None:
        fresh = await put(store, expires=10, queue="other")
        claims = [await begun(store, step, expires=10) for step in HARMLESS]
        for claim in claims:
            await end(store, claim, Retry(after=60))
        await self.advance(store, 11)
        assert await store.holds.expire() == len(HARMLESS) + 1
        for job_id in (fresh, *(claim.job_id for claim in claims)):
            record = await the(store, job_id)
            assert (record.state, record.reason) == (State.CANCELLED, "expired")

    async def test_one_that_expires_keeps_its_turn_and_gives_back_its_slot(self, store: Store) -> None:
        claim = await begun(store, expires=10, **KEYS[1])
        behind = await put(store, ordered="o")
        beside = await put(store, concurrency="c", concurrency_limit=1)
        await end(store, claim, Retry())
        await store.holds.promote()
        await end(store, await take_one(store))  # whichever has the slot now
        await store.holds.promote()
        await self.advance(store, 11)
        assert await store.holds.expire() <= 1
        await store.holds.repair()
        states = {await state_of(store, claim.job_id), await state_of(store, beside)}
        assert held(Held.CONCURRENCY) not in states, "nobody waits for a slot that is free"
        if (await the(store, claim.job_id)).state is State.UNKNOWN:
            assert await state_of(store, behind) == held(Held.ORDERING)

    # --- the holder's word ---

    async def test_a_finish_while_nobody_knows_makes_it_unknown(self, store: Store) -> None:
        ends: list[tuple[Outcome, str]] = [(Done("1"), "its task has ended"), (Dead("boom."), "boom")]
        for options in KEYS:
            for progress in OPEN:
                for outcome, why in ends:
                    claim = await begun(store, effect(progress), **options)
                    assert await end(store, claim, outcome)
                    await is_in_doubt(store, claim, why)
                    assert await store.claims.settle(claim.job_id, claim.token)
                    assert (await the(store, claim.job_id)).result is None
                    assert not await end(store, claim, outcome)
                    await store.jobs.cancel(claim.job_id, "enough")

    async def test_a_finish_with_a_claim(self, store: Store) -> None:
        """Whoever is told None finishes it by itself."""
        for wants in ({}, {"default": 1}):
            for outcome in (Done(), Dead("x")):
                claim, sure = await begun(store), await begun(store, effect(Progress.DONE))
                plain = await begun(store, effect(Progress.DONE))
                await put(store)
                finishes = [Finish(claim, outcome), Finish(sure, outcome), Finish(plain, Done())]
                accepted, taken = await store.claims.finish_and_claim(
                    finishes, wants, lease=LEASE, worker="w1"
                )
                for item, ok in zip(finishes, accepted, strict=True):
                    assert ok is True or (ok is None and await end(store, item.claim, item.outcome))
                assert (await the(store, claim.job_id)).state is State.UNKNOWN
                expected = State.DEAD if isinstance(outcome, Dead) else State.SUCCEEDED
                assert (await the(store, sure.job_id)).state is expected
                assert (await the(store, plain.job_id)).state is State.SUCCEEDED
                for each in taken or await take(store):
                    assert await end(store, each)
                accepted, _ = await store.claims.finish_and_claim(finishes, {}, lease=LEASE, worker="w1")
                assert list(accepted) == [False] * 3

    async def test_many_at_once(self, store: Store) -> None:
        claims = [await begun(store, effect(Progress.DONE)) for _ in range(6)]
        for claim in claims[::2]:
            await store.steps.write(claim, effect(Progress.BEGUN, "mail", 1))
        assert await asyncio.gather(*(end(store, claim) for claim in claims)) == [True] * 6
        states = [(await the(store, claim.job_id)).state for claim in claims]
        assert states == [State.UNKNOWN, State.SUCCEEDED] * 3

    async def test_a_finish_with_rows_of_the_caller_is_refused(self, store: Store) -> None:
        for options in KEYS:
            for outcome in (Done(), Dead("x")):
                claim = await begun(store, **options)
                with raises(StepLeft, DOUBT, "roll back"):
                    async with store.transaction() as tx:
                        await store.audit.write(AuditEntry(actor="a", action="b", subject="s"), tx=tx)
                        await store.claims.finish([Finish(claim, outcome)], tx=tx)
                assert await store.audit.find(subject="s") == []
                assert (await the(store, claim.job_id)).state is State.RUNNING
                assert await progress_of(store, claim) == {"publish": Progress.BEGUN}
                await store.steps.write(claim, effect(Progress.DONE))
                async with store.transaction() as tx:
                    assert await store.claims.finish([Finish(claim, outcome)], tx=tx) == [True]
                expected = State.DEAD if isinstance(outcome, Dead) else State.SUCCEEDED
                assert (await the(store, claim.job_id)).state is expected

    async def test_an_intent_and_an_end_at_once(self, store: Store) -> None:
        """Whichever comes first: nothing that was accepted is forgotten."""
        for first in (effect(Progress.DONE, "upload"), None):
            for outcome in (Done(), Dead("x"), Done()):
                await put(store)
                claim = await take_one(store)
                if first is not None:
                    await store.steps.write(claim, first)
                intent = effect(Progress.BEGUN, "publish", 1)
                written, ended = await asyncio.gather(
                    store.steps.write(claim, intent), end(store, claim, outcome)
                )
                assert ended
                assert ((await the(store, claim.job_id)).state is State.UNKNOWN) == written

    # --- a person's word ---

    async def test_who_cancels_is_told_what_is_left_behind(self, store: Store) -> None:
        for options in KEYS:
            running = await begun(store, **options)
            assert await end(store, running, Cancel("gone"))
            await self._is_cancelled(store, running, "gone")
            asked = await begun(store, **options)
            await store.jobs.cancel(asked.job_id, "stop")
            assert await end(store, asked, Retry())
            await self._is_cancelled(store, asked, "stop")
            lost = await begun(store, **options)
            await store.jobs.cancel(lost.job_id, "stop")
            [rescued] = await store.claims.rescue_worker("w1")
            assert rescued.state is State.CANCELLED
            await self._is_cancelled(store, lost, "stop")
            waiting = await begun(store, **options)
            await end(store, waiting, Retry(after=60))
            assert await store.jobs.cancel(waiting.job_id, "enough") is State.CANCELLED
            await self._is_cancelled(store, waiting, "enough")
            unknown = await begun(store, **options)
            await end(store, unknown, Dead("x"))
            assert await store.jobs.cancel(unknown.job_id, "enough") is State.CANCELLED
            await self._is_cancelled(store, unknown, "enough")

    async def _is_cancelled(self, store: Store, claim: Claim, reason: str) -> None:
        record = await the(store, claim.job_id)
        assert (record.state, record.reason) == (State.CANCELLED, f"{reason} ({DOUBT})")
        assert await progress_of(store, claim) == {"publish": Progress.UNKNOWN}

    async def test_what_waits_for_a_person_is_left_behind_by_none_of_its_kind(self, store: Store) -> None:
        """Such as a keyed effect whose key is forgotten by now."""
        for kind in (Kind.KEYED, Kind.AT_LEAST_ONCE):
            dead = await begun(store, effect(Progress.UNKNOWN, kind=kind))
            assert await end(store, dead, Dead("x"))
            await is_in_doubt(store, dead, "x")
            assert await store.jobs.cancel(dead.job_id, "enough") is State.CANCELLED
            await self._is_cancelled(store, dead, "enough")
            late = await begun(store, effect(Progress.UNKNOWN, kind=kind), expires=10)
            await end(store, late, Retry(after=60))
            await self.advance(store, 11)
            assert await store.holds.expire() == 1
            await is_in_doubt(store, late, "expired")
            await store.jobs.cancel(late.job_id, "enough")

    async def test_of_many_effects_some_are_named(self, store: Store) -> None:
        claim = await begun(store)
        for number in range(1, 8):
            await store.steps.write(claim, effect(Progress.BEGUN, f"e{number}", number))
        await end(store, claim, Dead("x"))
        reason = (await the(store, claim.job_id)).reason
        assert (
            reason
            == "x, and nobody knows whether effects 'publish', 'e1', 'e2', 'e3', 'e4' and 3 more were done"
        )
        assert set((await progress_of(store, claim)).values()) == {Progress.UNKNOWN}

    # --- the claim says whether there are steps ---

    async def test_a_claim_says_whether_the_job_has_steps(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        assert not claim.has_steps
        await end(store, claim, Snooze())
        claim = await take_one(store)
        assert not claim.has_steps
        await store.steps.write(claim, effect(Progress.DONE))
        [seen] = await store.claims.held_by("w1")
        assert seen.has_steps
        await end(store, claim, Snooze())
        claim = await take_one(store)
        assert (claim.has_steps, claim.attempt) == (True, 1)
        await store.claims.release([claim])
        claim = await take_one(store)
        assert (claim.has_steps, claim.attempt) == (True, 1)
        await store.claims.rescue_worker("w1")
        claim = await take_suspect(store)
        assert claim.has_steps
        await end(store, claim, Dead("x"))
        await store.dead.replay([claim.job_id], actor="ada")
        claim = await take_one(store)
        assert (claim.has_steps, claim.attempt) == (True, 1)
        await end(store, claim, Dead("x"))
        await store.dead.replay([claim.job_id], actor="ada", args="{}")
        claim = await take_one(store)
        assert not claim.has_steps
        await store.steps.write(claim, effect(Progress.DONE))
        await end(store, claim, Retry())
        assert (await take_one(store)).has_steps
