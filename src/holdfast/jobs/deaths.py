"""Rescue jobs of dead workers. One that has killed three workers is dead, and its handlers hear of it in that commit."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.blocking import Portal
from holdfast.jobs.job import Job
from holdfast.jobs.registry import Registry
from holdfast.kernel.awaits import to_the_end
from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import TROUBLE, HoldfastError, TransactionEnded
from holdfast.kernel.masking import hide, secret_values
from holdfast.kernel.spawn import is_cancelled
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, JobRecord, Rescue
from holdfast.store.states import State

_PART = 100  # jobs of one transaction
_HANDLER_LIMIT = 3.0  # seconds for one job's handlers: less than a SQLite transaction may take
_TRIES = 3  # of one job, for what may be the store's fault
_MAY_PASS = (*TROUBLE, TransactionEnded, TimeoutError)
Rescuer = Callable[[Any], Awaitable[list[Rescue]]]


class Deaths:
    def __init__(self, store: Store, registry: Registry, portal: Portal) -> None:
        self._store, self._registry, self._portal = store, registry, portal
        self._part = _PART
        self._tries = Counter[str]()  # by job: how often telling its handlers ended in what may pass
        self._secrets: dict[str, list[str]] = {}  # by job: what its handlers may know, and nobody shall read

    async def rescue(self) -> bool:
        """Put back jobs whose lease has ended; returns whether there may be more."""
        rescued = await self._together(lambda tx: self._store.claims.rescue(limit=self._part, tx=tx))
        more = len(rescued) >= self._part
        self._part = min(_PART, self._part * 2)
        return more

    async def rescue_worker(self, worker: str) -> list[Rescue]:
        """The same at once for a worker whose process is known to be dead."""
        await self._told(self._store.workers.bury(worker))
        return await self._together(lambda tx: self._store.claims.rescue_worker(worker, tx=tx))

    async def _together(self, rescue: Rescuer) -> list[Rescue]:
        if not self._registry.hears_deaths:
            rescued = await rescue(None)
        else:
            rescued = await self._with_handlers(rescue)
        for each in rescued:
            note("job.rescued", job=each.job_id, task=each.task, worker=each.worker, state=each.state)
            if each.state is State.DEAD:
                told = f"its worker died under it, {each.interruptions} times"
                note("job.died", job=each.job_id, task=each.task, error=told)
            if each.state is State.DEAD and self._registry.hooks.heard("on_dead"):
                await self._tell_hooks(each)
        if rescued:
            await self._told(
                self._store.workers.charge(Counter(each.worker for each in rescued if each.worker))
            )
        return rescued

    async def _told(self, write: Awaitable[object]) -> None:
        """For people who look at workers: a failure keeps no job from coming back."""
        try:
            await write
        except HoldfastError as error:
            note("worker.not_shown", worker=None, error=repr(error))

    async def _tell_hooks(self, dead: Rescue) -> None:
        record = await self._store.jobs.get(dead.job_id)
        if record is not None:
            job = Job(Attempt(as_claim(record), self._store, self._portal))
            await self._registry.hooks.tell("on_dead", job, RuntimeError(record.reason))

    async def _with_handlers(self, rescue: Rescuer) -> list[Rescue]:
        """Jobs must come back, whatever handlers do: again without those that failed, which the others do not suffer for."""
        failed = set[str]()
        while True:
            telling: list[Rescue] = []
            try:
                async with self._store.transaction() as tx:
                    rescued = await rescue(tx)
                    for each in rescued:
                        if each.state is State.DEAD and each.job_id not in failed:
                            telling.append(each)
                            await self._tell_in_time(each, tx)
            except Exception as error:
                if not telling:
                    raise  # no handler's failure: the next round tries again
                if self._is_final(telling[-1], error):
                    failed.add(telling[-1].job_id)
                elif isinstance(error, TROUBLE):
                    raise
            else:
                self._tries.clear()
                self._secrets.clear()
                return rescued

    def _is_final(self, dead: Rescue, error: Exception) -> bool:
        """What may be the store's trouble, or a process that stood still, is tried again; not for ever: others wait."""
        if isinstance(error, TransactionEnded | TimeoutError):
            self._part = 1  # there may have been too many of them for one transaction
        if isinstance(error, _MAY_PASS):
            self._tries[dead.job_id] += 1
            if self._tries[dead.job_id] < _TRIES:
                return False
        told = hide(repr(error), self._secrets.pop(dead.job_id, ()))
        note("on_dead.failed", job=dead.job_id, task=dead.task, error=told)
        return True

    async def _tell_in_time(self, dead: Rescue, tx: Tx) -> None:
        try:
            async with timeout(_HANDLER_LIMIT):
                await self._tell(dead, tx)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise RuntimeError("an on_dead handler was cancelled from within") from error

    async def _tell(self, dead: Rescue, tx: Tx) -> None:
        for handler in self._registry.on_dead(dead.task):
            record = await self._store.jobs.get(dead.job_id, tx=tx)
            if record is not None:
                self._secrets[dead.job_id] = secret_values(record.args)
                await to_the_end(handler(Job(Attempt(as_claim(record), self._store, self._portal)), tx))


def as_claim(record: JobRecord) -> Claim:
    """A job that nobody runs, for those who are given a job."""
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
