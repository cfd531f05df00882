"""Rescue jobs of dead workers. One that has killed three workers is dead, and its handlers hear of it in that commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.jobs.job import Job
from holdfast.jobs.registry import Registry
from holdfast.kernel.errors import TROUBLE, TransactionEnded
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, JobRecord, Rescue
from holdfast.store.states import State

_PART = 100
Rescuer = Callable[[Any], Awaitable[list[Rescue]]]


class Deaths:
    def __init__(self, store: Store, registry: Registry, run_sync: Callable[..., Any]) -> None:
        self._store, self._registry, self._run_sync = store, registry, run_sync

    async def rescue(self) -> bool:
        """Put back jobs whose lease has ended; returns whether there may be more."""
        rescued = await self._together(lambda tx: self._store.claims.rescue(limit=_PART, tx=tx))
        return len(rescued) >= _PART

    async def rescue_worker(self, worker: str) -> list[Rescue]:
        """The same at once for a worker whose process is known to be dead."""
        return await self._together(lambda tx: self._store.claims.rescue_worker(worker, tx=tx))

    async def _together(self, rescue: Rescuer) -> list[Rescue]:
        if not self._registry.hears_deaths:
            rescued = await rescue(None)
        else:
            rescued = await self._with_handlers(rescue)
        for each in rescued:
            note("job.rescued", job=each.job_id, task=each.task, worker=each.worker, state=each.state)
        return rescued

    async def _with_handlers(self, rescue: Rescuer) -> list[Rescue]:
        """Jobs must come back, whatever handlers do: again without those that failed, which the others do not suffer for."""
        failed, was_cut_off = set[str](), False
        while True:
            telling: list[Rescue] = []
            try:
                async with self._store.transaction() as tx:
                    rescued = await rescue(tx)
                    for each in rescued:
                        if each.state is State.DEAD and each.job_id not in failed:
                            telling.append(each)
                            await self._tell(each, tx)
            except TROUBLE:
                raise  # the next round tries again
            except Exception as error:
                if not telling:
                    raise
                if isinstance(error, TransactionEnded) and not was_cut_off:
                    was_cut_off = True  # the handler took so long, or this process stood still: once more
                    continue
                failed.add(telling[-1].job_id)
                note("on_dead.failed", job=telling[-1].job_id, task=telling[-1].task, error=repr(error))
            else:
                return rescued

    async def _tell(self, dead: Rescue, tx: Tx) -> None:
        for handler in self._registry.on_dead(dead.task):
            record = await self._store.jobs.get(dead.job_id)
            if record is not None:
                await handler(Job(as_claim(record), self._store, self._run_sync), tx)


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
