"""A store whose calls are written into the history: the production code above it does not know that it is watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from holdfast.jobs.lookups import LOOKED_BY
from holdfast.kernel.outcomes import Done, Outcome, Retry, Snooze
from holdfast.store.records import Claim, Enqueued, Finish, Lease, NewJob, Pruned, Renewal, Rescue
from holdfast.store.sqlite.claims import Claims
from holdfast.store.sqlite.history import History as Kept
from holdfast.store.sqlite.holds import Holds
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.schedules import Schedules
from holdfast.store.sqlite.steps import Steps
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.subject import File
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.store.states import Held
from holdfast.store.steps import Resolved, Step, StepRecord
from holdfast.testing.simulation.history import BY_LOOK, Call, History

Asked = list[tuple[str, int, str, float]]


class RecordedStore(SqliteStore):
    def __init__(self, path: str, history: History) -> None:
        super().__init__(path, synchronous="OFF")
        self._told = history
        self.claims = RecordedClaims(self, history)
        self.holds = RecordedHolds(self, history)
        self.leases = RecordedLeases(self, history)
        self.schedules = RecordedSchedules(self, history)
        self.steps = RecordedSteps(self, history)
        self.history = RecordedKept(self, history)

    def transaction(self) -> SqliteTx:
        return RecordedTx(super().transaction(), self._told)


class RecordedTx(SqliteTx):
    """Finishes in a transaction are answered by its end: until then nobody knows."""

    def __init__(self, tx: SqliteTx, history: History) -> None:
        super().__init__(tx._begin, tx.path, tx._hint)  # noqa: SLF001  it takes its place
        self._history = history
        self._finishes: list[tuple[Call, list[bool]]] = []

    async def ending(self, verb: str, asked: Any, finish: Any) -> list[bool]:
        call = self._history.ask(verb, asked)
        try:
            answer: list[bool] = await finish()
        except Exception as error:
            self._history.fail(call, error)
            raise
        self._finishes.append((call, answer))
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        finishes, self._finishes = self._finishes, []
        try:
            await super().__aexit__(kind, error, trace)
        except Exception as failure:
            for call, _ in finishes:
                self._history.fail(call, failure)
            raise
        for call, answer in finishes:
            if kind is None:
                self._history.answer(call, answer)
            else:
                self._history.fail(call, RuntimeError(f"rolled back: {kind.__name__}"))


class RecordedClaims(Claims):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        work = partial(super().claim, wants, lease=lease, worker=worker)
        return await self._history.call("claim", dict(wants), work)

    async def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        work = partial(super().claim_suspect, queues, lease=lease, worker=worker)
        return await self._history.call("claim_suspect", None, work)

    async def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        return await self._history.call("renew", _held(claims), partial(super().renew, claims, lease=lease))

    async def finish(
        self, finishes: Sequence[Finish], *, tx: object | None = None, parks: bool = False
    ) -> list[bool]:
        work = partial(super().finish, finishes, tx=tx, parks=parks)
        if isinstance(tx, RecordedTx):
            return await tx.ending("finish", _asked(finishes, together=not parks), work)
        return await self._history.call("finish", _asked(finishes), work)

    async def finish_and_claim(
        self, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> tuple[Sequence[bool | None], list[Claim]]:
        call = self._history.ask("finish", _asked(finishes))
        try:
            accepted, claims = await super().finish_and_claim(finishes, wants, lease=lease, worker=worker)
        except Exception as error:
            self._history.fail(call, error)
            raise
        self._history.answer(call, accepted)
        self._history.event("claimed with finish", _held(claims))
        return accepted, claims

    async def release(self, claims: Sequence[Claim], *, tx: object | None = None) -> list[bool]:
        work = partial(super().release, claims, tx=tx)
        if isinstance(tx, RecordedTx):
            return await tx.ending("release", _held(claims), work)
        return await self._history.call("release", _held(claims), work)

    async def settle(self, job_id: str, token: int) -> bool:
        return await self._history.call("settle", (job_id, token), partial(super().settle, job_id, token))

    async def rescue(self, *, limit: int = 100, tx: object | None = None) -> list[Rescue]:
        return await self._history.call("rescue", None, partial(super().rescue, limit=limit, tx=tx))

    async def rescue_worker(self, worker: str, *, tx: object | None = None) -> list[Rescue]:
        work = partial(super().rescue_worker, worker, tx=tx)
        return await self._history.call("rescue_worker", worker, work)


class RecordedHolds(Holds):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def promote(self, *, window: int = 100, limit: int = 500) -> int:
        return await self._history.call("promote", None, partial(super().promote, window=window, limit=limit))

    async def hold(self, claims: Sequence[Claim], reason: Held, *, tx: object | None = None) -> list[bool]:
        work = partial(super().hold, claims, reason, tx=tx)
        if isinstance(tx, RecordedTx):
            return await tx.ending("hold", _held(claims), work)
        return await self._history.call("hold", _held(claims), work)

    async def unhold(
        self,
        reason: Held,
        *,
        queue: str | None = None,
        tasks: Sequence[str] | None = None,
        guard: str | None = None,
        limit: int = 500,
    ) -> int:
        work = partial(super().unhold, reason, queue=queue, tasks=tasks, guard=guard, limit=limit)
        return await (self._history.call("unhold", (queue, guard), work) if reason is Held.GUARD else work())

    async def open_gates(self, numbers: Mapping[str, int]) -> dict[str, int]:
        return await self._history.call("open_gates", dict(numbers), partial(super().open_gates, numbers))

    async def shut_gates(
        self,
        queues: Sequence[str],
        *,
        keys: Sequence[str] = (),
        guards: Sequence[str] = (),
        tasks: Sequence[str] = (),
        window: int = 100,
        limit: int = 1000,
    ) -> int:
        work = partial(
            super().shut_gates, queues, keys=keys, guards=guards, tasks=tasks, window=window, limit=limit
        )
        return await self._history.call("shut_gates", (tuple(keys), tuple(guards)), work)

    async def expire(self, *, limit: int = 500) -> int:
        return await self._history.call("expire", None, partial(super().expire, limit=limit))

    async def repair(self, *, limit: int = 500) -> int:
        return await self._history.call("repair", None, partial(super().repair, limit=limit))


class RecordedLeases(Leases):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def acquire(self, name: str, *, owner: str, ttl: float) -> Lease | None:
        work = partial(super().acquire, name, owner=owner, ttl=ttl)
        return await self._history.call("acquire", (name, owner), work)

    async def renew(self, lease: Lease, *, ttl: float) -> Lease | None:
        work = partial(super().renew, lease, ttl=ttl)
        return await self._history.call("renew_lease", (lease.name, lease.token), work)

    async def release(self, lease: Lease) -> bool:
        asked = (lease.name, lease.token)
        return await self._history.call("release_lease", asked, partial(super().release, lease))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._history.call("prune_leases", None, partial(super().prune, limit=limit))


class RecordedSchedules(Schedules):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def tick(self, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        work = partial(super().tick, schedule, nominal, job)
        return await self._history.call("tick", (schedule, nominal, job.id), work)


class RecordedSteps(Steps):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def write(self, claim: Claim, step: Step) -> bool:
        asked = (claim.job_id, claim.token, step.name, str(step.progress))
        return await self._history.call("step", asked, partial(super().write, claim, step))

    async def load(self, job_id: str, generation: int) -> list[StepRecord]:
        return await self._history.call("load", (job_id, 0), partial(super().load, job_id, generation))

    async def resolve(
        self, job_id: str, *, actor: str, done: bool, effect: str | None = None, **rest: Any
    ) -> Resolved:
        """Of a look-up; what the operator decides is told by himself."""
        work = partial(super().resolve, job_id, actor=actor, done=done, effect=effect, **rest)
        return await (
            self._history.call(BY_LOOK, (job_id, effect, done), work) if actor == LOOKED_BY else work()
        )

    async def looked(self, job_id: str, token: int, *, after: float | None, counted: bool = True) -> bool:
        work = partial(super().looked, job_id, token, after=after, counted=counted)
        return await self._history.call("looked", (job_id, token, after, counted), work)


class RecordedKept(Kept):
    def __init__(self, file: File, history: History) -> None:
        super().__init__(file)
        self._history = history

    async def prune(self, *, keep: float) -> Pruned:
        return await self._history.call("prune", None, partial(super().prune, keep=keep))


def _held(claims: Sequence[Claim]) -> list[tuple[str, int]]:
    return [(claim.job_id, claim.token) for claim in claims]


def _asked(finishes: Sequence[Finish], *, together: bool = False) -> Asked:
    return [(item.claim.job_id, item.claim.token, *_told(item.outcome, together)) for item in finishes]


def _told(outcome: Outcome, together: bool) -> tuple[str, float]:
    """Its name and its seconds; a success that commits with rows is an `effect`."""
    name = "effect" if together and isinstance(outcome, Done) else type(outcome).__name__
    return name, outcome.after if isinstance(outcome, Retry | Snooze) else 0.0
