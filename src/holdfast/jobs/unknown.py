"""Unknown jobs: an effect of theirs may have been done, and only a person can say. Every decision names who took it."""

from __future__ import annotations

from typing import Any

from holdfast.jobs.blocking import inner
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import UsageError
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.store.ports import Store
from holdfast.store.records import JobRecord
from holdfast.store.states import State
from holdfast.store.steps import Resolved, StepRecord


@must_await_all("hf.unknown")
class UnknownJobs:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(
        self, *, task: str | None = None, queue: str | None = None, limit: int = 100
    ) -> list[JobRecord]:
        """Newest first."""
        return await self._store.jobs.find(state=State.UNKNOWN, task=task, queue=queue, limit=limit)

    async def steps(self, job: JobRecord) -> list[StepRecord]:
        """What a job has done so far, and which of its effects are unknown."""
        return await self._store.steps.load(job.id, job.generation)

    async def resolve(
        self,
        job_id: str,
        *,
        actor: str,
        done: bool,
        effect: str | None = None,
        result: Any = None,
        tx: Any = None,
    ) -> Resolved:
        """Say whether the effect was done, and with which result; the job goes on from there.

        One that was not done will be done. `effect` is needed when several are unknown. With `tx` the decision is part of
        that transaction.
        """
        if result is not None and not done:
            raise UsageError("A result is of an effect that was done: give it with done=True.")
        text = None if result is None else encode(result, limit=RESULT_LIMIT, where="result")
        return await self._store.steps.resolve(
            job_id, actor=actor, done=done, effect=effect, result=text, tx=inner(tx)
        )
