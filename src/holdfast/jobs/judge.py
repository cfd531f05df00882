"""Says how a run has ended: by an exception, a stop or a death, and what is owed to its hooks and handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.blocking import Portal
from holdfast.jobs.control import Cancel, Control, EffectUnknown, Gated, Reject, Retry, Snooze, meant
from holdfast.jobs.counting import sent_apart
from holdfast.jobs.deferral import deferral
from holdfast.jobs.end_handlers import OnEnd
from holdfast.jobs.failures import describe
from holdfast.jobs.job import Job, attempt_of
from holdfast.jobs.patience import PAUSES, patiently
from holdfast.jobs.registry import Registry
from holdfast.jobs.run import Run, Stop
from holdfast.kernel import outcomes
from holdfast.kernel.awaits import to_the_end
from holdfast.kernel.clock import recover, timeout
from holdfast.kernel.errors import (
    TROUBLE,
    CommitUnknown,
    DeadlinePassed,
    LeaseLost,
    NeverAwaited,
    StepLeft,
    TransactionEnded,
)
from holdfast.kernel.failure import Failure
from holdfast.kernel.masking import secret_values
from holdfast.kernel.outcomes import Dead, Outcome
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.kernel.threads import Stopped
from holdfast.store.doubts import unsure
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish
from holdfast.store.states import State

LOCK_PATIENCE = 1.0  # seconds, about, until a job whose lock is held tries again
HANDLER_LIMIT = 10.0  # seconds for each on_dead handler


class Released:
    """It goes back as if it had not been claimed."""


class Unknown:
    """This worker cannot run it, and another may."""

    def __init__(self, why: str) -> None:
        self.why = why


class Settled:
    """Nothing is left to write."""


Ending: TypeAlias = Outcome | Released | Unknown | Settled
WRITES_NOTHING = (Released, Unknown, Settled)
RELEASED, SETTLED = Released(), Settled()


class Judge:
    def __init__(self, store: Store, registry: Registry, portal: Portal) -> None:
        self._store, self._registry, self._hooks, self._portal = store, registry, registry.hooks, portal

    async def ended_by(self, run: Run, error: BaseException) -> Ending:
        run.over = True
        if run.ending is not None and run.stop is not Stop.LOST:  # a hook has failed in a way of its own
            return run.ending
        if run.attempt is not None and run.attempt.completed:
            return await self._completed(run, error)
        if run.attempt is not None and run.stop is not Stop.LOST:
            await run.attempt.last_words()
        if run.stop is not None and _is_stop(error):
            if run.stop is not Stop.TIMEOUT:
                return await self.lost(run) if run.stop is Stop.LOST else await self.told(run, _stopped(run))
            assert run.task is not None
            error = TimeoutError(f"it took longer than its timeout of {run.task.declaration.timeout:g} s")
        if run.stop is Stop.LOST or (run.attempt is not None and run.attempt.lost):
            return await self.lost(run)
        return await self._judged(run, error)

    async def _completed(self, run: Run, error: BaseException) -> Ending:
        """Its success was written in a transaction of the task; whether that was committed, the store knows."""
        if not await self.is_settled(run):
            assert run.attempt is not None
            run.attempt.completed = False
            return await self.ended_by(run, error)
        told = _told(run.claim, error)
        note("job.failed_after_completion", job=run.claim.job_id, task=run.claim.task, error=told)
        return SETTLED

    async def is_settled(self, run: Run) -> bool:
        job_id, token = run.claim.job_id, run.claim.token
        settle = self._store.claims.settle
        return await patiently(lambda: settle(job_id, token), what="executor.cannot_settle", job=job_id)

    async def _judged(self, run: Run, error: BaseException) -> Ending:
        if run.attempt is not None and (steps := run.attempt.steps) is not None:
            steps.close()
            await steps.reconsider(error)
            error = steps.verdict or error
        error = meant(error)
        if isinstance(error, EffectUnknown):
            return await self._unknown(run, _told(run.claim, error), error.outcome.look)
        if isinstance(error, Gated) and error.guard is not None:
            self._registry.meet(error.guard)
        if (excused := _excused(run, error)) is not None:
            return await self.told(run, excused)
        await self._tell(run, "on_failed", error)
        assert run.task is not None
        retry, attempt = run.task.declaration.retry, run.claim.attempt
        if isinstance(error, Reject) or not retry.allows(attempt, error):
            return await self.dead(run, error)
        delay = error.outcome.after if isinstance(error, Retry) else retry.delay(attempt)
        await self._tell(run, "on_retried", error, delay)
        told = _told(run.claim, error)
        note(
            "job.failed", _failure(run.claim, error),
            job=run.claim.job_id, task=run.claim.task, queue=run.claim.queue,
            attempt=attempt, attempts=retry.attempts, after=delay, error=told,
        )  # fmt: skip
        return outcomes.Retry(after=delay, error=told)

    async def lost(self, run: Run) -> Ending:
        """If it is ours after all, because the renewer gave it up in time, it goes back at once: the token decides."""
        why = run.why_lost or "the store refused a write of it"
        note("job.lease_lost", job=run.claim.job_id, task=run.claim.task, token=run.claim.token, why=why)
        await self._tell(run, "on_lease_lost")
        return RELEASED

    async def _unknown(self, run: Run, why: str, look: float | None = None) -> Ending:
        outcome = outcomes.Unknown(why, look=look)
        note(
            "job.unknown",
            job=run.claim.job_id, task=run.claim.task, queue=run.claim.queue, attempt=run.claim.attempt,
            reason=outcome.reason,
        )  # fmt: skip
        await self._tell(run, "on_unknown", outcome.reason)
        return outcome

    async def told(self, run: Run, ending: Ending) -> Ending:
        """Noted, and heard by the hooks: it is cancelled, or put off."""
        match noted(run, ending):
            case outcomes.Cancel(reason=reason):
                await self._tell(run, "on_cancelled", reason)
            case outcomes.Snooze() as snooze:
                await self.tell_put_off(run, snooze)
        return ending

    async def tell_put_off(self, run: Run, snooze: outcomes.Snooze) -> None:
        after = None if snooze.guard is not None else snooze.after
        await self._tell(run, "on_put_off", snooze.reason or "", after)

    async def dead(self, run: Run, error: BaseException) -> Ending:
        """Its handlers write in the transaction that makes the job dead; without any, the next batch will do."""
        attempt = run.attempt or self._anew(run)
        if effects := await attempt.give_up():
            return await self._unknown(run, unsure(_told(run.claim, error), effects), attempt.look_after)
        run.over = True
        outcome = Dead(_told(run.claim, error))
        note(
            "job.died", _failure(run.claim, error),
            job=run.claim.job_id, task=run.claim.task, queue=run.claim.queue, attempt=run.claim.attempt,
            error=outcome.error,
        )  # fmt: skip
        ending: Ending = outcome
        if handlers := self._registry.on_end(State.DEAD, run.claim.task):
            try:
                ending = await self._die_together(run, outcome, handlers)
            except LeaseLost:
                return await self.lost(run)
            except StepLeft as left:  # an effect was begun meanwhile
                return await self._unknown(run, _told(run.claim, left))
            except Exception as failure:  # noqa: BLE001  the job is dead all the same, and a person hears of it
                told = _told(run.claim, failure)
                note("on_dead.failed", job=run.claim.job_id, task=run.claim.task, error=told)
        await self._tell(run, "on_dead", error)
        return ending

    async def _die_together(self, run: Run, outcome: Dead, handlers: Sequence[OnEnd]) -> Ending:
        """The death and what its handlers write. A store in trouble is asked again: that is no handler's failure.

        A transaction that was cut off is tried once more: it was the handler that took so long, or this process stood still.
        """
        job, was_cut_off = run.job or Job(self._anew(run)), False
        sent_apart(run, run.claim, outcome)
        attempt_of(job).reason = outcome.error
        for pause in (*PAUSES, None):
            try:
                async with self._store.transaction() as tx:
                    await self._store.claims.finish([Finish(run.claim, outcome)], tx=tx)
                    for handler in handlers:
                        async with timeout(HANDLER_LIMIT):
                            await to_the_end(handler(job, tx))
            except (*TROUBLE, TransactionEnded) as trouble:
                if isinstance(trouble, CommitUnknown) and await self._is_written(run):
                    return SETTLED
                if pause is None or (was_cut_off and isinstance(trouble, TransactionEnded)):
                    raise
                was_cut_off = isinstance(trouble, TransactionEnded)
                await recover(jittered(pause))
            else:
                return SETTLED
        raise AssertionError("the last try returns or raises")

    async def _is_written(self, run: Run) -> bool:
        try:
            return await self._store.claims.settle(run.claim.job_id, run.claim.token)
        except TROUBLE:
            return False  # then the next try finds its token gone

    def _anew(self, run: Run) -> Attempt:
        """Of a run whose body has not begun."""
        return Attempt(run.claim, self._store, self._portal, task=run.task)

    async def _tell(self, run: Run, hook: str, *details: Any) -> None:
        if self._hooks.heard(hook):
            job = run.job or Job(self._anew(run))
            await self._hooks.tell(hook, job, *details)


def _excused(run: Run, error: BaseException) -> Ending | None:
    """What is no failure of the job: it has said so, its guard has, or its time is over."""
    if isinstance(error, Cancel):
        return outcomes.Cancel(_told(run.claim, error))
    if isinstance(error, Snooze):
        return outcomes.Snooze(after=error.outcome.after, reason=_told(run.claim, error))
    if isinstance(error, Gated):
        return replace(error.outcome, reason=_told(run.claim, error))
    if (wait := deferral(run, error)) is not None:
        return outcomes.Snooze(
            after=wait.after, guard=wait.guard, reason=_told(run.claim, error), counted=wait.counted
        )
    if isinstance(error, DeadlinePassed) and run.time_left() == 0.0:
        return outcomes.Cancel("its deadline has passed")
    return None


def _is_stop(error: BaseException) -> bool:
    """Also of a group: its coroutines were stopped, each by itself, and nothing else has happened to them."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_stop, error.exceptions))
    return isinstance(error, asyncio.CancelledError | Stopped)


