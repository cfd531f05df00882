"""What a program sees of its store: jobs and queues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar

from holdfast.jobs.blocking import inner
from holdfast.jobs.ends_by_hand import EndsByHand
from holdfast.jobs.handle import Handle
from holdfast.jobs.options import moment, seconds
from holdfast.jobs.story import Story, story_of
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.store.records import Count, JobRecord, Paused
from holdfast.store.states import State

P = ParamSpec("P")
R = TypeVar("R")


@must_await_all("hf.jobs")
class JobsView:
    """Look at jobs, cancel and move them."""

    def __init__(self, store: Store, ends: EndsByHand) -> None:
        self._store, self._ends = store, ends

    async def get(self, job_id: str) -> JobRecord | None:
        """The job as it is stored, or None. One that is queued says in `held_by` what keeps it from running, and who has it."""
        record = await self._store.jobs.get(job_id)
        return None if record is None else (await self._store.holds.explained([record]))[0]

    async def story(self, job_id: str) -> Story | None:
        """What was planned, each claim with its worker and end, what held it, its steps, its moves, and what persons decided.

        None: no such job. It is kept as long as the job; what is to stay longer, store: `story.as_json()`.
        """
        return await story_of(self._store, job_id)

    async def find(
        self,
        *,
        unique: str | Sequence[str] | None = None,
        tenant: str | None = None,
        correlation_id: str | None = None,
        states: Collection[State] | None = None,
        before: str | None = None,
        limit: int = 100,
        tx: Any = None,
    ) -> list[JobRecord]:
        """Jobs by one of their keys, newest first, in any state: those that are over too, while they are kept.

        `unique="post:7"`: those that have or had that key; `unique=["post:7", "post:8"]`: the newest of each, for a page of things.
        `tenant`: with `states` only those, and with `before=` the last id of one page the next. `correlation_id`: one story.
        """
        _check_one(unique=unique, tenant=tenant, correlation_id=correlation_id)
        jobs, within = self._store.jobs, inner(tx)
        if unique is not None:
            _check_without("unique", states=states, before=before)
            if isinstance(unique, str):
                return await jobs.of_unique([unique], each=limit, tx=within)
            if not isinstance(unique, Iterable):
                raise UsageError(f"unique is a key, or a list of keys; not {show(unique)}.")
            return (await jobs.of_unique(unique, tx=within))[:limit] if unique else []
        if tenant is not None:
            if states is not None and not states:
                return []
            return await jobs.of_tenant(tenant, states=states or (), before=before, limit=limit, tx=within)
        _check_without("correlation_id", states=states)
        return await jobs.find(correlation_id=correlation_id, before=before, limit=limit, tx=within)

    async def cancel(
        self, job_id: str, reason: str = "cancelled by hand", *, running: bool = True, tx: Any = None
    ) -> State | None:
        """Cancel a job that does not run. Returns the state it is in now; None: no such job.

        CANCELLED: it was, or is now. RUNNING: it was asked to stop; with `running=False` it was left alone, and nothing of
        it is undone. With `tx` it is cancelled when that transaction commits, and no worker takes it meanwhile.
        """
        return await self._ends.cancel(job_id, reason, running=running, tx=tx)

    async def move(
        self,
        job_id: str,
        *,
        at: float | datetime | None = None,
        delay: float | timedelta | None = None,
        priority: int | None = None,
        tx: Any = None,
    ) -> State | None:
        """Give a queued job another time or priority: `delay=0` is now. It keeps its id, arguments, keys, attempts and steps.

        QUEUED: it was moved. Any other state is what was met, and nothing was changed; None: no such job.
        """
        when, after = moment(at), seconds(delay)
        return await self._store.jobs.move(job_id, at=when, delay=after, priority=priority, tx=inner(tx))

    def handle(self, job_id: str, returns: Any = Any) -> Handle[Any]:
        """A handle on a job by its id, to wait for its result."""
        return Handle(self._store, job_id, ends=self._ends, returns=returns)


def _check_one(**given: object) -> None:
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        said = " and ".join(names) or "none of them"
        raise UsageError(f"Jobs are found by one of unique=, tenant= and correlation_id=; given was {said}.")


def _check_without(key: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name}= goes with tenant=, not with {key}=: look at what is found.")


@must_await_all("hf.queues")
class QueuesView:
    """Pause and resume queues for the whole fleet."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def pause(self, queue: str, *, by: str = "code") -> None:
        """No job of the queue is claimed from now on, by anyone; what runs goes on."""
        await self._store.queues.pause(queue, by=by)

    async def resume(self, queue: str, *, by: str = "code") -> None:
        await self._store.queues.resume(queue, by=by)

    async def paused(self) -> list[Paused]:
        return await self._store.queues.paused()

    async def count(self) -> list[Count]:
        """How many live jobs there are, by queue, state and reason.

        Of a thousand of one kind or more, workers keep the number, and `at` says when they counted: never in the time of who asks.
        """
        return await self._store.jobs.count()
