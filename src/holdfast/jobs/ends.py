"""Tells handlers how a job has ended, in the transaction of that end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.blocking import Portal
from holdfast.jobs.job import Job
from holdfast.jobs.registry import Registry
from holdfast.kernel.awaits import to_the_end
from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import TROUBLE, HoldfastError, LeaseLost, TransactionEnded
from holdfast.kernel.masking import hide, secret_values
from holdfast.kernel.spawn import is_cancelled
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, JobRecord
from holdfast.store.states import State

HANDLER_LIMIT = 10.0  # seconds for each handler
NOT_THEIRS = (*TROUBLE, TransactionEnded, LeaseLost)  # what a handler may raise that is no failure of its own
_ALL = (State.DEAD, State.UNKNOWN, State.CANCELLED)


class HandlerFailed(HoldfastError):
    """A handler of an end has raised this."""

    def __init__(self, state: State, record: JobRecord, error: BaseException) -> None:
        super().__init__(f"an on_{state} handler of job {record.id} failed: {error!r}")
        self.state, self.record, self.error = state, record, error


class Ends:
    """What follows an end: the program's handlers, and its hooks."""

    def __init__(self, store: Store, registry: Registry, portal: Portal) -> None:
        self._store, self._registry, self._portal = store, registry, portal

    def hears(self, *states: State) -> bool:
        """Whether there is any handler for jobs that end so."""
        return self._registry.hears_ends(*states)

    def concern(self, state: State, task: str) -> bool:
        return bool(self._registry.on_end(state, task))

    async def tell(
        self, job_id: str, tx: Tx, *, of: Sequence[State] = _ALL, limit: float = HANDLER_LIMIT
    ) -> JobRecord | None:
        """What the handlers write of the state that the job is in now, when it is one `of` these. Raises HandlerFailed."""
        record = await self._store.jobs.get(job_id, tx=tx)
        if record is None or record.state not in of:
            return record
        for handler in self._registry.on_end(record.state, record.task):
            try:
                async with timeout(limit):
                    await to_the_end(handler(self.job(record), tx))
            except NOT_THEIRS:
                raise
            except asyncio.CancelledError as error:
                if is_cancelled():
                    raise
                cause = RuntimeError(f"an on_{record.state} handler was cancelled from within")
                raise HandlerFailed(record.state, record, cause) from error
            except Exception as error:
                raise HandlerFailed(record.state, record, error) from error
        return record

    def job(self, record: JobRecord) -> Job:
        """One that nobody runs, for who is given a job."""
        task = self._registry.get(record.task)
        return Job(Attempt(as_claim(record), self._store, self._portal, task=task, reason=record.reason))

    async def tell_hooks(self, record: JobRecord) -> None:
        """Of one that did not end in a run of this process."""
        hooks, job = self._registry.hooks, self.job(record)
        if record.state is State.DEAD:
            await hooks.tell("on_dead", job, RuntimeError(record.reason))
        elif record.state in (State.UNKNOWN, State.CANCELLED):
            await hooks.tell(f"on_{record.state}", job, record.reason or "")

    def hooks_hear(self, state: State) -> bool:
        return self._registry.hooks.heard(f"on_{state}")


def tell_failure(failed: HandlerFailed) -> None:
    """The job has ended all the same, and a person hears of it."""
    record = failed.record
    told = hide(repr(failed.error), secret_values(record.args))
    if failed.state is State.UNKNOWN:
        note("on_unknown.failed", job=record.id, task=record.task, error=told)
    elif failed.state is State.CANCELLED:
        note("on_cancelled.failed", job=record.id, task=record.task, error=told)
    else:
        note("on_dead.failed", job=record.id, task=record.task, error=told)


def as_claim(record: JobRecord) -> Claim:
    """A job that nobody runs, as a claim."""
    return Claim(
        record.id,
        record.token or 0,
        record.lease_until or 0.0,
        record.task,
        record.queue,
        record.args,
        record.attempt,
        record.interruptions,
        False,
        record.enqueued_at,
        record.generation,
        tenant=record.tenant,
        correlation_id=record.correlation_id,
        causation_id=record.causation_id,
        trace=record.trace,
    )
