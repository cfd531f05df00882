"""Runs one claimed job: decodes its arguments, calls the task, and says how the run ended."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import msgspec

from holdfast.jobs.blocking import Portal
from holdfast.jobs.child import run_in_child
from holdfast.jobs.control import Cancel, Control, EffectUnknown, Reject, Retry, Snooze
from holdfast.jobs.failures import describe
from holdfast.jobs.job import Job
from holdfast.jobs.patience import PAUSES, patiently
from holdfast.jobs.registry import OnDead, Registry
from holdfast.jobs.run import Run, Stop
from holdfast.jobs.signature import NewerArguments
from holdfast.jobs.task import Task
from holdfast.kernel import outcomes
from holdfast.kernel.clock import after, monotonic, sleep, timeout
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import Context, become
from holdfast.kernel.crashpoints import Crash, crashpoint
from holdfast.kernel.errors import (
    TROUBLE,
    CommitUnknown,
    HoldfastError,
    LeaseLost,
    PayloadError,
    StepLeft,
    TransactionEnded,
)
from holdfast.kernel.masking import secret_values
from holdfast.kernel.outcomes import RESULT_LIMIT, Dead, Done, Outcome
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import over, spawn, to_its_end
from holdfast.kernel.telemetry import note
from holdfast.kernel.threads import Stopped, ThreadCall, Threads
from holdfast.kernel.waits import Telling
from holdfast.store.doubts import unsure
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Finish, Lease

LOCK_PATIENCE = 1.0  # seconds, about, until a job whose lock is held tries again
# The loop is closed, or the process has ended: nothing can be awaited any more.
_NOT_OURS = (GeneratorExit, Crash)
_UNLOCKING = 2.0  # seconds
HANDLER_LIMIT = 10.0  # seconds for each on_dead handler
_DONE = Done()


class Released:
    """It goes back as if it had not been claimed."""


class Unknown:
    """This worker cannot run it, and another may."""

    def __init__(self, why: str) -> None:
        self.why = why


class Settled:
    """Nothing is left to write."""


Ending: TypeAlias = Outcome | Released | Unknown | Settled
_WRITES_NOTHING = (Released, Unknown, Settled)
RELEASED, SETTLED = Released(), Settled()


class Executor:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        threads: Threads,
        *,
        worker: str,
        lease: float,
        portal: Portal,
        resources: Mapping[Any, Any],
    ) -> None:
        self._store, self._registry, self._hooks = store, registry, registry.hooks
        self._threads, self._worker, self._lease = threads, worker, lease
        self._portal, self._resources = portal, resources

    async def run(
        self, run: Run, report: Callable[[Run, Ending], None], waits: Callable[[Run], None] | None = None
    ) -> None:
        """From the arguments to the ending. Whatever a task does, this reports once: else its slot were gone for good.

        `waits` is called when it first waits for something, if it ever does.
        """
        _begin(run)
        ending: Ending | None = None
        try:
            ending = await Telling(self._ending(run), partial(self._waits, run, waits))
            if not isinstance(ending, _WRITES_NOTHING):
                run.ending = ending
            if run.job is not None and run.job.steps is not None:
                run.claim = msgspec.structs.replace(run.claim, has_steps=True)  # its finish looks at them
            if run.lock is not None:
                await self._unlock(run)
        finally:  # also for what ends coroutines and programs
            if run.timer is not None:
                run.timer.cancel()
            report(run, _broken(run, sys.exception()) if ending is None else ending)

    async def _ending(self, run: Run) -> Ending:
        try:
            ending = await self._body(run)
            if run.stop is not Stop.LOST:
                return ending
            run.ending = None
            return await self._lost(run)
        except _NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  also what ends programs, and what extensions raise past Exception
            try:
                return await self._ended_by(run, error)
            except _NOT_OURS:
                raise
            except BaseException as failure:  # noqa: BLE001  an exception that cannot be read, a store that cannot be asked
                note(
                    "executor.failed", job=run.claim.job_id, task=run.claim.task, error=type(failure).__name__
                )
                return _broken(run, failure)

    # --- the body ---

    async def _body(self, run: Run) -> Ending:
        claim, task = run.claim, run.task
        if run.stop is not None:  # while it waited for its slot
            raise asyncio.CancelledError
        if task is None:
            return Unknown(f"this worker has no task {claim.task!r}")
        try:
            arguments = task.signature.decode(claim.args)
        except NewerArguments as error:
            return Unknown(str(error))
        except PayloadError as error:
            return await self._dead(run, Reject(f"Its arguments cannot be read: {error}"))
        if task.declaration.lock is not None and not await self._locked(run, task, arguments):
            return outcomes.Snooze(after=jittered(LOCK_PATIENCE, 0.5), reason="its lock is held")
        become(
            Context(
                correlation_id=claim.correlation_id or claim.job_id,
                causation_id=claim.causation_id,
                trace=claim.trace,
                deadline=claim.deadline,
                job_id=claim.job_id,
            )
        )
        job = run.job = Job(claim, self._store, self._portal, run, self._threads.beside)
        if self._hooks.heard("on_started"):
            await self._hooks.tell("on_started", job)
        await job.know_steps()
        body = self._call(run, task, job, arguments)
        result = await (self._hooks.run(job, body) if self._hooks.wraps else body())
        if result is not None and inspect.isawaitable(result):  # a plain decorator over an async function
            result = await result
        return await self._returned(run, job, result)

    async def _returned(self, run: Run, job: Job, result: Any) -> Ending:
        if not job.completed:
            await job.check_steps()
        run.over = True
        crashpoint("body.done")
        ending: Ending
        if job.completed:
            if not await self._is_settled(run):
                job.completed = False
                raise RuntimeError("the transaction that completed it was rolled back")
            ending = SETTLED
        else:
            try:
                ending = run.ending = _done(result)
            except PayloadError as error:
                told = f"The task ran to its end, but its result cannot be kept: {error}"
                return await self._dead(run, Reject(told))
        if self._hooks.heard("on_succeeded"):
            await self._hooks.tell("on_succeeded", job, result)
        return ending

    def _call(self, run: Run, task: Task[Any, Any], job: Job, arguments: dict[str, Any]) -> Callable[[], Any]:
        if task.declaration.process:
            return partial(self._in_child, task, run.claim.args)
        signature = task.signature
        for name, kind in signature.resources.items():
            arguments[name] = self._resources[kind]
        args, kwargs = signature.arrange(arguments)
        if signature.takes_job:
            args.insert(0, job)
        call = partial(task.function, *args, **kwargs)
        return call if task.is_async else partial(self._in_thread, run, call)

    async def _in_child(self, task: Task[Any, Any], args: str) -> Any:
        text = await run_in_child(task, args)
        if text is None:
            return None
        try:
            return decode_stored(text, task.signature.returns)
        except PayloadError:  # not what its annotation says: kept as it is, as in this process
            return decode_stored(text)

    async def _in_thread(self, run: Run, call: Callable[[], Any]) -> Any:
        thread = run.thread = ThreadCall()
        try:
            return await self._threads.run(thread, call)
        finally:
            if not thread.is_running:  # what comes after it is stopped as any coroutine
                run.thread = None

    # --- time and locks ---

    def _waits(self, run: Run, waits: Callable[[Run], None] | None) -> None:
        self._set_timer(run)
        if waits is not None:
            waits(run)

    def _set_timer(self, run: Run) -> None:
        """Only now: nothing could stop it before."""
        if run.limit_until is not None:
            run.timer = after(run.limit_until - monotonic(), run.halt, Stop.TIMEOUT)

    async def _locked(self, run: Run, task: Task[Any, Any], arguments: Mapping[str, Any]) -> bool:
        assert task.declaration.lock is not None
        name = task.declaration.lock.render({**task.signature.defaults, **arguments})
        owner = f"{self._worker}/{run.claim.job_id}/{run.claim.token}"  # a batch of claims has one token
        run.lock_until = monotonic() + self._lease
        # To its end, or nobody would know that it is held, and give it back.
        await to_its_end(self._lock(run, name, owner))
        return run.lock is not None

    async def _lock(self, run: Run, name: str, owner: str) -> None:
        run.lock = await self._store.leases.acquire(name, owner=owner, ttl=self._lease)

    async def _unlock(self, run: Run) -> None:
        """It goes on when it takes longer than anybody waits: a lock that is not given back stays for its whole lease."""
        assert run.lock is not None
        unlocking = spawn(self._give_back(run.lock), name="unlock")
        with suppress(TimeoutError):
            async with timeout(_UNLOCKING):
                await over(unlocking)

    async def _give_back(self, lock: Lease) -> None:
        try:
            await self._store.leases.release(lock)
        except HoldfastError as error:  # it ends by itself
            note("lock.not_released", lock=lock.name, error=repr(error))

    # --- ends other than by returning ---

    async def _ended_by(self, run: Run, error: BaseException) -> Ending:
        run.over = True
        if run.ending is not None and run.stop is not Stop.LOST:  # a hook has failed in a way of its own
            return run.ending
        if run.job is not None and run.job.completed:
            return await self._completed(run, error)
        if run.stop is not None and _is_stop(error):
            if run.stop is not Stop.TIMEOUT:
                return await self._lost(run) if run.stop is Stop.LOST else _stopped(run)
            assert run.task is not None
            error = TimeoutError(f"it took longer than its timeout of {run.task.declaration.timeout:g} s")
        if run.stop is Stop.LOST or (run.job is not None and run.job.lost):
            return await self._lost(run)
        return await self._judged(run, error)

    async def _completed(self, run: Run, error: BaseException) -> Ending:
        """Its success was written in a transaction of the task; whether that was committed, the store knows."""
        if not await self._is_settled(run):
            assert run.job is not None
            run.job.completed = False
            return await self._ended_by(run, error)
        told = _told(run.claim, error)
        note("job.failed_after_completion", job=run.claim.job_id, task=run.claim.task, error=told)
        return SETTLED

    async def _is_settled(self, run: Run) -> bool:
        job_id, token = run.claim.job_id, run.claim.token
        settle = self._store.claims.settle
        return await patiently(lambda: settle(job_id, token), what="executor.cannot_settle", job=job_id)

    async def _judged(self, run: Run, error: BaseException) -> Ending:
        if run.job is not None and (steps := run.job.steps) is not None:
            steps.close()
            await steps.reconsider(error)
            error = steps.verdict or error
        error = _meant(error)
        if isinstance(error, EffectUnknown):
            return self._unknown(run, _told(run.claim, error))
        if isinstance(error, Cancel):
            return outcomes.Cancel(_told(run.claim, error))
        if isinstance(error, Snooze):
            return outcomes.Snooze(after=error.outcome.after, reason=_told(run.claim, error))
        await self._tell(run, "on_failed", error)
        assert run.task is not None
        retry, attempt = run.task.declaration.retry, run.claim.attempt
        if isinstance(error, Reject) or not retry.allows(attempt, error):
            return await self._dead(run, error)
        delay = error.outcome.after if isinstance(error, Retry) else retry.delay(attempt)
        await self._tell(run, "on_retried", error, delay)
        return outcomes.Retry(after=delay, error=_told(run.claim, error))

    async def _lost(self, run: Run) -> Ending:
        """If it is ours after all, because the renewer gave it up in time, it goes back at once: the token decides."""
        note("job.lease_lost", job=run.claim.job_id, task=run.claim.task, token=run.claim.token)
        await self._tell(run, "on_lease_lost")
        return RELEASED

    def _unknown(self, run: Run, why: str) -> Ending:
        outcome = outcomes.Unknown(why)
        note("job.unknown", job=run.claim.job_id, task=run.claim.task, reason=outcome.reason)
        return outcome

    async def _dead(self, run: Run, error: BaseException) -> Ending:
        """Its handlers write in the transaction that makes the job dead; without any, the next batch will do."""
        if effects := await (run.job or Job(run.claim, self._store, self._portal)).give_up():
            return self._unknown(run, unsure(_told(run.claim, error), effects))
        run.over = True
        outcome = Dead(_told(run.claim, error))
        note("job.died", job=run.claim.job_id, task=run.claim.task, error=outcome.error)
        ending: Ending = outcome
        if handlers := self._registry.on_dead(run.claim.task):
            try:
                ending = await self._die_together(run, outcome, handlers)
            except LeaseLost:
                return await self._lost(run)
            except StepLeft as left:  # an effect was begun meanwhile
                return self._unknown(run, _told(run.claim, left))
            except Exception as failure:  # noqa: BLE001  the job is dead all the same, and a person hears of it
                told = _told(run.claim, failure)
                note("on_dead.failed", job=run.claim.job_id, task=run.claim.task, error=told)
        await self._tell(run, "on_dead", error)
        return ending

    async def _die_together(self, run: Run, outcome: Dead, handlers: Sequence[OnDead]) -> Ending:
        """The death and what its handlers write. A store in trouble is asked again: that is no handler's failure.

        A transaction that was cut off is tried once more: it was the handler that took so long, or this process stood still.
        """
        job, was_cut_off = run.job or Job(run.claim, self._store, self._portal), False
        for pause in (*PAUSES, None):
            try:
                async with self._store.transaction() as tx:
                    await self._store.claims.finish([Finish(run.claim, outcome)], tx=tx)
                    for handler in handlers:
                        async with timeout(HANDLER_LIMIT):
                            await handler(job, tx)
            except (*TROUBLE, TransactionEnded) as trouble:
                if isinstance(trouble, CommitUnknown) and await self._is_written(run):
                    return SETTLED
                if pause is None or (was_cut_off and isinstance(trouble, TransactionEnded)):
                    raise
                was_cut_off = isinstance(trouble, TransactionEnded)
                await sleep(jittered(pause))
            else:
                return SETTLED
        raise AssertionError("the last try returns or raises")

    async def _is_written(self, run: Run) -> bool:
        try:
            return await self._store.claims.settle(run.claim.job_id, run.claim.token)
        except TROUBLE:
            return False  # then the next try finds its token gone

    async def _tell(self, run: Run, hook: str, *details: Any) -> None:
        if self._hooks.heard(hook):
            job = run.job or Job(run.claim, self._store, self._portal)
            await self._hooks.tell(hook, job, *details)


def _is_stop(error: BaseException) -> bool:
    """Also of a group: its coroutines were stopped, each by itself, and nothing else has happened to them."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_stop, error.exceptions))
    return isinstance(error, asyncio.CancelledError | Stopped)


