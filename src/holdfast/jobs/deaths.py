"""Rescue jobs of dead workers, and end what has expired. What their handlers write is in the commit of that end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holdfast.jobs.blocking import Portal
from holdfast.jobs.ends import Ends, HandlerFailed, tell_failure
from holdfast.jobs.registry import Registry
from holdfast.kernel.errors import TROUBLE, HoldfastError, TransactionEnded
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Ended, Rescue
from holdfast.store.states import State

_PART = 100  # jobs of one transaction
_HANDLER_LIMIT = 3.0  # seconds for one job's handlers: less than a SQLite transaction may take
_TRIES = 3  # of one job, for what may be the store's fault
_MAY_PASS = (*TROUBLE, TransactionEnded, TimeoutError)
E = TypeVar("E", Rescue, Ended)


class Deaths:
    def __init__(self, store: Store, registry: Registry, portal: Portal) -> None:
        self._store, self._ends = store, Ends(store, registry, portal)
        self._part = _PART
        self._tries = Counter[str]()  # by job: how often telling its handlers ended in what may pass

    async def rescue(self) -> bool:
        """Put back jobs whose lease has ended; returns whether there may be more."""
        rescued = await self._rescued(lambda tx: self._store.claims.rescue(limit=self._part, tx=tx))
        return self._may_be_more(len(rescued))

    async def rescue_worker(self, worker: str) -> list[Rescue]:
        """The same at once for a worker whose process is known to be dead."""
        await self._told(self._store.workers.bury(worker))
        return await self._rescued(lambda tx: self._store.claims.rescue_worker(worker, tx=tx))

    async def expire(self) -> bool:
        """Cancel jobs whose time is over; returns whether there may be more."""
        if not self._hears(State.CANCELLED, State.UNKNOWN):
            return await self._store.holds.expire(limit=_MANY) >= _MANY
        ended = await self._together(lambda tx: self._store.holds.end_expired(limit=self._part, tx=tx))
        return self._may_be_more(len(ended))

    def _may_be_more(self, number: int) -> bool:
        more = number >= self._part
        self._part = min(_PART, self._part * 2)
        return more

    def _hears(self, *states: State) -> bool:
        return self._ends.hears(*states) or any(map(self._ends.hooks_hear, states))

    async def _rescued(self, rescue: Callable[[Any], Awaitable[list[Rescue]]]) -> list[Rescue]:
        rescued = await self._together(rescue)
        for each in rescued:
            note("job.rescued", job=each.job_id, task=each.task, worker=each.worker, state=each.state)
            if each.state is State.DEAD:
                told = f"its worker died under it, {each.interruptions} times"
                note("job.died", job=each.job_id, task=each.task, error=told)
        if rescued:
            await self._told(
                self._store.workers.charge(Counter(each.worker for each in rescued if each.worker))
            )
        return rescued

    async def _together(self, act: Callable[[Any], Awaitable[list[E]]]) -> list[E]:
        if self._ends.hears(*_ENDS):
            ended = await self._with_handlers(act)
        else:
            ended = await act(None)
        for each in ended:
            if each.state in _ENDS and self._ends.hooks_hear(each.state):
                await self._tell_hooks(each.job_id)
        return ended

    async def _told(self, write: Awaitable[object]) -> None:
        """For people who look at workers: a failure keeps no job from coming back."""
        try:
            await write
        except HoldfastError as error:
            note("worker.not_shown", worker=None, error=repr(error))

    async def _tell_hooks(self, job_id: str) -> None:
        record = await self._store.jobs.get(job_id)
        if record is not None:
            await self._ends.tell_hooks(record)

    async def _with_handlers(self, act: Callable[[Any], Awaitable[list[E]]]) -> list[E]:
        """Jobs must come back, whatever handlers do: again without those that failed, which the others do not suffer for."""
        failed = set[str]()
        while True:
            telling: list[E] = []
            try:
                async with self._store.transaction() as tx:
                    ended = await act(tx)
                    for each in ended:
                        if each.job_id not in failed and self._ends.concern(each.state, each.task):
                            telling.append(each)
                            await self._tell(each, tx)
            except Exception as error:
                if not telling:
                    raise  # no handler's failure: the next round tries again
                if await self._is_final(telling[-1], error):
                    failed.add(telling[-1].job_id)
                elif isinstance(error, TROUBLE):
                    raise
            else:
                self._tries.clear()
                return ended

    async def _tell(self, each: Rescue | Ended, tx: Tx) -> None:
        await self._ends.tell(each.job_id, tx, limit=_HANDLER_LIMIT)

    async def _is_final(self, ended: Rescue | Ended, error: Exception) -> bool:
        """What may be the store's trouble, or a process that stood still, is tried again; not for ever: others wait."""
        cause = error.error if isinstance(error, HandlerFailed) else error
        if isinstance(cause, TransactionEnded | TimeoutError):
            self._part = 1  # there may have been too many of them for one transaction
        if isinstance(cause, _MAY_PASS):
            self._tries[ended.job_id] += 1
            if self._tries[ended.job_id] < _TRIES:
                return False
        if isinstance(error, HandlerFailed):
            tell_failure(error)
        elif (record := await self._store.jobs.get(ended.job_id)) is not None:
            tell_failure(HandlerFailed(ended.state, record, error))
        return True


_MANY = 500  # that have expired, when nobody writes with it
_ENDS = (State.DEAD, State.UNKNOWN, State.CANCELLED)
