"""Jobs that guards hold: which keys have any, some of each let go at once, and what would be refused held unclaimed."""

from __future__ import annotations

from holdfast.kernel.errors import UsageError
from holdfast.kernel.outcomes import Cancel, Dead, Retry, Snooze, Unknown
from holdfast.store.held_records import HeldFor
from holdfast.store.ports import Store
from holdfast.store.records import Gated
from holdfast.store.states import Held, State
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    LEASE,
    READY,
    end,
    held,
    ids,
    put,
    put_many,
    raises,
    state_of,
    take,
    take_one,
    the,
)

GATED = held(Held.GUARD)


async def gate(store: Store, number: int, guard: str) -> list[str]:
    """So many jobs that are held by this guard."""
    made = await put_many(store, number, guard=guard)
    await store.holds.hold(await take(store, 100), Held.GUARD)
    return made


class GatesConformance(Conformance):
    async def test_gates_are_listed_in_order_and_page_by_page(self, store: Store) -> None:
        assert await store.holds.gates() == []
        await put(store, guard="free")
        await store.holds.hold([await take_one(store)], Held.UNKNOWN_TASK)
        for guard in ("h", "g/b", "g/a"):
            await gate(store, 2, guard)
        assert await store.holds.gates() == ["g/a", "g/b", "h"]
        assert await store.holds.gates(limit=2) == ["g/a", "g/b"]
        assert await store.holds.gates(after="g/b", limit=2) == ["h"]

    async def test_so_many_of_each_key_are_let_go_the_oldest_first(self, store: Store) -> None:
        one = await gate(store, 3, "g/1")
        two = await gate(store, 1, "g/2")
        three = await gate(store, 2, "g/3")
        assert await store.holds.open_gates({}) == {}
        found = await store.holds.open_gates({"g/2": 5, "g/1": 2, "g/3": 0, "g/4": 1})
        assert found == {"g/1": 2, "g/2": 1, "g/3": 0, "g/4": 0}
        assert ids(await take(store, 10)) == [*one[:2], *two]
        assert [await state_of(store, job_id) for job_id in (one[2], *three)] == [GATED] * 3

    async def test_what_is_let_go_with_slots_or_a_tenant_is_looked_at_again(self, store: Store) -> None:
        for keys in ({"concurrency": "c", "concurrency_limit": 1}, {"tenant": "t"}):
            job_id = await put(store, guard="g", **keys)
            await store.holds.promote()
            await store.holds.hold([await take_one(store)], Held.GUARD)
            assert await store.holds.open_gates({"g": 1}) == {"g": 1}
            assert await state_of(store, job_id) == held(Held.ARRIVED)
            await store.holds.promote()
            await end(store, await take_one(store))

    async def test_what_would_be_refused_is_held_unclaimed_and_uncharged(self, store: Store) -> None:
        mine = await put_many(store, 3, guard="g/1")
        other, plain = await put(store, guard="g/2"), await put(store)
        elsewhere = await put(store, guard="g/1", queue="mail")
        assert await store.holds.shut_gates(["default"], keys=["g/1"]) == 3
        assert [await state_of(store, job_id) for job_id in mine] == [GATED] * 3
        assert [await state_of(store, job_id) for job_id in (other, plain, elsewhere)] == [READY] * 3
        assert await store.holds.shut_gates(["default"], keys=["g/1"]) == 0
        assert await store.holds.gates() == ["g/1"]
        assert await store.holds.open_gates({"g/1": 9}) == {"g/1": 3}
        claims = await take(store, 10)
        assert ids(claims) == [other, plain, *mine], "served after what was ready before"
        assert {claim.attempt for claim in claims} == {1}

    async def test_all_keys_of_a_guard_are_shut_by_their_tasks(self, store: Store) -> None:
        own = [await put(store, guard=guard, task="ask") for guard in ("g", "g/1", "g/b/2")]
        others = [
            await put(store, guard="g/b", task="tell"),  # of a guard that is called g/b
            await put(store, guard="gh", task="ask"),
            await put(store, guard="old", task="ask"),
            await put(store, task="ask"),
        ]
        assert await store.holds.shut_gates(["default"], guards=["g"]) == 0
        assert await store.holds.shut_gates(["default"], guards=["g"], tasks=["ask"]) == 3
        assert [await state_of(store, job_id) for job_id in own] == [GATED] * 3
        assert [await state_of(store, job_id) for job_id in others] == [READY] * 4
        assert await store.holds.shut_gates(["default", "mail"], guards=["g", "old"], tasks=["ask"]) == 1

    async def test_how_often_a_job_was_put_off_for_its_guard_is_told_until_it_begins_anew(
        self, store: Store
    ) -> None:
        job_id = await put(store, guard="g")
        outcomes: tuple[Snooze | Retry, ...] = (
            Snooze(counted=True), Snooze(guard="g", counted=True), Snooze(), Snooze(guard="g"), Retry(),
        )  # fmt: skip
        for outcome, before in zip(outcomes, (0, 1, 2, 2, 2), strict=True):
            claim = await take_one(store)
            assert (claim.put_offs, claim.attempt) == (before, 1)
            assert await end(store, claim, outcome)
            assert not await end(store, claim, Snooze(counted=True)), "its claim has ended"
            await store.holds.open_gates({"g": 1})
        await end(store, await take_one(store), Dead("enough"))
        await store.dead.replay([job_id], actor="ada")
        assert (await take_one(store)).put_offs == 0

    async def test_only_what_is_next_is_looked_at(self, store: Store) -> None:
        await put_many(store, 3)
        await put_many(store, 3, guard="g")
        urgent = await put(store, guard="g", priority=1)
        assert await store.holds.shut_gates(["default"], keys=["g"], limit=3) == 1
        assert await state_of(store, urgent) == GATED
        assert await store.holds.shut_gates(["default"], keys=["g"], limit=4) == 1

    async def test_who_has_a_turn_keeps_it_and_slots_are_left_alone(self, store: Store) -> None:
        first, second = await put_many(store, 2, guard="g", ordered="o")
        slotted = await put(store, guard="g", concurrency="c", concurrency_limit=1)
        await store.holds.promote()
        assert await store.holds.shut_gates(["default"], keys=["g"]) == 1
        assert await state_of(store, slotted) == READY
        await store.holds.repair()
        assert (await state_of(store, first), await state_of(store, second)) == (GATED, held(Held.ORDERING))
        await store.holds.open_gates({"g": 1})
        assert ids(await take(store, 10)) == [slotted, first]

    async def test_the_next_of_a_tenant_come_in_place_of_those_that_are_held(self, store: Store) -> None:
        made = await put_many(store, 5, guard="g", tenant="t")
        other = await put(store, tenant="t")
        await store.holds.promote(window=2)
        shut = [await store.holds.shut_gates(["default"], keys=["g"], window=2) for _ in range(4)]
        assert shut == [2, 2, 1, 0]
        assert ids(await take(store, 10)) == [other]
        assert [await state_of(store, job_id) for job_id in made] == [GATED] * 5

    async def test_what_runs_or_is_suspect_is_not_held(self, store: Store) -> None:
        await put(store, guard="g")
        claim = await take_one(store)
        assert await store.holds.shut_gates(["default"], keys=["g"]) == 0
        await self.advance(store, LEASE)
        assert len(await store.claims.rescue()) == 1
        assert await store.holds.shut_gates(["default"], keys=["g"]) == 0
        assert await state_of(store, claim.job_id) == READY

    async def test_too_many_keys_at_once_are_refused(self, store: Store) -> None:
        with raises(UsageError, "1,001 keys are too many"):
            await store.holds.open_gates({f"g/{number}": 1 for number in range(1001)})

    async def test_a_job_is_held_under_the_key_of_a_steps_guard(self, store: Store) -> None:
        """Whatever guard its task has. It is not charged, and keeps its turn."""
        for guard in ("own", None):
            job_id = await put(store, guard=guard, ordered="o", at=1.0)
            await store.holds.promote()
            assert await end(store, await take_one(store), Snooze(reason="refused", guard="api/user:7"))
            assert await state_of(store, job_id) == GATED
            assert (await the(store, job_id)).attempt == 0
            assert await store.holds.gated() == [Gated("api/user:7", 1)]
            assert await store.holds.gates() == ["api/user:7"]
            [shown] = await store.holds.explained([await the(store, job_id)])
            assert shown.held_by is not None
            assert (shown.held_by.reason, shown.held_by.name) == (HeldFor.GUARD, "api/user:7")
            assert await store.holds.promote() == 0, "no time lets it go"
            assert await store.holds.open_gates({"own": 1}) == {"own": 0}
            assert await store.holds.unhold(Held.GUARD, guard="own") == 0
            assert await store.holds.open_gates({"api/user:7": 1}) == {"api/user:7": 1}
            claim = await take_one(store)
            assert (claim.attempt, claim.guard) == (1, guard)
            await end(store, claim)

    async def test_the_key_of_a_step_is_that_of_one_refusal(self, store: Store) -> None:
        job_id = await put(store, guard="own")
        await end(store, await take_one(store), Snooze(guard="api"))
        assert await store.holds.unhold(Held.GUARD, guard="api") == 1
        assert await store.holds.hold([await take_one(store)], Held.GUARD) == [True]
        assert await store.holds.gates() == ["own"]
        await store.holds.open_gates({"own": 1})
        await end(store, await take_one(store), Snooze(lock="a lock"))
        assert await store.holds.shut_gates(["default"], keys=["own"]) == 1
        assert await store.holds.gates() == ["own"]
        await store.holds.open_gates({"own": 1})
        await end(store, await take_one(store), Snooze(guard="api"))
        assert await store.jobs.cancel(job_id, "no more") is State.CANCELLED
        assert await store.holds.gates() == []

    async def test_one_that_is_asked_to_stop_is_cancelled_instead(self, store: Store) -> None:
        job_id = await put(store)
        claim = await take_one(store)
        await store.jobs.cancel(job_id, "no more")
        assert await end(store, claim, Snooze(guard="api"))
        assert (await the(store, job_id)).state is State.CANCELLED

    async def test_a_job_that_a_person_has_decided_is_not_shut_out(self, store: Store) -> None:
        """Perhaps no call is left of it, and then it must not wait for one."""
        for guard, done, decided in (("own", True, True), ("own", False, False), (None, True, False)):
            job_id = await put(store, guard=guard)
            claim = await take_one(store)
            assert not claim.decided
            step = Step(name="a", number=0, kind=Kind.AT_MOST_ONCE, progress=Progress.UNKNOWN)
            await store.steps.write(claim, step)
            await end(store, claim, Unknown("who knows"))
            await store.steps.resolve(job_id, actor="ada", done=done)
            shut = await store.holds.shut_gates(["default"], keys=["own"])
            assert shut == int(guard is not None and not decided)
            await store.holds.unhold(Held.GUARD)
            claim = await take_one(store)
            assert claim.decided is decided
            await end(store, claim, Cancel("enough"))
