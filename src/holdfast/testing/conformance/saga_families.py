"""Sagas that start sagas: a child starts only under one that goes forward, and is kept as long as that may have to undo it."""

from __future__ import annotations

from holdfast.kernel.outcomes import Dead, Done
from holdfast.store.ports import Store
from holdfast.store.saga_records import Heard, Rest, SagaState, StartedSaga, Wait, Written
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import READY, end, take, take_one
from holdfast.testing.conformance.saga_kit import (
    DAY,
    DONE,
    UNDOING,
    UNDONE,
    WAITING,
    begun,
    new,
    saga,
    started,
    state_and_job,
    step,
)


class SagaFamiliesConformance(Conformance):
    async def test_a_child_starts_only_under_a_parent_that_goes_forward(self, store: Store) -> None:
        refused = StartedSaga("child", None, created=False)
        assert await store.sagas.start([new("child", parent="parent")]) == [refused]
        parent = await started(store, "parent")
        [child, other] = await store.sagas.start([new("early", parent="parent"), new("child", parent="no")])
        assert (child.created, other) == (True, refused)
        await store.sagas.write(parent, move=UNDOING)
        assert await store.sagas.start([new("child", parent="parent")]) == [refused]
        [again] = await store.sagas.start([new("early", parent="parent")])
        assert again == StartedSaga("early", child.job_id, created=False, name="trip.book")
        await store.sagas.write(parent, move=UNDONE)
        assert await store.sagas.start([new("child", parent="parent")]) == [refused]
        assert [claim.job_id for claim in await take(store)] == [child.job_id]

    async def test_who_waits_for_an_undo_is_not_content_with_a_done_saga(self, store: Store) -> None:
        parent = await started(store, "parent")
        await store.sagas.start([new("child", parent="parent")])
        child = await take_one(store)
        await store.sagas.write(child, move=DONE)
        await end(store, child, Done("1"))
        wait = Wait(kind="saga", name="child", undone=True)
        assert await store.sagas.listen(parent, begun("undo/w"), wait) == Heard(None)
        await store.sagas.cancel("child", actor="saga:parent", reason="no", done_too=True)
        await store.sagas.write(parent, move=WAITING, rest=Rest())
        back = await take_one(store)
        assert await store.sagas.write(back, move=UNDONE) == Written(True, True, None)
        assert await state_and_job(store, "parent") == (SagaState.RUNNING, READY)
        heard = await store.sagas.listen(await take_one(store), begun("undo/w"), wait)
        assert heard == Heard('{"state":"undone","error":"no","value":null}')

    async def test_one_that_is_done_is_undone_only_when_its_job_has_ended(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=DONE)
        answer = await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)
        assert (answer.outcome, answer.state) == ("ending", SagaState.DONE)
        assert (await saga(store, "a")).state is SagaState.DONE
        await end(store, claim, Done("1"))
        assert (await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)).outcome == "accepted"

    async def test_one_that_is_done_is_undone_although_its_job_died_of_it(self, store: Store) -> None:
        """Its workers were killed when it was over, and before its job knew."""
        claim = await started(store, "a")
        await store.sagas.write(claim, step=step("pay", result="5"))
        await store.sagas.write(claim, move=DONE)
        await end(store, claim, Dead("three workers died"))
        answer = await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)
        assert (answer.outcome, answer.state) == ("accepted", SagaState.COMPENSATING)
        again = await take_one(store)
        assert (again.job_id, again.attempt, again.interruptions) == (claim.job_id, 1, 0)
        [kept] = await store.steps.load(again.job_id, again.generation)
        assert kept.result == "5"
        assert await store.sagas.write(again, move=UNDONE) == Written(True, True, None)
        assert await end(store, again)

    async def test_a_child_is_kept_as_long_as_its_parent(self, store: Store) -> None:
        parent = await started(store, "parent")
        await store.sagas.start([new("child", parent="parent")])
        child = await take_one(store)
        await store.sagas.write(child, move=DONE)
        await self.advance(store, 2 * DAY)
        assert await store.sagas.prune(keep=DAY) == 0
        await store.sagas.write(parent, move=DONE)
        assert await store.sagas.prune(keep=DAY) == 0
        await self.advance(store, 2 * DAY)
        assert [await store.sagas.prune(keep=DAY) for _ in range(3)] == [1, 1, 0]
