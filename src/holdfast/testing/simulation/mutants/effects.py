"""Bugs in steps and effects: what is done twice, what is guessed, and what is told too early or too late."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any

from holdfast.jobs import attempt as jobs_attempt
from holdfast.jobs.attempt import Attempt
from holdfast.jobs.calls import Call
from holdfast.jobs.effects import Effect, Found
from holdfast.jobs.job import Job
from holdfast.jobs.steps import Steps, run_step
from holdfast.kernel.awaits import Block
from holdfast.kernel.outcomes import Done
from holdfast.store.ports import Tx
from holdfast.store.records import Finish
from holdfast.store.sqlite import holds, moves
from holdfast.store.steps import Kind, Progress
from holdfast.testing.simulation.mutants.planting import mutant, replace, rewrite

of_bodies = partial(mutant, kind="worker")


@of_bodies("an intent after its call")
def _an_intent_after_its_call(stack: ExitStack) -> None:
    """that a call is made is written when it has been made"""
    original = Effect._done

    async def begin(self: Effect) -> None:
        self._in_doubt = False

    async def done(self: Effect, result: Any) -> Any:
        await self._write(Progress.BEGUN)
        return await original(self, result)

    replace(stack, Effect, "_begin", begin)
    replace(stack, Effect, "_done", done)


@mutant("a step without a fence")
def _a_step_without_a_fence(stack: ExitStack) -> None:
    """a run that has lost its job writes of its steps"""
    rewrite(stack, ("WHERE r.seq = ?1 AND r.token = ?2 AND", "WHERE r.seq = ?1 AND ?2 IS NOT NULL AND"))


@mutant("a result is written over")
def _a_result_is_written_over(stack: ExitStack) -> None:
    """what is done is not kept when a later run writes of it"""
    rewrite(stack, ("WHERE progress NOT IN ('done', 'resolved', 'aside') OR", "WHERE true OR"))


@of_bodies("not found is believed at once")
def _not_found_is_believed_at_once(stack: ExitStack) -> None:
    """an effect that is not found is called again although it may still appear"""

    async def not_found(self: Effect, why: str) -> None:
        await self._write(Progress.FAILED)

    replace(stack, Effect, "_not_found", not_found)


@of_bodies("a commit without its finish")
def _a_commit_without_its_finish(stack: ExitStack) -> None:
    """the success of job.commit is written after the task's rows, in a transaction of its own"""

    @asynccontextmanager
    async def commit(self: Attempt, result: Any, block: Block) -> AsyncIterator[Tx]:
        block.is_entered = True
        async with self._store.transaction() as tx:
            yield tx
        await self._store.claims.finish([Finish(self.claim, Done())])
        self.completed = True

    replace(stack, Attempt, "commit", commit)


@of_bodies("unknown is taken for failed")
def _unknown_is_taken_for_failed(stack: ExitStack) -> None:
    """a call of which nobody knows what became of it is made again"""

    async def looked_up(self: Effect, why: str) -> Found[Any] | None:
        await self._write(Progress.FAILED)
        return None

    replace(stack, Effect, "_looked_up", looked_up)


@of_bodies("a recorded step is run again")
def _a_recorded_step_is_run_again(stack: ExitStack) -> None:
    """nobody looks whether a step has a result"""

    async def run(steps: Steps, name: str, call: Call, *, branch: str | None = None) -> Any:
        async with steps.asked(name, Kind.STEP, branch=branch) as place:
            return await steps.done(place, call, await call.run())

    replace(stack, jobs_attempt, "run_step", run)


@of_bodies("a handled failure is tried again")
def _a_handled_failure_is_tried_again(stack: ExitStack) -> None:
    """what the task went on without is run in its next attempt"""

    async def run(steps: Steps, name: str, call: Call, *, branch: str | None = None) -> Any:
        await steps.load()
        record = steps.log.known.get(name)
        if record is None or record.progress is not Progress.HANDLED:
            return await run_step(steps, name, call, branch=branch)
        async with steps.asked(name, Kind.STEP, branch=branch) as place:
            return await steps.done(place, call, await call.run())

    replace(stack, jobs_attempt, "run_step", run)


@of_bodies("a key for each attempt")
def _a_key_for_each_attempt(stack: ExitStack) -> None:
    """the key of an effect is another one in the next run"""
    original = Job.key_for
    replace(stack, Job, "key_for", lambda self, name: f"{original(self, name)}{self.token}")


@of_bodies("refused counts for the calls before")
def _refused_counts_for_the_calls_before(stack: ExitStack) -> None:
    """a call that was refused makes an earlier one of unknown outcome failed too"""

    async def not_done(self: Effect) -> None:
        await self._write(Progress.FAILED)

    replace(stack, Effect, "_not_done", not_done)


@of_bodies("a task goes on without its effect")
def _a_task_goes_on_without_its_effect(stack: ExitStack) -> None:
    """a task that stops waiting for an effect succeeds, whatever became of that, and the store does not look either"""
    _the_store_does_not_look(stack)
    original = Steps.check_all_asked

    async def check_all_asked(self: Steps) -> None:
        self.log.open.clear()
        await original(self)

    replace(stack, Steps, "_leave", lambda self, place: None)
    replace(stack, Steps, "check_all_asked", check_all_asked)


@of_bodies("not handled yet is handled")
def _not_handled_yet_is_handled(stack: ExitStack) -> None:
    """a failure that ends the run stays kept as handled, because another step was asked for meanwhile"""

    async def reconsider(self: Steps, error: BaseException) -> None:
        return

    replace(stack, Steps, "reconsider", reconsider)


@of_bodies("dies with an open effect")
def _dies_with_an_open_effect(stack: ExitStack) -> None:
    """a job that has no attempts left is dead although nobody knows of an effect, and the store does not look either"""
    _the_store_does_not_look(stack)

    async def give_up(self: Attempt) -> list[str]:
        return []

    replace(stack, Attempt, "give_up", give_up)


@mutant("expiry ends what is open")
def _expiry_ends_what_is_open(stack: ExitStack) -> None:
    """a job that has waited for too long is cancelled although nobody knows of an effect"""
    replace(stack, holds, "expire_queued", lambda db, seq: moves._end_queued(db, seq, "expired"))


def _the_store_does_not_look(stack: ExitStack) -> None:
    """For mutants that it would hide: it ends jobs without a look at their effects."""
    rewrite(stack, ("j.steps_of IS NOT NULL AND j.steps_of = j.generation", "0"))
