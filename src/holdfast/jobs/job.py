"""The running job, as its task sees it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from holdfast.kernel.codec import encode
from holdfast.kernel.errors import CommitUnknown, LeaseLost, StoreError, UsageError
from holdfast.kernel.names import check_name, check_text
from holdfast.kernel.outcomes import RESULT_LIMIT, Done
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, Finish

T = TypeVar("T")
_NOTE_LIMIT = 500


class Job:
    """One run of a job: a first parameter annotated `Job` receives it."""

    __slots__ = ("_claim", "_run_sync", "_store", "completed", "lost", "stop_reason")

    def __init__(self, claim: Claim, store: Store, run_sync: Callable[..., Any]) -> None:
        self._claim, self._store, self._run_sync = claim, store, run_sync
        self.completed = False  # its success is written, in a transaction of the task
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

    async def heartbeat(self, progress: float | None = None, note: str | None = None) -> None:
        """Say how far it is, for people: `progress` from 0 to 1, and a few words. Raises LeaseLost when it is no longer ours."""
        if progress is not None and not 0 <= progress <= 1:
            raise UsageError(f"progress is from 0 to 1, not {progress!r}.")
        if note is not None:
            check_text("note", note, _NOTE_LIMIT)
        if not await self._store.claims.report(self._claim, progress=progress, note=note):
            self.lost = True
            raise LeaseLost(
                f"Job {self.id} is no longer held with token {self.token}: someone else may run it now."
            )

    # --- success together with the task's own rows ---

    @asynccontextmanager
    async def commit(self, result: Any = None) -> AsyncIterator[Tx]:
        """These rows and the job's success commit together, or neither does.

        `async with job.commit() as tx:` raises LeaseLost, and rolls back, when someone else may run the job now.
        """
        try:
            async with self._store.transaction() as tx:
                yield tx
                await self._finish(tx, result)
        except CommitUnknown as lost:
            if not await self._settled(lost):
                raise
        self.completed = True

    async def complete(self, *, tx: Any, result: Any = None) -> None:
        """The same in the caller's own transaction: the job has succeeded if and only if that commits."""
        await self._finish(tx, result)
        self.completed = True

    async def _finish(self, tx: Any, result: Any) -> None:
        if self.completed:
            raise UsageError(f"Job {self.id} is completed already: a run ends once.")
        text = None if result is None else encode(result, limit=RESULT_LIMIT, where="result")
        try:
            await self._store.claims.finish([Finish(self._claim, Done(text))], tx=tx)
        except LeaseLost:
            self.lost = True
            raise

    async def _settled(self, lost: CommitUnknown) -> bool:
        try:
            return await self._store.claims.settle(self.id, self.token)
        except StoreError as error:
            raise lost from error

    @property
    def blocking(self) -> BlockingJob:
        """The same for tasks that are plain functions."""
        return BlockingJob(self, self._run_sync)

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.task}, attempt {self.attempt}>"


class BlockingJob:
    """A running job for sync tasks: each call waits for the worker's loop."""

    def __init__(self, job: Job, run_sync: Callable[..., Any]) -> None:
        self._job, self._run_sync = job, run_sync

    def heartbeat(self, progress: float | None = None, note: str | None = None) -> None:
        self._wait(lambda: self._job.heartbeat(progress, note))

    def _wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        found: T = self._run_sync(work)
        return found
