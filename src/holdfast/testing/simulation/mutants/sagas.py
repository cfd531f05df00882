"""Bugs in sagas: what is undone too late, too early or not at all, decided apart, or slept through."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from msgspec.structs import replace as changed

from holdfast.jobs.effects import Effect
from holdfast.kernel.clock import sleep
from holdfast.sagas.carrier import Carrier
from holdfast.sagas.children import Children
from holdfast.sagas.log import SagaLog
from holdfast.sagas.pivots import Pivots, Verdict
from holdfast.sagas.plans import Plan
from holdfast.sagas.stepping import SagaEffect
from holdfast.sagas.undoing import Undoing
from holdfast.store.records import Claim
from holdfast.store.saga_records import Heard, Move, NewSaga, StartedSaga, Wait, Written
from holdfast.store.saga_verdicts import UNDO
from holdfast.store.sqlite import saga_waits, sagas
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.store.steps import OPEN, Progress, Step, StepRecord
from holdfast.testing.simulation.mutants.planting import beside, mutant, replace, rewrite

of_sagas = partial(mutant, kind="sagas")


# --- forward ---


@of_sagas("an undo after its call")
def _an_undo_after_its_call(stack: ExitStack) -> None:
    """how a step is undone is stored when it has been done"""

    async def done(self: SagaEffect, result: Any, *, found: bool = False) -> Any:
        self._place.plan = self._plan.text()
        return await Effect._done(self, result, found=found)

    replace(stack, SagaEffect, "_take", Effect._take)
    replace(stack, SagaEffect, "_done", done)


@of_sagas("a decision after its step")
def _a_decision_after_its_step(stack: ExitStack) -> None:
    """that a step has failed is one commit, and that its saga is undone for that the next"""
    original = SagaLog.move

    async def move(self: SagaLog, move: Move, *, step: Step | None = None, **how: Any) -> Written:
        if step is not None and move.undoing:
            await self.keep(step)
            step = None
        return await original(self, move, step=step, **how)

    replace(stack, SagaLog, "move", move)


@of_sagas("a decision is forgotten")
def _a_decision_is_forgotten(stack: ExitStack) -> None:
    """a saga that is being undone goes forward when another process takes it over"""
    original = Carrier.run

    async def run(self: Carrier, arguments: Any) -> Any:
        self._log.record = changed(self._log.record, undoing=False)
        return await original(self, arguments)

    replace(stack, Carrier, "run", run)


@of_sagas("a pivot is forgotten")
def _a_pivot_is_forgotten(stack: ExitStack) -> None:
    """what fails after a pivot undoes what was done before it"""

    async def look(self: Pivots) -> Verdict:
        return Verdict.NOT_PASSED

    replace(stack, Pivots, "look", look)


@of_sagas("an unknown pivot was not passed")
def _an_unknown_pivot_was_not_passed(stack: ExitStack) -> None:
    """a pivot whose answer was lost is taken for not done"""
    original = Pivots._judge

    async def judge(self: Pivots, record: StepRecord) -> Verdict:
        return Verdict.NOT_PASSED if record.progress in OPEN else await original(self, record)

    replace(stack, Pivots, "_judge", judge)


@of_sagas("cancelled in its last moment")
def _cancelled_in_its_last_moment(stack: ExitStack) -> None:
    """a saga that was told in its last moment to be undone, and whose caller was told that it will be, is done"""
    rewrite(stack, ("(?2 <> 'done' OR asked IS NULL OR pivot IS NOT NULL)", "?2 = ?2"))


@of_sagas("a saga beside its transaction")
def _a_saga_beside_its_transaction(stack: ExitStack) -> None:
    """a saga is started although its caller's transaction is rolled back"""
    original = sagas.Sagas.start

    async def start(self: sagas.Sagas, new: list[NewSaga], *, tx: object | None = None) -> list[StartedSaga]:
        if isinstance(tx, SqliteTx):
            return await tx.run(beside(partial(sagas.start, sagas=new)))
        return await original(self, new, tx=tx)

    replace(stack, sagas.Sagas, "start", start)


@of_sagas("a saga without a fence")
def _a_saga_without_a_fence(stack: ExitStack) -> None:
    """a run that has lost its job writes of its saga, and of its steps"""
    rewrite(
        stack,
        ("WHERE r.seq = ? AND r.token = ? AND j.id = ?", "WHERE r.seq = ? AND ? IS NOT NULL AND j.id = ?"),
        ("WHERE r.seq = ?1 AND r.token = ?2 AND", "WHERE r.seq = ?1 AND ?2 IS NOT NULL AND"),
    )


# --- back ---


@of_sagas("the first is undone first")
def _the_first_is_undone_first(stack: ExitStack) -> None:
    """undos run in the order of the steps"""

    async def run(self: Undoing) -> None:
        records = await self._log.steps()
        self._number = max((each.number + 1 for each in records), default=0)
        undos = {each.name: each for each in records if each.name.startswith(UNDO)}
        for record in [each for each in records if each.name not in undos]:
            await self._step(record, undos.get(f"{UNDO}{record.name}"))

    replace(stack, Undoing, "run", run)


