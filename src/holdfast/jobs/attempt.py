"""One run of a job from inside: its claim, its steps, its success. Its task sees it as a Job."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from holdfast.jobs.blocking import Portal
from holdfast.jobs.calls import Call
from holdfast.jobs.counting import Flight, sent_apart
from holdfast.jobs.doors import GuardDoor, Late, TaskDoor
from holdfast.jobs.effects import Effect, Manner
from holdfast.jobs.steps import Steps, run_step
from holdfast.jobs.story import Story, story_of
from holdfast.jobs.task import Task
from holdfast.kernel.awaits import Awaits, Block
from holdfast.kernel.clock import monotonic
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import CommitUnknown, LeaseLost, NotOpen, StoreError, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.outcomes import RESULT_LIMIT, Done, Outcome
from holdfast.kernel.threads import Caller, ThreadCall, this_call, this_work
from holdfast.store.job_ports import StepLog as StepsPort
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, Finish


class Hold(Late, Protocol):
    """What a worker knows of a claim that it holds."""

    until: float  # on the monotonic clock: nobody else may run the job before
    work: asyncio.Task[None] | None  # what runs it
    thread: ThreadCall | None  # the same for a task that is a plain function
    over: bool  # its task has ended
    flight: Flight | None  # with the end that is written in a transaction of the task
    apart: Outcome | None  # that end


class Attempt:
    """What the engine knows of it."""

    __slots__ = (
        "_hold",
        "_portal",
        "_process",
        "_store",
        "awaits",
        "claim",
        "committed",
        "completed",
        "doors",
        "lost",
        "parted",
        "reason",
        "steps",
        "stop_reason",
        "task",
        "threads",
        "vouched",
    )

    def __init__(
        self,
        claim: Claim,
        store: Store,
        portal: Portal,
        hold: Hold | None = None,
        threads: Caller | None = None,
        *,
        task: Task[Any, Any] | None = None,
        reason: str | None = None,
    ) -> None:
        self.claim, self._store, self._portal, self._hold = claim, store, portal, hold
        self.task = task  # None: this program does not have it
        self.reason = reason  # why it has ended, of a job that has
        self._process = os.getpid()
        self.threads = threads  # for the plain functions of its steps
        self.awaits = Awaits()  # what it has asked for
        self.steps: Steps | None = None  # once it has asked for one
        self.completed = False  # its success is written, in a transaction of the task
        self.parted = False  # its run is over, and what becomes of the job was written apart
        self.vouched = False  # what is recorded of its steps is complete, although this run has not asked for all of them
        self.committed = False  # and so is that transaction, for certain
        self.doors: list[GuardDoor] = []  # the guards of its steps
        self.lost = False  # a write of this run was refused: someone else may run the job now
        self.stop_reason: str | None = None  # why it is asked to stop; a long loop may look at it

    def key_for(self, name: str) -> str:
        text = f"{self.claim.job_id}/{self.claim.generation}/{check_name('key', name)}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    async def heartbeat(self, progress: float | None, note: str | None) -> None:
        if progress is not None and not 0 <= progress <= 1:
            raise UsageError(f"progress is from 0 to 1, not {progress!r}.")
        if not await self._store.claims.report(self.claim, progress=progress, note=note):
            raise self.lose()

    async def story(self) -> Story:
        if (story := await story_of(self._store, self.claim.job_id)) is None:
            raise self.lose()
        return story

    def lose(self) -> LeaseLost:
        self.lost = True
        return LeaseLost(
            f"Job {self.claim.job_id} is no longer held with token {self.claim.token}: someone else may run it now."
        )

    # --- its steps ---

    async def step(self, name: str, call: Call, *, branch: str | None = None) -> Any:
        self._check_goes_on()
        self._ask_late(call)
        return await run_step(self._its_steps(), name, call, branch=branch)

    async def effect(self, name: str, call: Call, manner: Manner, *, branch: str | None = None) -> Any:
        self._check_goes_on()
        self._ask_late(call)
        return await Effect(self._its_steps(), call, manner, self.check_held).run(name, branch=branch)

    def _ask_late(self, call: Call) -> None:
        """A run that began without being asked for is, before its first call that has no guard of its own."""
        if call.door is None and self._hold is not None and self._hold.late is not None:
            call.door = TaskDoor(self._hold)
        if isinstance(call.door, GuardDoor):
            self.doors.append(call.door)

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
        if self.claim.has_steps:
            await self._its_steps().load()

    async def check_steps(self) -> None:
        """Before its success is written: every step that an earlier attempt has recorded was asked for."""
        if not self.vouched and (self.steps is not None or self.claim.has_steps):
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
        if self.steps is None and not self.claim.has_steps:
            return []
        return await self._its_steps().give_up()

    @property
    def look_after(self) -> float | None:
        """Seconds until what it has given up is looked up again."""
        return None if self.steps is None else self.steps.look_after

    def _its_steps(self) -> Steps:
        if self.steps is None:
            home = None if self._hold is None else self._hold.work
            stopped = self._is_stopped
            self.steps = Steps(self.claim, self._store.steps, home, lost=self.lose, stopped=stopped)
        return self.steps

    def _is_stopped(self) -> bool:
        return self.stop_reason is not None

    def check_held(self) -> None:
        """As far as this process knows: a call that cannot be taken back is not begun by whom may have lost the job."""
        if self._hold is not None and monotonic() >= self._hold.until:
            raise self.lose()

    def _check_goes_on(self) -> None:
        if self._hold is not None and self._hold.over:
            raise UsageError(
                f"The run of job {self.claim.job_id} has ended: a step belongs to a task that waits for it."
            )
        self._check_not_completed()

    def _check_not_completed(self) -> None:
        if self.completed:
            raise UsageError(f"Job {self.claim.job_id} is completed already: a run ends once.")

    # --- success together with the task's own rows ---

    @asynccontextmanager
    async def commit(self, result: Any, block: Block) -> AsyncIterator[Tx]:
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

    async def complete(self, tx: Any, result: Any) -> None:
        await self._finish(tx, result)
        self.completed = True

    async def _finish(self, tx: Any, result: Any) -> None:
        if self.completed:
            self._reopen()  # perhaps that was rolled back: its token tells
        self.awaits.check()
        await self.check_steps()
        text = None if result is None else encode(result, limit=RESULT_LIMIT, where="result")
        sent_apart(self._hold, self.claim, Done())
        try:
            await self._store.claims.finish([Finish(self.claim, Done(text))], tx=tx)
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
            return await self._store.claims.settle(self.claim.job_id, self.claim.token)
        except StoreError as error:
            raise lost from error

    # --- for what is carried by jobs ---

    def record_in(self, port: StepsPort) -> Steps:
        """Its steps, written in this way from now on."""
        steps = self._its_steps()
        steps.log.write_to(port)
        return steps

    @property
    def portal(self) -> Portal:
        """To the loop of its worker."""
        if self._process != os.getpid():
            raise NotOpen(
                f"The job {self.claim.job_id} belongs to the process that runs it, and this is a fork of that one. "
                "Return what the child has found, and go on with the job in the parent."
            )
        return self._portal

    def __repr__(self) -> str:
        return f"<Attempt {self.claim.attempt} of job {self.claim.job_id}>"
