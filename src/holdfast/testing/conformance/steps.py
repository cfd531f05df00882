"""Steps and effects: kept under the token of the run, read by later ones, decided by a person when nobody knows."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.errors import CommitUnknown, PayloadError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Retry, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Resolved, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    Rollback,
    end,
    held,
    put,
    raises,
    state_of,
    take_one,
    take_suspect,
    the,
)

DAY = 86_400.0


def step(name: str, number: int = 0, **options: Any) -> Step:
    return Step(name=name, number=number, **options)


def effect(name: str, progress: Progress, number: int = 0, **options: Any) -> Step:
    return Step(name=name, number=number, kind=Kind.AT_MOST_ONCE, progress=progress, **options)


async def known(store: Store, claim: Claim) -> dict[str, tuple[Progress, str | None]]:
    found = await store.steps.load(claim.job_id, claim.generation)
    return {each.name: (each.progress, each.result) for each in found}


async def unknown(store: Store, *names: str, **options: Any) -> Claim:
    """A job that is unknown because of these effects."""
    await put(store, **options)
    await store.holds.promote()
    claim = await take_one(store)
    for number, name in enumerate(names):
        assert await store.steps.write(claim, effect(name, Progress.UNKNOWN, number))
    assert await end(store, claim, Unknown("who knows"))
    return claim


class StepsConformance(Conformance):
    async def test_what_is_written_is_read_by_the_next_attempt(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        assert await store.steps.load(claim.job_id, 0) == []
        assert await store.steps.write(claim, step("b", 1, result='"ü"', branch="a"))
        assert await store.steps.write(claim, effect("a", Progress.BEGUN, 0, fingerprint="f"))
        await end(store, claim, Retry())
        first, second = await store.steps.load(claim.job_id, 0)
        assert (first.name, first.number, first.kind, first.progress) == (
            "a",
            0,
            Kind.AT_MOST_ONCE,
            Progress.BEGUN,
        )
        assert (first.fingerprint, first.branch, first.result, first.token) == ("f", "", None, claim.token)
        assert (second.name, second.progress, second.result, second.branch) == (
            "b",
            Progress.DONE,
            '"ü"',
            "a",
        )
        assert first.first_at == first.at <= first.now

    async def test_a_later_word_takes_the_place_of_the_earlier(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await store.steps.write(claim, effect("a", Progress.BEGUN))
        [begun] = await store.steps.load(claim.job_id, 0)
        await self.advance(store, 7)
        await store.steps.write(claim, effect("a", Progress.FAILED))
        await store.steps.write(claim, effect("a", Progress.BEGUN, 0, fingerprint="other"))
        [again] = await store.steps.load(claim.job_id, 0)
        assert (again.progress, again.fingerprint, again.first_at) == (
            Progress.BEGUN,
            "other",
            begun.first_at,
        )
        assert again.at >= begun.at + 7

    async def test_what_is_done_stays(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await store.steps.write(claim, step("a", result="1"))
        await end(store, claim, Retry())
        later = await take_one(store)
        assert not await store.steps.write(later, step("a", result="2"))
        assert not await store.steps.write(later, effect("a", Progress.BEGUN))
        assert await known(store, later) == {"a": (Progress.DONE, "1")}

    async def test_what_comes_late_of_the_same_run_does_not_undo_it(self, store: Store) -> None:
        """Such as the word about an earlier call, by a connection that was silent."""
        await put(store)
        claim = await take_one(store)
        done = effect("a", Progress.DONE, 0, result="1")
        for each in (
            effect("a", Progress.BEGUN),
            effect("a", Progress.FAILED),
            effect("a", Progress.BEGUN),
            done,
        ):
            assert await store.steps.write(claim, each)
        for late in (Progress.BEGUN, Progress.FAILED, Progress.UNKNOWN, Progress.HANDLED):
            assert not await store.steps.write(claim, effect("a", late))
        assert await store.steps.write(claim, done)
        assert await known(store, claim) == {"a": (Progress.DONE, "1")}

    async def test_what_is_done_may_be_put_aside_and_keeps_its_result(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        await store.steps.write(claim, step("a", result="1"))
        await end(store, claim, Retry())
        later = await take_one(store)
        assert await store.steps.write(later, effect("a", Progress.ASIDE))
        assert await known(store, later) == {"a": (Progress.ASIDE, "1")}

    async def test_nothing_is_accepted_of_whom_lost_the_claim(self, store: Store) -> None:
        await put(store)
        lost = await take_one(store)
        await self.advance(store, LEASE)
        await store.claims.rescue()
        assert not await store.steps.write(lost, step("a"))
        holder = await take_suspect(store)
        assert not await store.steps.write(lost, step("a"))
        assert await store.steps.write(holder, step("b"))
        await end(store, holder)
        for claim in (lost, holder):
            assert not await store.steps.write(claim, step("c"))
        assert await known(store, holder) == {"b": (Progress.DONE, None)}

    async def test_a_claim_of_another_store_is_refused(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        assert not await store.steps.write(msgspec.structs.replace(claim, job_id=new_id()), step("a"))
        assert await known(store, claim) == {}

    async def test_many_at_once_and_one_of_them_lost(self, store: Store) -> None:
        for _ in range(10):
            await put(store)
        claims = [await take_one(store) for _ in range(10)]
        await end(store, claims[3])
        answers = await asyncio.gather(
            *(
                store.steps.write(claim, step(name, place))
                for claim in claims
                for place, name in enumerate("ab")
            )
        )
        assert answers == [claim is not claims[3] for claim in claims for _ in "ab"]
        for claim in claims:
            assert len(await known(store, claim)) == (0 if claim is claims[3] else 2)

    async def test_a_write_whose_answer_was_lost_was_accepted(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        seen: list[str] = []

        def lose(point: str) -> None:
            seen.append(point)
            if len(seen) == 1:
                raise CommitUnknown("the answer was lost")

        with armed("store.after_commit", lose):
            assert await store.steps.write(claim, step("a", result="1"))
        assert seen
        assert await known(store, claim) == {"a": (Progress.DONE, "1")}

    async def test_an_edited_replay_begins_with_nothing_and_a_plain_one_goes_on(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.steps.write(claim, step("a", result="1"))
        await end(store, claim, Dead("x"))
        await store.dead.replay([job_id], actor="ada")
        again = await take_one(store)
        assert await known(store, again) == {"a": (Progress.DONE, "1")}
        await end(store, again, Dead("x"))
        await store.dead.replay([job_id], actor="ada", args='{"n":1}')
        edited = await take_one(store)
        assert await known(store, edited) == {}
        assert await store.steps.write(edited, step("a", result="2"))
        assert [each.result for each in await store.steps.load(job_id, 0)] == ["1"]

    async def test_steps_are_kept_with_their_job_and_forgotten_after_it(self, store: Store) -> None:
        claims = []
        for _ in range(2):
            await put(store)
            claims.append(await take_one(store))
            await store.steps.write(claims[-1], step("a"))
        over, lives = claims
        await end(store, over)
        await store.history.prune(keep=DAY)
        assert await known(store, over)
        await self.advance(store, 3 * DAY)
        assert (await store.history.prune(keep=DAY)).jobs == 1
        assert not await known(store, over)
        assert await known(store, lives)

    async def test_bad_input_is_refused(self, store: Store) -> None:
        await put(store)
        claim = await take_one(store)
        with raises(UsageError, "step"):
            step("")
        with raises(UsageError, "Kind"):
            step("a", kind="often")
        with raises(UsageError, "20001"):
            step("a", 20_001)
        with raises(PayloadError, "result"):
            step("a", result="x" * (256 * 1024 + 1))
        with raises(UsageError, "Step"):
            await store.steps.write(claim, {"name": "a"})  # type: ignore[arg-type]
        with raises(UsageError, "UUID"):
            await store.steps.load("a", 0)
        with raises(UsageError, "done is True or False"):
            await store.steps.resolve(claim.job_id, actor="ada", done="yes")  # type: ignore[arg-type]
        assert await known(store, claim) == {}


class UnknownConformance(Conformance):
    async def test_an_effect_that_was_done_is_never_done_again(self, store: Store) -> None:
        claim = await unknown(store, "publish")
        answer = await store.steps.resolve(claim.job_id, actor="ada", done=True, result='{"id":7}')
        assert answer == Resolved(claim.job_id, "queued")
        assert await state_of(store, claim.job_id) == READY
        later = await take_one(store)
        assert (later.attempt, later.generation) == (1, 0)
        assert await known(store, later) == {"publish": (Progress.RESOLVED, '{"id":7}')}

    async def test_one_that_was_not_done_may_be_begun_again(self, store: Store) -> None:
        claim = await unknown(store, "publish")
        assert (await store.steps.resolve(claim.job_id, actor="ada", done=False)).outcome == "queued"
        later = await take_one(store)
        assert await known(store, later) == {"publish": (Progress.FAILED, None)}
        assert await store.steps.write(later, effect("publish", Progress.BEGUN))

    async def test_a_decision_is_part_of_the_callers_transaction(self, store: Store) -> None:
        claim = await unknown(store, "publish")
        with suppress(Rollback):
            async with store.transaction() as tx:
                answer = await store.steps.resolve(claim.job_id, actor="ada", done=True, result="1", tx=tx)
                assert answer == Resolved(claim.job_id, "queued")
                raise Rollback
        assert (await the(store, claim.job_id)).state is State.UNKNOWN
        assert await store.audit.find(subject=claim.job_id) == []
        async with store.transaction() as tx:
            await store.steps.resolve(claim.job_id, actor="ada", done=True, result="1", tx=tx)
        assert await known(store, await take_one(store)) == {"publish": (Progress.RESOLVED, "1")}
        assert [entry.actor for entry in await store.audit.find(subject=claim.job_id)] == ["ada"]

    async def test_it_stays_unknown_while_another_effect_is(self, store: Store) -> None:
        claim = await unknown(store, "publish", "mail")
        assert await store.steps.resolve(claim.job_id, actor="ada", done=False) == Resolved(
            claim.job_id, "say_which", ("publish", "mail")
        )
        assert await store.steps.resolve(
            claim.job_id, actor="ada", done=True, effect="mail", result="1"
        ) == Resolved(claim.job_id, "still_unknown", ("publish",))
        assert (await the(store, claim.job_id)).state is State.UNKNOWN
        answer = await store.steps.resolve(claim.job_id, actor="ada", done=True, effect="mail")
        assert answer == Resolved(claim.job_id, "no_such_effect", ("publish",))
        assert (await store.steps.resolve(claim.job_id, actor="ada", done=False)).outcome == "queued"
        assert await known(store, claim) == {
            "publish": (Progress.FAILED, None),
            "mail": (Progress.RESOLVED, "1"),
        }

    async def test_a_listing_has_the_effects_of_many_jobs(self, store: Store) -> None:
        two, many = await unknown(store, "b", "a"), await unknown(store, *(f"e{n}" for n in range(25)))
        none = await unknown(store)
        assert await store.steps.undecided([]) == []
        found = await store.steps.undecided([many.job_id, none.job_id, two.job_id, new_id()])
        assert [(each.job_id, each.name) for each in found] == [
            *((many.job_id, f"e{n}") for n in range(20)),
            (two.job_id, "b"),
            (two.job_id, "a"),
        ]
        assert all(each.first_at <= each.at for each in found)
        await store.steps.resolve(two.job_id, actor="ada", done=False, effect="b")
        assert [each.name for each in await store.steps.undecided([two.job_id])] == ["a"]

    async def test_what_is_not_unknown_is_left_alone(self, store: Store) -> None:
        job_id = await put(store)
        for wanted in (job_id, new_id()):
            assert (await store.steps.resolve(wanted, actor="ada", done=False)).outcome == "not_unknown"
        assert await state_of(store, job_id) == READY
        assert await store.audit.find(subject=job_id) == []

    async def test_a_job_that_is_unknown_without_an_effect_can_only_be_tried_again(
        self, store: Store
    ) -> None:
        claim = await unknown(store)
        assert (await store.steps.resolve(claim.job_id, actor="ada", done=True)).outcome == "no_such_effect"
        assert (await store.steps.resolve(claim.job_id, actor="ada", done=False)).outcome == "queued"

    async def test_every_decision_is_audited(self, store: Store) -> None:
        claim = await unknown(store, "publish")
        await store.steps.resolve(claim.job_id, actor="ada", done=True, result="1")
        [entry] = await store.audit.find(subject=claim.job_id)
        assert (entry.actor, entry.action) == ("ada", "unknown.resolve")
        assert msgspec.json.decode(entry.after or "") == {
            "decision": "done",
            "effect": "publish",
            "result": "1",
        }

    async def test_the_audit_keeps_no_secret_of_the_job(self, store: Store) -> None:
        """However it is written in the result, and also where a long one is cut off."""
        hidden = 'ä"/sk_live_0123456789'
        args = msgspec.json.encode({"token": hidden, "$secret": ["token"]}).decode()
        plain = json.dumps({"echo": hidden})
        for result in (
            plain,
            json.dumps(["x" * 985, hidden]),
            plain.replace("/", "\\/"),
            "not JSON: " + hidden,
        ):
            claim = await unknown(store, "publish", args=args)
            await store.steps.resolve(claim.job_id, actor="ada", done=True, result=result)
            [entry] = await store.audit.find(subject=claim.job_id)
            assert "sk_live" not in (entry.after or "")
            assert (await known(store, claim))["publish"][1] == result, "the task gets it as it is"
            await store.jobs.cancel(claim.job_id, "enough")

    async def test_it_has_kept_its_keys_and_goes_on_with_them(self, store: Store) -> None:
        claim = await unknown(store, "publish", unique="u", ordered="o", concurrency="c", concurrency_limit=1)
        behind = await put(store, ordered="o")
        await store.holds.promote()
        assert await state_of(store, behind) == held(Held.ORDERING)
        assert (await put(store, unique="u")) == claim.job_id
        await store.steps.resolve(claim.job_id, actor="ada", done=False)
        await store.holds.promote()
        assert await state_of(store, claim.job_id) == READY
        later = await take_one(store)
        assert later.job_id == claim.job_id
        assert await end(store, later)
        assert await state_of(store, behind) == READY

    async def test_two_who_decide_at_once(self, store: Store) -> None:
        claim = await unknown(store, "publish")
        answers = await asyncio.gather(
            *(store.steps.resolve(claim.job_id, actor="ada", done=done) for done in (True, False, True))
        )
        assert sorted(answer.outcome for answer in answers) == ["not_unknown", "not_unknown", "queued"]
        assert len(await store.audit.find(subject=claim.job_id)) == 1
