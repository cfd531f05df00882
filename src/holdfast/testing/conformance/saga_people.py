"""What people decide about sagas: to have one undone, to let it go on, to say what became of a step."""

from __future__ import annotations

from holdfast.kernel.outcomes import Done
from holdfast.store.ports import Store
from holdfast.store.saga_records import (
    Move,
    Rest,
    SagaState,
    Wait,
    Written,
)
from holdfast.store.states import Held
from holdfast.store.steps import Progress
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import (
    READY,
    end,
    held,
    take_one,
)
from holdfast.testing.conformance.saga_kit import (
    DAY,
    DONE,
    STUCK,
    UNDOING,
    UNDONE,
    WAITING,
    begun,
    saga,
    started,
    state_and_job,
    step,
)


class SagaPeopleConformance(Conformance):
    async def test_who_wants_it_undone_is_heard_with_the_next_write(self, store: Store) -> None:
        claim = await started(store, "a")
        answer = await store.sagas.cancel("a", actor="ada", reason="too dear")
        assert (answer.outcome, answer.state) == ("accepted", SagaState.RUNNING)
        assert await store.sagas.write(claim, step=step("pay")) == Written(True, False, "too dear")
        assert await store.sagas.write(claim, move=DONE) == Written(True, False, "too dear")
        assert (await saga(store, "a")).asked == "too dear"
        [entry] = await store.audit.find(subject="saga:a")
        assert (entry.actor, entry.action) == ("ada", "saga.cancel")

    async def test_an_endless_reason_is_cut_wherever_it_is_kept(self, store: Store) -> None:
        await started(store, "a")
        await store.sagas.cancel("a", actor="ada", reason="no " * 1_000_000)
        [entry] = await store.audit.find(subject="saga:a")
        assert len((await saga(store, "a")).asked or "") < 10_000
        assert len(entry.after or "") < 10_000

    async def test_who_wants_it_undone_wakes_it(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        await store.sagas.cancel("a", actor="ada", reason="no")
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)

    async def test_one_that_is_wanted_undone_does_not_rest(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.cancel("a", actor="ada", reason="no")
        await store.sagas.write(claim, move=WAITING, rest=Rest(DAY))
        assert (await state_and_job(store, "a"))[1] == READY
        again = await take_one(store)
        await store.sagas.write(again, move=UNDOING, rest=Rest(DAY))
        assert await state_and_job(store, "a") == (SagaState.COMPENSATING, held(Held.TIME))

    async def test_a_saga_past_its_pivot_is_not_cancelled(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=Move(state=SagaState.RUNNING, pivot="charge"))
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "too_late"
        assert (await store.sagas.write(claim, move=DONE)) == Written(True, True, None)
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "over"
        assert (await store.sagas.cancel("b", actor="ada", reason="no")).outcome == "missing"

    async def test_one_that_is_being_undone_is_not_cancelled_again(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=UNDOING)
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "undoing"

    async def test_one_that_is_done_can_be_undone_while_its_steps_are_kept(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, step=step("pay", result="5"))
        await store.sagas.write(claim, move=DONE)
        assert await end(store, claim, Done("1"))
        assert (await store.sagas.cancel("a", actor="ada", reason="no")).outcome == "over"
        answer = await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)
        assert (answer.outcome, answer.state) == ("accepted", SagaState.COMPENSATING)
        record = await saga(store, "a")
        assert (record.undoing, record.error, record.finished_at, record.result) == (True, "no", None, None)
        again = await take_one(store)
        assert (again.job_id, again.has_steps, again.token > claim.token) == (claim.job_id, True, True)
        [kept] = await store.steps.load(again.job_id, again.generation)
        assert kept.result == "5"
        assert await store.sagas.write(again, move=UNDONE) == Written(True, True, None)
        assert await end(store, again)
        assert (await store.sagas.cancel("a", actor="ada", reason="no", done_too=True)).outcome == "over"

    async def test_a_person_lets_a_stuck_saga_go_on(self, store: Store) -> None:
        claim = await started(store, "a")
        assert (await store.sagas.retry("a", actor="ada")).outcome == "not_stuck"
        await store.sagas.write(claim, step=begun("pay", tries=3), move=STUCK, rest=Rest())
        answer = await store.sagas.retry("a", actor="ada")
        assert (answer.outcome, answer.state) == ("accepted", SagaState.RUNNING)
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)
        [kept] = await store.steps.load(claim.job_id, 0)
        assert kept.tries == 0
        assert [entry.action for entry in await store.audit.find(subject="saga:a")] == ["saga.retry"]

    async def test_a_stuck_undo_goes_on_as_an_undo(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, move=UNDOING)
        await store.sagas.write(claim, move=STUCK, rest=Rest())
        assert (await store.sagas.retry("a", actor="ada")).state is SagaState.COMPENSATING

    async def test_a_person_says_what_became_of_a_step(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.write(claim, step=step("book", 0, result="1"))
        await store.sagas.write(claim, step=begun("pay", 1))
        await store.sagas.write(claim, step=step("undo/book", 2, Progress.FAILED), move=STUCK, rest=Rest())
        wrong = await store.sagas.settle("a", "book", done=True, actor="ada")
        assert (wrong.outcome, wrong.steps) == ("no_such_step", ("pay", "undo/book"))
        answer = await store.sagas.settle("a", "pay", done=True, result="9", actor="ada")
        assert (answer.outcome, answer.state, answer.steps) == ("accepted", SagaState.RUNNING, ("undo/book",))
        kept = {each.name: (each.progress, each.result) for each in await store.steps.load(claim.job_id, 0)}
        assert kept["pay"] == (Progress.RESOLVED, "9")
        assert await state_and_job(store, "a") == (SagaState.RUNNING, READY)
        [entry] = await store.audit.find(subject="saga:a")
        assert (entry.action, entry.after) == (
            "saga.settle",
            '{"step":"pay","decision":"done","result":"9"}',
        )

    async def test_a_stuck_saga_keeps_signals_and_stays(self, store: Store) -> None:
        claim = await started(store, "a")
        await store.sagas.listen(claim, begun("w"), Wait(kind="signal", name="go"))
        await store.sagas.write(claim, move=STUCK, rest=Rest())
        await store.sagas.signal("a", "go")
        assert await state_and_job(store, "a") == (SagaState.NEEDS_OPERATOR, held(Held.WAITING))
