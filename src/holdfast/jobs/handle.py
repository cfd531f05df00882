"""A handle on a stored job: what became of it, and its result."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from holdfast.jobs.blocking import twin
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.clock import look_after, monotonic
from holdfast.kernel.codec import decode_stored
from holdfast.kernel.errors import JobCancelled, JobDead, JobMissing, JobUnknown
from holdfast.store.ports import Store
from holdfast.store.records import JobRecord, Standing
from holdfast.store.states import State

R = TypeVar("R")
_FIRST_LOOK, _LAST_LOOK = 0.005, 0.5  # seconds between looks, growing


class Canceller(Protocol):
    """Who cancels jobs, and tells the handlers of that end."""

    async def cancel(self, job_id: str, reason: str, *, running: bool, tx: Any) -> State | None: ...


@must_await_all("handle")
class Handle(Generic[R]):
    """What `enqueue` returns. `created` is False when a job with the same unique key was there already.

    Then `standing` tells of that one: its id, its state, when it is due, and whether it was replaced (`replace=True`).
    """

    def __init__(
        self,
        store: Store,
        job_id: str,
        *,
        ends: Canceller,
        created: bool = True,
        standing: Standing | None = None,
        returns: Any = Any,
    ) -> None:
        self._store, self._ends = store, ends
        self.id, self.created, self.standing, self._returns = job_id, created, standing, returns

    async def record(self) -> JobRecord:
        """The job as it is stored now."""
        record = await self._store.jobs.get(self.id)
        if record is None:
            raise JobMissing(
                f"There is no job {self.id}: its transaction has not committed, or it was pruned after its time."
            )
        return record

    async def status(self) -> State:
        """The state it is in now."""
        return (await self.record()).state

    async def cancel(
        self, reason: str = "cancelled by its caller", *, running: bool = True, tx: Any = None
    ) -> State:
        """Cancel it when it is queued, ask it to stop when it runs; with `running=False` leave it alone then.

        Returns the state it is in now.
        """
        state = await self._ends.cancel(self.id, reason, running=running, tx=tx)
        if state is None:
            raise JobMissing(f"There is no job {self.id} to cancel.")
        return state

    async def result(self, timeout: float | None = None) -> R:  # noqa: ASYNC109  it says more than TimeoutError
        """What the task returned. Waits for it; raises TimeoutError, JobDead, JobUnknown or JobCancelled."""
        give_up = None if timeout is None else monotonic() + timeout
        pause = _FIRST_LOOK
        while True:
            record = await self.record()
            if record.state in _ENDS:
                return self._told(record)
            left = pause if give_up is None else give_up - monotonic()
            if left <= 0:
                raise TimeoutError(f"Job {self.id} is {record.state} after {timeout:g} s.")
            await look_after(min(pause, left))
            pause = min(pause * 1.5, _LAST_LOOK)

    def _told(self, record: JobRecord) -> R:
        if record.state is State.DEAD:
            raise JobDead(f"Job {self.id} of task {record.task!r} is dead: {record.reason}")
        if record.state is State.UNKNOWN:
            raise JobUnknown(f"Job {self.id} of task {record.task!r} is unknown: {record.reason}")
        if record.state is State.CANCELLED:
            raise JobCancelled(f"Job {self.id} of task {record.task!r} was cancelled: {record.reason}")
        found: R = decode_stored(record.result or "null", self._returns)
        return found

    # --- for code without an event loop ---

    @property
    def _kept_in(self) -> Store:
        """Where it is kept."""
        return self._store

    record_sync = twin(record, "handle")
    status_sync = twin(status, "handle")
    cancel_sync = twin(cancel, "handle")
    result_sync = twin(result, "handle")

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


_ENDS = (State.SUCCEEDED, State.DEAD, State.UNKNOWN, State.CANCELLED)