def _stopped(run: Run) -> Ending:
    """Stopped from outside, and not for its own fault."""
    match run.stop:
        case Stop.CANCELLED:
            return outcomes.Cancel(run.reason)
        case Stop.LOCK_LOST:
            return outcomes.Snooze(after=jittered(LOCK_PATIENCE, 0.5), reason="its lock was lost")
        case _:
            return RELEASED


def broken(run: Run, error: BaseException | None) -> Ending:
    """The last resort, without any help: tried again while it may be. If its success is written, the token refuses this."""
    told = f"its run was ended by {type(error).__name__}"
    if run.task is None or run.stop in (Stop.LOST, Stop.DRAIN):
        return RELEASED
    retry, attempt = run.task.declaration.retry, run.claim.attempt
    if attempt < retry.attempts:
        return outcomes.Retry(after=retry.delay(attempt), error=told)
    return Dead(told)


def noted(run: Run, ending: Ending) -> Ending:
    claim = run.claim
    match ending:
        case outcomes.Cancel(reason=reason):
            note(
                "job.cancelled",
                job=claim.job_id, task=claim.task, queue=claim.queue, attempt=claim.attempt, reason=reason,
            )  # fmt: skip
        case outcomes.Snooze(guard=str(guard)):
            note("job.gated", guards=[guard], jobs=1)
        case outcomes.Snooze(after=after, reason=reason):
            note(
                "job.snoozed",
                job=claim.job_id, task=claim.task, queue=claim.queue, attempt=claim.attempt, after=after, reason=reason,
            )  # fmt: skip
    return ending


def _failure(claim: Claim, error: BaseException) -> Failure | None:
    """Where it failed. What a task says on purpose is no failure of its code."""
    return None if isinstance(error, Control) else Failure(error, secret_values(claim.args))


def _told(claim: Claim, error: BaseException) -> str:
    """What a task has said, or where it failed; nothing of what is secret."""
    return describe(error, secret_values(claim.args), where=not isinstance(error, Control | NeverAwaited))
