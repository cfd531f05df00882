"""The running job, as its task sees it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from holdfast.guards.backoff import Backoff
from holdfast.jobs.blocking import Portal
from holdfast.jobs.calls import Call, refuse_inside
from holdfast.jobs.effects import KEY_TTL, SETTLE, Effect, Manner, Policy
from holdfast.jobs.steps import Steps, run_step
from holdfast.jobs.sync_job import BlockingJob
from holdfast.kernel.awaits import Args, Awaits, Block, must_await
from holdfast.kernel.clock import monotonic
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import CommitUnknown, LeaseLost, StoreError, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.outcomes import RESULT_LIMIT, Done
from holdfast.kernel.threads import Caller, ThreadCall, this_call, this_work
from holdfast.store.job_ports import Steps as StepsPort
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, Finish


class Hold(Protocol):
    """What a worker knows of a claim that it holds."""

    until: float  # on the monotonic clock: nobody else may run the job before
    work: asyncio.Task[None] | None  # what runs it
    thread: ThreadCall | None  # the same for a task that is a plain function
    over: bool  # its task has ended


def _of_job(verb: str) -> Callable[[Args, dict[str, Any]], Awaits]:
    """Where a verb of a running job is noticed. In a plain function nobody could await it."""

    def awaits(args: Args, _: dict[str, Any]) -> Awaits:
        job: Job = args[0]
        return job.its_awaits(verb)

    return awaits


class Job:
    """One run of a job: a first parameter annotated `Job` receives it."""

    __slots__ = (
        "_claim",
        "_hold",
        "_portal",
        "_process",
        "_store",
        "_threads",
        "awaits",
        "committed",
        "completed",
        "lost",
        "parted",
        "steps",
        "stop_reason",
        "vouched",
    )

    def __init__(
        self,
        claim: Claim,
        store: Store,
        portal: Portal,
        hold: Hold | None = None,
        threads: Caller | None = None,
    ) -> None:
        self._claim, self._store, self._portal, self._hold = claim, store, portal, hold
        self._process = os.getpid()
        self._threads = threads  # for the plain functions of its steps
        self.awaits = Awaits()  # what it has asked for
        self.steps: Steps | None = None  # once it has asked for one
        self.completed = False  # its success is written, in a transaction of the task
        self.parted = False  # its run is over, and what becomes of the job was written apart
        self.vouched = False  # what is recorded of its steps is complete, although this run has not asked for all of them
        self.committed = False  # and so is that transaction, for certain
        self.lost = False  # a write of this run was refused: someone else may run the job now
        self.stop_reason: str | None = None  # why it is asked to stop; a long loop may look at it

    @property
    def id(self) -> str:
        return self._claim.job_id

    @property
    def task(self) -> str:
        return self._claim.task

    @property
    def queue(self) -> str:
        return self._claim.queue

    @property
    def token(self) -> int:
        """Grows with every claim of any job: hand it to what must refuse a late write of an earlier run."""
        return self._claim.token

    @property
    def attempt(self) -> int:
        """Which run this is, from 1."""
        return self._claim.attempt

    @property
    def interruptions(self) -> int:
        """How many workers died under it."""
        return self._claim.interruptions

    @property
    def tenant(self) -> str | None:
        return self._claim.tenant

    @property
    def correlation_id(self) -> str | None:
        return self._claim.correlation_id

    def key_for(self, name: str) -> str:
        """A key for another side that accepts them: the same in every attempt of this job, and in no other job.

        Only an operator's replay with other arguments starts a new one.
        """
        text = f"{self.id}/{self._claim.generation}/{check_name('key', name)}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @must_await("job.heartbeat", to=_of_job("heartbeat"))
    async def heartbeat(self, progress: float | None = None, note: str | None = None) -> None:
        """Say how far it is, for people: `progress` from 0 to 1, and a few words, of which the store keeps what fits.

        Raises LeaseLost when it is no longer ours.
        """
        await self.do_heartbeat(progress, note)

    async def do_heartbeat(self, progress: float | None, note: str | None) -> None:
        if progress is not None and not 0 <= progress <= 1:
            raise UsageError(f"progress is from 0 to 1, not {progress!r}.")
        if not await self._store.claims.report(self._claim, progress=progress, note=note):
            raise self._lose()

    def _lose(self) -> LeaseLost:
        self.lost = True
        return LeaseLost(
            f"Job {self.id} is no longer held with token {self.token}: someone else may run it now."
        )

    # --- what is done once, whatever happens to the worker ---

    @must_await("job.step", to=_of_job("step"))
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        retry: Backoff | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  an option of the step
    ) -> Any:
        """Call the function, unless an earlier attempt has recorded its result: then that is returned.

        The result is recorded, as JSON, before this returns; a later attempt gets the same. The name is unique in the job.
        """
        refuse_inside(name)
        call = Call(function, args, retry=retry, limit=timeout, threads=self._threads)
        return await self.do_step(name, call)

    @must_await("job.effect", to=_of_job("effect"))
    async def effect(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        policy: Policy,
        reconcile: Callable[..., Any] | None = None,
        not_done: tuple[type[Exception], ...] = (),
        settle: float = SETTLE,
        key_ttl: float = KEY_TTL,
        retry: Backoff | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  an option of the effect
    ) -> Any:
        """Call what changes the world elsewhere. The intent is recorded before the call, the result after it.

        When nobody knows whether it was done (the worker died, the call timed out or failed): with `at_least_once` it is
        called again; with `keyed` too, while the other side remembers `job.key_for(name)`, for `key_ttl` seconds; with
        `at_most_once`, `reconcile(*args)` is asked, and answers Found(result), NotFound, which counts after `settle`
        seconds, or CannotTell. Without an answer the job is `unknown` and waits for a person. Exceptions of the types in
        `not_done` say that nothing was done.
        """
        refuse_inside(name)
        manner = Manner.of(
            policy=policy, reconcile=reconcile, not_done=not_done, settle=settle, key_ttl=key_ttl
        )
        call = Call(function, args, retry=retry, limit=timeout, threads=self._threads)
        return await self.do_effect(name, call, manner)

    def its_awaits(self, verb: str) -> Awaits:
        """In a plain function nobody can await: then this is an error, before anything is taken for done."""
        if asyncio._get_running_loop() is None:  # noqa: SLF001  the public one raises where there is none
            raise UsageError(
                f"job.{verb} is to be awaited, and this thread has no event loop: nothing would be done. "
                f"In a plain function, call job.blocking.{verb}(…)."
            )
        return self.awaits

    async def do_step(self, name: str, call: Call, *, branch: str | None = None) -> Any:
        self._check_goes_on()
        return await run_step(self._its_steps(), name, call, branch=branch)

    async def do_effect(self, name: str, call: Call, manner: Manner, *, branch: str | None = None) -> Any:
        self._check_goes_on()
        return await Effect(self._its_steps(), call, manner, self._check_held).run(name, branch=branch)

    def work_beside(self) -> object | None:
        """In a thread: what it does beside the task; None in the task's own."""
        call = this_call()
        is_own = call is not None and self._hold is not None and self._hold.thread is call
        return None if is_own else this_work()

    def branch_of(self, work: object | None, name: str) -> str:
        """On the loop: what a thread does beside the task is known by its first step, as a coroutine is."""
        return "" if work is None else self._its_steps().branches.of(work, name)

    async def know_steps(self) -> None:
        """Before its task begins: what earlier attempts have recorded.

        Asked for within a transaction of the task, it would need a second connection, and a pool of such waits for itself.
        """
        if self._claim.has_steps:
            await self._its_steps().load()

    async def check_steps(self) -> None:
        """Before its success is written: every step that an earlier attempt has recorded was asked for."""
        if not self.vouched and (self.steps is not None or self._claim.has_steps):
            await self._its_steps().check_all_asked()

    async def last_calls(self) -> None:
        """After its task has failed: wait for the calls of effects that go on beside it."""
        if self.steps is not None:
            await self.steps.last_calls()

    async def last_words(self) -> None:
        """After its run has ended: what it knows of its steps, and could not write."""
        if self.steps is not None and not self.lost:
            await self.steps.last_words()

    async def give_up(self) -> list[str]:
        """Before it dies: the effects that a person must look at first, because nobody knows whether they were done."""
        if self.steps is None and not self._claim.has_steps:
            return []
        return await self._its_steps().give_up()

    def _its_steps(self) -> Steps:
        if self.steps is None:
            home = None if self._hold is None else self._hold.work
            stopped = self._is_stopped
            self.steps = Steps(self._claim, self._store.steps, home, lost=self._lose, stopped=stopped)
        return self.steps

    def _is_stopped(self) -> bool:
        return self.stop_reason is not None

    def _check_held(self) -> None:
        """As far as this process knows: a call that cannot be taken back is not begun by whom may have lost the job."""
        if self._hold is not None and monotonic() >= self._hold.until:
            raise self._lose()

    def _check_goes_on(self) -> None:
        if self._hold is not None and self._hold.over:
            raise UsageError(
                f"The run of job {self.id} has ended: a step belongs to a task that waits for it."
            )
        self._check_not_completed()

    def _check_not_completed(self) -> None:
        if self.completed:
            raise UsageError(f"Job {self.id} is completed already: a run ends once.")

    # --- success together with the task's own rows ---

    def commit(self, result: Any = None) -> AbstractAsyncContextManager[Tx]:
        """These rows and the job's success commit together, or neither does.

        `async with job.commit() as tx:` raises LeaseLost, and rolls back, when someone else may run the job now.
        """
        block = Block("async with")
        self.its_awaits("commit").add(block, "job.commit", None)
        return self.do_commit(result, block)

    @asynccontextmanager
    async def do_commit(self, result: Any, block: Block) -> AsyncIterator[Tx]:
        block.is_entered = True
        is_written = False
        try:
            async with self._store.transaction() as tx:
                yield tx
                await self._finish(tx, result)
                # Who is stopped during the commit does not know how that ended: then the store is asked.
                is_written = self.completed = True
            self.committed = True
        except CommitUnknown as lost:
            if is_written and await self._settled(lost):
                return
            self._rolled_back(is_written)
            raise
        except Exception:
            self._rolled_back(is_written)
            raise

    @must_await("job.complete", to=_of_job("complete"))
    async def complete(self, *, tx: Any, result: Any = None) -> None:
        """The same in the caller's own transaction: the job has succeeded if and only if that commits.

        If it was rolled back, this may be done again in the next one.
        """
        await self.do_complete(tx, result)

    async def do_complete(self, tx: Any, result: Any) -> None:
        await self._finish(tx, result)
        self.completed = True

    async def _finish(self, tx: Any, result: Any) -> None:
        if self.completed:
            self._reopen()  # perhaps that was rolled back: its token tells
        self.awaits.check()
        await self.check_steps()
        text = None if result is None else encode(result, limit=RESULT_LIMIT, where="result")
        try:
            await self._store.claims.finish([Finish(self._claim, Done(text))], tx=tx)
        except LeaseLost:
            self._check_not_completed()
            self.lost = True
            raise

    def _rolled_back(self, was_written: bool) -> None:
        self.completed = self.completed and not was_written
        self._reopen()

    def _reopen(self) -> None:
        """A transaction that would have ended it was rolled back: while its task goes on, so may its steps."""
        if self.steps is not None and not (self._hold is not None and self._hold.over):
            self.steps.reopen()

    async def _settled(self, lost: CommitUnknown) -> bool:
        try:
            return await self._store.claims.settle(self.id, self.token)
        except StoreError as error:
            raise lost from error

    # --- for what is carried by jobs ---

    @property
    def claim(self) -> Claim:
        """The right by which it runs."""
        return self._claim

    @property
    def threads(self) -> Caller | None:
        """For the plain functions of its steps."""
        return self._threads

    def record_in(self, port: StepsPort) -> Steps:
        """Its steps, written in this way from now on."""
        steps = self._its_steps()
        steps.log.write_to(port)
        return steps

    def check_held(self) -> None:
        """Raise LeaseLost when, as far as this process knows, someone else may run it now."""
        self._check_held()

    def lose(self) -> LeaseLost:
        """A write of this run was refused: the error to raise."""
        return self._lose()

    @property
    def blocking(self) -> BlockingJob:
        """The same for tasks that are plain functions."""
        return BlockingJob(self, self._portal, self._process)

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.task}, attempt {self.attempt}>"
