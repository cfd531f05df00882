"""Ends of claims that handlers write with: each in a transaction of its own, and not in a batch with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from holdfast.jobs.ends import Ends, HandlerFailed, tell_failure
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import CommitUnknown, LeaseLost, TransactionEnded
from holdfast.kernel.outcomes import Cancel, Dead, Done, Retry, Snooze, Unknown
from holdfast.store.job_ports import Claims
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Claim, Finish
from holdfast.store.states import State

_TRIES = 3  # of one end, while its transaction does not last: it may be the handler that takes so long
_TOLD = (State.UNKNOWN, State.CANCELLED)  # a death was told before
_BACK = Snooze(after=0.0)
PutBack = Callable[[Sequence[Claim], Tx | None], Awaitable[list[bool]]]


class EndsOfRuns:
    def __init__(self, store: Store, ends: Ends) -> None:
        self._store, self._ends = store, ends
        self._claims: Claims = store.claims
        self._tries = Counter[tuple[str, int]]()  # by claim

    def concern(self, item: Finish) -> bool:
        """Whether a handler may have something to write with this end.

        What is put back is cancelled instead when it was asked to stop, and what has steps is unknown when one of them is open.
        """
        if type(item.outcome) is Done and not item.claim.has_steps:  # most of them: nobody is asked
            return False
        if not self._ends.hears(State.UNKNOWN, State.CANCELLED):
            return False
        task = item.claim.task
        match item.outcome:
            case Unknown():
                return self._ends.concern(State.UNKNOWN, task)
            case Done() | Dead():
                return item.claim.has_steps and self._ends.concern(State.UNKNOWN, task)
            case Cancel() | Retry() | Snooze():
                return self._ends.concern(State.CANCELLED, task)

    async def finish(self, item: Finish) -> bool:
        """False: the claim was lost. What a handler raises is noted, and the job ends without it."""
        claim = item.claim
        try:
            return await self._told(item, lambda tx: self._claims.finish([item], tx=tx, parks=True))
        except CommitUnknown:
            if not await self._claims.settle(claim.job_id, claim.token):
                raise
            return True
        except HandlerFailed as failed:
            tell_failure(failed)
        [ok] = await self._claims.finish([item])
        return ok

    async def put_back(self, claims: Sequence[Claim], act: PutBack) -> list[bool]:
        """`act` is what puts them back; one that was asked to stop is cancelled by that."""
        if not self._ends.hears(State.CANCELLED):
            return await act(claims, None)
        apart = [claim for claim in claims if self._ends.concern(State.CANCELLED, claim.task)]
        rest = [claim for claim in claims if not self._ends.concern(State.CANCELLED, claim.task)]
        oks = dict(zip([_key(claim) for claim in rest], await act(rest, None) if rest else [], strict=True))
        for claim in apart:
            oks[_key(claim)] = await self._put_back(claim, act)
        return [oks[_key(claim)] for claim in claims]

    async def _put_back(self, claim: Claim, act: PutBack) -> bool:
        try:
            return await self._told(Finish(claim, _BACK), lambda tx: act([claim], tx))
        except HandlerFailed as failed:
            tell_failure(failed)
        [ok] = await act([claim], None)
        return ok

    async def _told(self, item: Finish, act: Callable[[Tx], Awaitable[list[bool]]]) -> bool:
        """Whether it was accepted, together with what the handlers of the state that it is in now have written."""
        claim, ok = item.claim, False
        try:
            async with self._store.transaction() as tx:
                [ok] = await act(tx)
                if ok:
                    await self._ends.tell(claim.job_id, tx, of=_TOLD)
                    crashpoint("end.told")
            crashpoint("end.committed")
        except LeaseLost:
            ok = False
        except TransactionEnded as error:
            await self._give_up_in_time(item, error)
            raise
        self._tries.pop(_key(claim), None)
        return ok

    async def _give_up_in_time(self, item: Finish, error: TransactionEnded) -> None:
        """It was cut off, or a statement of it had failed: perhaps that was the handler's doing."""
        key = _key(item.claim)
        self._tries[key] += 1
        if self._tries[key] < _TRIES:
            return
        del self._tries[key]
        if (record := await self._store.jobs.get(item.claim.job_id)) is not None:
            put_back = isinstance(item.outcome, Cancel | Retry | Snooze)
            raise HandlerFailed(State.CANCELLED if put_back else State.UNKNOWN, record, error) from error


def _key(claim: Claim) -> tuple[str, int]:
    return claim.job_id, claim.token