@of_sagas("what nobody knows is not undone")
def _what_nobody_knows_is_not_undone(stack: ExitStack) -> None:
    """a step whose answer was lost is taken for one that did nothing"""
    original = Undoing._known

    async def known(self: Undoing, record: StepRecord, plan: Plan) -> StepRecord:
        if record.progress in OPEN and plan.child is None:
            return changed(record, progress=Progress.FAILED)
        return await original(self, record, plan)

    replace(stack, Undoing, "_known", known)


@of_sagas("undone without an answer")
def _undone_without_an_answer(stack: ExitStack) -> None:
    """an unknown step that is undone by its result is undone without one, and nobody is asked"""

    async def known(self: Undoing, record: StepRecord, plan: Plan) -> StepRecord:
        return record

    replace(stack, Undoing, "_known", known)


@of_sagas("an undo is tried once")
def _an_undo_is_tried_once(stack: ExitStack) -> None:
    """an undo that fails is taken for done"""

    async def until_done(self: Undoing, step: Step, tries: int, call: Any) -> None:
        await self._log.keep(step)
        with suppress(Exception):
            await call.once()
        await self._log.keep(changed(step, progress=Progress.DONE))

    replace(stack, Undoing, "_until_done", until_done)


@of_sagas("an intent to undo is not kept")
def _an_intent_to_undo_is_not_kept(stack: ExitStack) -> None:
    """that a step is being undone is written when it is"""
    original = SagaLog.keep

    async def keep(self: SagaLog, step: Step) -> None:
        if not (step.name.startswith(UNDO) and step.progress is Progress.BEGUN):
            await original(self, step)

    replace(stack, SagaLog, "keep", keep)


# --- other sagas ---


@of_sagas("children are left alone")
def _children_are_left_alone(stack: ExitStack) -> None:
    """a saga is undone without those that it has started"""

    async def undo(self: Children, child: str, waited: StepRecord, step: Step) -> None:
        await self._log.keep(changed(step, progress=Progress.DONE))

    replace(stack, Children, "undo", undo)


@of_sagas("a parent does not wait")
def _a_parent_does_not_wait(stack: ExitStack) -> None:
    """a saga is undone while those that it has started still are"""

    async def undo(self: Children, child: str, waited: StepRecord, step: Step) -> None:
        await self._ask(child)
        await self._log.keep(changed(step, progress=Progress.DONE))

    replace(stack, Children, "undo", undo)


@of_sagas("the end of a child wakes nobody")
def _the_end_of_a_child_wakes_nobody(stack: ExitStack) -> None:
    """a saga that waits for another is not told of its end"""
    replace(stack, saga_waits, "waiting_for", lambda db, kind, name: [])


# --- waiting ---


@of_sagas("a waiter after the match")
def _a_waiter_after_the_match(stack: ExitStack) -> None:
    """that a saga waits is written after the look for what has come: what comes in between is slept through"""
    register = saga_waits._LISTEN

    async def listen(self: sagas.Sagas, claim: Claim, step: Step, wait: Wait) -> Heard | None:
        look = partial(saga_waits.listen, claim=claim, step=step, wait=wait, held=sagas._HELD)
        heard: Heard | None = await self._file.write(look, repeatable=True)
        if heard is None or heard.result is not None:
            return heard
        await sleep(0.3)
        await self._file.write(partial(_register, claim=claim, step=step, wait=wait), repeatable=True)
        return heard

    def _register(db: Db, claim: Claim, step: Step, wait: Wait) -> None:
        held = db.row(sagas._HELD, claim.row, claim.token, claim.job_id)
        if held is not None:
            db.run(register, held[0], step.name, wait.kind, wait.name, wait.key)

    nothing = "UPDATE holdfast_saga_wait SET step = step WHERE ? AND ? AND ? AND ? AND ? AND 0"
    replace(stack, saga_waits, "_LISTEN", nothing)
    replace(stack, sagas.Sagas, "listen", listen)


@of_sagas("what comes before a rest is slept through")
def _what_comes_before_a_rest_is_slept_through(stack: ExitStack) -> None:
    """what comes to a saga that looked in vain, and is about to rest, does not wake it"""
    rewrite(stack, ("SET woken = 1", "SET woken = 0"))


@of_sagas("only what is new is heard")
def _only_what_is_new_is_heard(stack: ExitStack) -> None:
    """events that came before a saga waited for them are not found"""
    rewrite(stack, ("seq > ?3 AND time", "seq > ?3 + 1 AND time"))


@of_sagas("an event is heard again")
def _an_event_is_heard_again(stack: ExitStack) -> None:
    """of two waits for the same, both get the first"""
    original = saga_waits._find_event
    replace(
        stack, saga_waits, "_find_event", lambda db, saga, wait: original(db, saga, changed(wait, after=0))
    )


@of_sagas("a signal for everyone")
def _a_signal_for_everyone(stack: ExitStack) -> None:
    """a signal that one wait has taken comes to the next one too"""
    rewrite(stack, ("(taken_by IS NULL OR taken_by = ?3)", "?3 IS NOT NULL"))


@of_sagas("the reader wakes nobody")
def _the_reader_wakes_nobody(stack: ExitStack) -> None:
    """events are read, and those who wait for them are not woken"""
    rewrite(stack, ("o.seq > s.event_seq AND", "o.seq > s.event_seq + 1e9 AND"))
