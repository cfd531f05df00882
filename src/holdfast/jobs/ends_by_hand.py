"""Jobs that are cancelled by a person or a program: what handlers write is in that transaction, or nothing is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from holdfast.jobs.blocking import inner
from holdfast.jobs.ends import Ends, HandlerFailed
from holdfast.kernel.errors import CommitUnknown
from holdfast.store.ports import Store, Tx
from holdfast.store.records import JobRecord
from holdfast.store.states import State

T = TypeVar("T")
_PART = 100  # jobs of one transaction
_TRIES = 3  # of one whose commit has had no answer


class EndsByHand:
    """In the caller's transaction when there is one. A handler that fails raises there, and of this call nothing is left."""

    def __init__(self, store: Store, ends: Ends) -> None:
        self._store, self._ends = store, ends

    async def cancel(self, job_id: str, reason: str, *, running: bool, tx: Any) -> State | None:
        tx = inner(tx)
        if not self._is_heard():
            return await self._store.jobs.cancel(job_id, reason, running=running, tx=tx)
        return await self._told(lambda own: self._cancel(job_id, reason, own, running=running), tx)

    async def discard(self, job_ids: Sequence[str], *, actor: str, reason: str, tx: Any) -> list[bool]:
        tx = inner(tx)
        if not self._is_heard():
            return await self._store.dead.discard(job_ids, actor=actor, reason=reason, tx=tx)
        answers: list[bool] = []
        for start in range(0, len(job_ids), _PART):
            part = job_ids[start : start + _PART]
            answers += await self._told(partial(self._discard, part, actor, reason), tx)
        return answers

    def _is_heard(self) -> bool:
        return self._ends.hears(State.CANCELLED) or self._ends.hooks_hear(State.CANCELLED)

    async def _cancel(
        self, job_id: str, reason: str, tx: Tx, *, running: bool
    ) -> tuple[State | None, list[JobRecord]]:
        met = await self._store.jobs.end(job_id, reason, running=running, tx=tx)
        if met is None or not met.has_ended:
            return None if met is None else met.state, []
        return met.state, await self._tell([job_id], tx)

    async def _discard(
        self, job_ids: Sequence[str], actor: str, reason: str, tx: Tx
    ) -> tuple[list[bool], list[JobRecord]]:
        answers = await self._store.dead.discard(job_ids, actor=actor, reason=reason, tx=tx)
        gone = [job_id for job_id, ok in zip(job_ids, answers, strict=True) if ok]
        return answers, await self._tell(gone, tx)

    async def _tell(self, job_ids: Sequence[str], tx: Tx) -> list[JobRecord]:
        try:
            told = [await self._ends.tell(job_id, tx, of=(State.CANCELLED,)) for job_id in job_ids]
        except HandlerFailed as failed:
            raise failed.error from None
        return [record for record in told if record is not None]

    # --- the transaction ---

    async def _told(self, act: Callable[[Tx], Awaitable[tuple[T, list[JobRecord]]]], tx: Any) -> T:
        if tx is None:
            answer, ended = await self._in_our_own(act)
        else:
            theirs = await self._store.joined(tx)
            async with theirs.savepoint():
                answer, ended = await act(theirs)
        if self._ends.hooks_hear(State.CANCELLED):
            for record in ended:
                await self._ends.tell_hooks(record)
        return answer

    async def _in_our_own(
        self, act: Callable[[Tx], Awaitable[tuple[T, list[JobRecord]]]]
    ) -> tuple[T, list[JobRecord]]:
        """A commit whose answer was lost is made again: what is cancelled already is left alone, and told to nobody twice."""
        self._store.check_free()
        for _ in range(_TRIES):
            try:
                async with self._store.transaction() as tx:
                    found = await act(tx)
            except CommitUnknown as unknown:
                lost = unknown
            else:
                return found
        raise lost
