"""What a program sees of its store: jobs, queues, and both from sync code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.events.catalog import EventType
from holdfast.events.emitting import Emitter
from holdfast.jobs.blocking import BlockingTx, Portal
from holdfast.jobs.handle import Handle
from holdfast.jobs.task import Call, Task
from holdfast.kernel.awaits import must_await_all
from holdfast.sqlalchemy.engines import Engines
from holdfast.store.event_records import Emitted
from holdfast.store.ports import Store
from holdfast.store.records import Count, JobRecord, Paused
from holdfast.store.states import State

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

P = ParamSpec("P")
R = TypeVar("R")


@must_await_all("hf.jobs")
class JobsView:
    """Look at jobs, and cancel them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, job_id: str) -> JobRecord | None:
        """The job as it is stored, or None. One that is queued says in `held_by` what keeps it from running, and who has it."""
        record = await self._store.jobs.get(job_id)
        return None if record is None else (await self._store.holds.explained([record]))[0]

    async def cancel(self, job_id: str, reason: str = "cancelled by hand") -> State | None:
        """Cancel a queued job, ask a running one to stop. Returns the state it is in now; None: no such job."""
        return await self._store.jobs.cancel(job_id, reason)

    def handle(self, job_id: str, returns: Any = Any) -> Handle[Any]:
        """A handle on a job by its id, to wait for its result."""
        return Handle(self._store, job_id, returns=returns)


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
        """How many live jobs there are, by queue, state and reason."""
        return await self._store.jobs.count()


class Blocking:
    """The engine for sync code. An error on a running loop."""

    def __init__(self, portal: Portal, emitter: Emitter, engines: Engines) -> None:
        self._portal, self._emitter, self._engines = portal, emitter, engines

    def emit(
        self,
        type_: EventType[Any] | str,
        data: Any = None,
        *,
        key: str | None = None,
        tx: Any = None,
        expect: int | None = None,
    ) -> Emitted:
        """Store an event, in the transaction `tx` when one is given."""
        return self._emitter.emit_sync(type_, data, key=key, tx=tx, expect=expect)

    def enqueue(self, task: Task[P, R] | Call[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job, and return when it is stored for good."""
        return task.enqueue_sync(*args, **kwargs)

    def result(self, handle: Handle[R], timeout: float | None = None) -> R:
        """Wait for a job's result."""
        return self._portal.run(lambda: handle.result(timeout))

    def transaction(self) -> AbstractContextManager[BlockingTx]:
        """A transaction of the store's database for this thread: `tx` is also what `enqueue_sync` takes."""
        return self._portal.entered(self._portal.transaction())

    def sqlalchemy(self) -> Engine:
        """SQLAlchemy's sync engine over this database: on SQLite over Holdfast's own connections, on PostgreSQL over psycopg."""
        return self._engines.blocking()

    def session(self, **options: Any) -> Session:
        """`with hf.blocking.session() as session:` SQLAlchemy's session, which is also what `tx=` takes. You commit it."""
        return self._engines.blocking_session(**options)

    def close(self) -> None:
        """Close the store, when sync code has opened it. Not needed at the end of a program."""
        self._engines.close_blocking()
        self._portal.close()