def _meant(error: BaseException) -> BaseException:
    """What one of many coroutines has said on purpose, and nothing else has happened: the task says so."""
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, Control) else error


def _done(result: Any) -> Done:
    return _DONE if result is None else Done(encode(result, limit=RESULT_LIMIT, where="result"))


def _begin(run: Run) -> None:
    run.began = monotonic()
    if run.task is not None and (limit := run.task.declaration.timeout) is not None:
        run.limit_until = run.began + limit


def _stopped(run: Run) -> Ending:
    """Stopped from outside, and not for its own fault."""
    match run.stop:
        case Stop.CANCELLED:
            return outcomes.Cancel(run.reason)
        case Stop.LOCK_LOST:
            return outcomes.Snooze(after=jittered(LOCK_PATIENCE, 0.5), reason="its lock was lost")
        case _:
            return RELEASED


def _broken(run: Run, error: BaseException | None) -> Ending:
    """The last resort, without any help: tried again while it may be. If its success is written, the token refuses this."""
    told = f"its run was ended by {type(error).__name__}"
    if run.task is None or run.stop in (Stop.LOST, Stop.DRAIN):
        return RELEASED
    retry, attempt = run.task.declaration.retry, run.claim.attempt
    if attempt < retry.attempts:
        return outcomes.Retry(after=retry.delay(attempt), error=told)
    return Dead(told)


def _told(claim: Claim, error: BaseException) -> str:
    """What a task has said, or where it failed; nothing of what is secret."""
    return describe(error, secret_values(claim.args), where=not isinstance(error, Control))
