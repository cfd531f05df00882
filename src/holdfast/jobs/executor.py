"""Runs one claimed job: decodes its arguments, calls the task, and says how the run ended."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.blocking import Portal
from holdfast.jobs.child import run_in_child
from holdfast.jobs.control import Reject
from holdfast.jobs.ends import Ends
from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.jobs.failures import describe
from holdfast.jobs.job import Job
from holdfast.jobs.judge import LOCK_PATIENCE, SETTLED, WRITES_NOTHING, Ending, Judge, Unknown, broken
from holdfast.jobs.look import Look, LookedUp
from holdfast.jobs.registry import Registry
from holdfast.jobs.run import Run, Stop
from holdfast.jobs.signature import NewerArguments
from holdfast.jobs.surroundings import around, has_nothing_around
from holdfast.jobs.task import Task
from holdfast.kernel import outcomes
from holdfast.kernel.awaits import watching
from holdfast.kernel.clock import after, monotonic, patience
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import Context, become
from holdfast.kernel.crashpoints import Crash, crashpoint
from holdfast.kernel.errors import (
    HoldfastError,
    PayloadError,
)
from holdfast.kernel.masking import secret_values, secrets_here
from holdfast.kernel.outcomes import RESULT_LIMIT, Done
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import over, spawn, to_its_end
from holdfast.kernel.telemetry import is_heard, note
from holdfast.kernel.threads import ThreadCall, Threads
from holdfast.kernel.tracing import Span, Tracer, tracer
from holdfast.kernel.waits import Telling
from holdfast.store.ports import Store
from holdfast.store.records import Claim, Lease

# The loop is closed, or the process has ended: nothing can be awaited any more.
_NOT_OURS = (GeneratorExit, Crash)
_UNLOCKING = 2.0  # seconds
_DONE = Done()
_REFUSED = "its guard refused it"


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
        self._judge = Judge(store, registry, portal)
        self.ends = EndsOfRuns(store, Ends(store, registry, portal))

    async def run(
        self, run: Run, report: Callable[[Run, Ending], None], waits: Callable[[Run], None] | None = None
    ) -> None:
        """From the arguments to the ending. Whatever a task does, this reports once: else its slot were gone for good.

        `waits` is called when it first waits for something, if it ever does.
        """
        _begin(run)
        ending: Ending | None = None
        try:
            work = self._ended(run) if (tracing := tracer()) is None else self._traced(tracing, run)
            ending = await Telling(work, partial(self._waits, run, waits))
            if not isinstance(ending, WRITES_NOTHING):
                run.ending = ending
            if run.attempt is not None and run.attempt.steps is not None:
                run.claim = msgspec.structs.replace(run.claim, has_steps=True)  # its finish looks at them
            if run.lock is not None:
                await self._unlock(run)
        finally:  # also for what ends coroutines and programs
            if run.timer is not None:
                run.timer.cancel()
            report(run, broken(run, sys.exception()) if ending is None else ending)
            # They know the run, too: a circle for each job would wait for the collector.
            run.attempt = run.job = None

    async def tell_refused(self, run: Run) -> None:
        """One that has not begun, because its guard refused it."""
        held = run.gate_key if run.is_under_guard else None
        await self._judge.tell_put_off(run, outcomes.Snooze(after=0.0, guard=held, reason=_REFUSED))

    async def look(self, claim: Claim, limit: float) -> Look | None:
        """Run the task of an unknown job as far as what nobody knows of, and ask. None: its lock is held by another."""
        run, looks = Run(claim, self._registry.get(claim.task), monotonic() + limit), list[Look]()
        work = run.work = spawn(self._look(run, looks), name="look-up")
        declared = None if run.task is None else run.task.declaration.timeout
        timer = after(limit if declared is None else min(limit, declared), run.halt, Stop.TIMEOUT)
        try:
            await over(work)
            work.result()
        except asyncio.CancelledError:
            run.halt(Stop.DRAIN)
            raise
        finally:
            timer.cancel()
            run.over, run.attempt, run.job = True, None, None
            if run.lock is not None:
                await self._unlock(run)
        return looks[0] if looks else None

    async def _look(self, run: Run, looks: list[Look]) -> None:
        """How the task ends says nothing about its effects."""
        task, claim = run.task, run.claim
        assert task is not None  # only such are looked at
        look = run.attempt = Look(claim, self._store, self._portal, run, self._threads.beside)
        try:
            arguments = task.signature.decode(claim.args)
            if task.declaration.lock is not None and await self._lacks(run, task, arguments) is not None:
                return
            looks.append(look)
            _become(claim)
            await look.know_steps()
            job = run.job = Job(look)
            with watching(look.awaits):
                await self._result(job, self._call(run, task, job, arguments))
        except LookedUp:
            pass
        except _NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  also that it was stopped
            looks[:] = [look]
            stopped = None if run.stop is None else run.stop.value
            look.why = stopped or describe(error, secret_values(claim.args))
        if run.stop is None:
            await look.all_answered()

    async def _traced(self, tracing: Tracer, run: Run) -> Ending:
        with tracing.runs(run.claim) as span:
            ending = await self._ended(run, span)
            span.ended(ending)
            return ending

    async def _ended(self, run: Run, span: Span | None = None) -> Ending:
        try:
            ending = await self._whole_body(run)
            if run.stop is not Stop.LOST:
                return ending
            run.ending = None
            return await self._judge.lost(run)
        except _NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  also what ends programs, and what extensions raise past Exception
            if span is not None:
                span.failed(error)
            try:
                return await self._judge.ended_by(run, error)
            except _NOT_OURS:
                raise
            except BaseException as failure:  # noqa: BLE001  an exception that cannot be read, a store that cannot be asked
                note(
                    "executor.failed", job=run.claim.job_id, task=run.claim.task, error=type(failure).__name__
                )
                return broken(run, failure)

    # --- the body ---

    async def _whole_body(self, run: Run) -> Ending:
        """Also what goes on beside it when it fails: as with asyncio.gather, which raises at once and cancels nothing."""
        try:
            return await self._body(run)
        except Exception:
            if (
                run.stop is None
                and (attempt := run.attempt) is not None
                and not (attempt.completed or attempt.lost)
            ):
                await attempt.last_calls()
            raise

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
            return await self._judge.dead(run, Reject(f"Its arguments cannot be read: {error}"))
        if run.time_left() == 0.0:
            return await self._judge.told(
                run, outcomes.Cancel("its deadline had passed before it could begin")
            )
        if (
            task.declaration.lock is not None
            and (lock := await self._lacks(run, task, arguments)) is not None
        ):
            snooze = outcomes.Snooze(after=jittered(LOCK_PATIENCE, 0.5), reason="its lock is held", lock=lock)
            await self._judge.tell_put_off(run, snooze)
            return snooze
        _become(claim)
        if is_heard("job.began"):
            note("job.began", job=claim.job_id, task=claim.task, queue=claim.queue, attempt=claim.attempt)
        attempt = run.attempt = Attempt(
            claim, self._store, self._portal, run, self._threads.beside, task=task
        )
        job = run.job = Job(attempt)
        if self._hooks.heard("on_started"):
            await self._hooks.tell("on_started", job)
        await attempt.know_steps()
        body = self._call(run, task, job, arguments)
        with watching(attempt.awaits):
            if has_nothing_around(run, task):
                result = await self._result(job, body)
            else:
                with around(run):
                    result = await self._result(job, body)
        return await self._returned(run, attempt, job, result)

    async def _result(self, job: Job, body: Callable[[], Any]) -> Any:
        result = await (self._hooks.run(job, body) if self._hooks.wraps else body())
        if result is not None and inspect.isawaitable(result):  # a plain decorator over an async function
            return await result
        return result

    async def _returned(self, run: Run, attempt: Attempt, job: Job, result: Any) -> Ending:
        if attempt.parted:
            run.over = True
            return SETTLED
        attempt.awaits.check()
        if not attempt.completed:
            await attempt.check_steps()
        run.over = True
        crashpoint("body.done")
        ending: Ending
        if attempt.completed:
            if not (attempt.committed or await self._judge.is_settled(run)):
                attempt.completed = False
                raise RuntimeError("the transaction that completed it was rolled back")
            ending = SETTLED
        else:
            try:
                ending = run.ending = _done(result)
            except PayloadError as error:
                told = f"The task ran to its end, but its result cannot be kept: {error}"
                return await self._judge.dead(run, Reject(told))
        if self._hooks.heard("on_succeeded"):
            await self._hooks.tell("on_succeeded", job, result)
        if is_heard("job.succeeded"):
            claim = run.claim
            note("job.succeeded", job=claim.job_id, task=claim.task, queue=claim.queue, attempt=claim.attempt)
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
        text = await run_in_child(task, args, self._registry.known_guards)
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

    async def _lacks(self, run: Run, task: Task[Any, Any], arguments: Mapping[str, Any]) -> str | None:
        """The name of the lock that another has; None: it is ours now."""
        assert task.declaration.lock is not None
        name = task.declaration.lock.render({**task.signature.defaults, **arguments})
        owner = f"{self._worker}/{run.claim.job_id}/{run.claim.token}"  # a batch of claims has one token
        run.lock_until = monotonic() + self._lease
        # To its end, or nobody would know that it is held, and give it back.
        await to_its_end(self._lock(run, name, owner))
        return name if run.lock is None else None

    async def _lock(self, run: Run, name: str, owner: str) -> None:
        run.lock = await self._store.leases.acquire(name, owner=owner, ttl=self._lease)

    async def _unlock(self, run: Run) -> None:
        """It goes on when it takes longer than anybody waits: a lock that is not given back stays for its whole lease."""
        assert run.lock is not None
        unlocking = spawn(self._give_back(run.lock), name="unlock")
        with suppress(TimeoutError):
            async with patience(_UNLOCKING):
                await over(unlocking)

    async def _give_back(self, lock: Lease) -> None:
        try:
            await self._store.leases.release(lock)
        except HoldfastError as error:  # it ends by itself
            note("lock.not_released", lock=lock.name, error=repr(error))


def _done(result: Any) -> Done:
    return _DONE if result is None else Done(encode(result, limit=RESULT_LIMIT, where="result"))


def _begin(run: Run) -> None:
    run.began = began = monotonic()
    if run.task is not None and (limit := run.task.declaration.timeout) is not None:
        run.limit_until = began + limit


def _become(claim: Claim) -> None:
    """From here on this coroutine is the job's: what it starts and logs belongs to it."""
    if secrets := secret_values(claim.args):
        secrets_here.set(tuple(secrets))
    become(
        Context(
            correlation_id=claim.correlation_id or claim.job_id,
            causation_id=claim.causation_id,
            trace=claim.trace,
            deadline=claim.deadline,
            job_id=claim.job_id,
            tenant=claim.tenant,
        )
    )
