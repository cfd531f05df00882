"""A handle on a saga: how far it is, its result, a signal to it, and the wish to have it undone."""

from __future__ import annotations

from typing import Any

from holdfast.jobs.blocking import twin
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.clock import look_after, monotonic
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import SagaMissing, SagaStuck, SagaUndone, UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.store.ports import Store
from holdfast.store.saga_records import STUCK, SagaAnswer, SagaRecord, SagaState

_FIRST_LOOK, _LAST_LOOK = 0.005, 0.5  # seconds between looks, growing


@must_await_all("run")
class SagaRun:
    """What `start` returns. `created` is False when a saga with this id was there already."""

    def __init__(self, store: Store, id: str, *, created: bool, returns: Any = Any) -> None:  # noqa: A002  the word of sagas
        self._store, self.id, self.created, self._returns = store, id, created, returns

    async def record(self) -> SagaRecord:
        """The saga as it is stored now."""
        record = await self._store.sagas.get(self.id)
        if record is None:
            raise self._missing()
        return record

    async def status(self) -> SagaState:
        """The state it is in now: running, waiting, compensating, done, undone, needs_operator or parked."""
        return (await self.record()).state

    async def signal(self, name: str, value: Any = None, *, tx: Any = None) -> None:
        """Send it a value; `saga.signal(name)` in its function gets it, also when that comes there later."""
        text = encode(value, limit=RESULT_LIMIT, where="value")
        answer = await self._store.sagas.signal(self.id, name, text, tx=tx)
        if answer.outcome == "missing":
            raise self._missing()
        if answer.outcome == "over":
            raise UsageError(f"The saga {self.id!r} is {answer.state}: no signal reaches it any more.")

    async def cancel(self, reason: str = "cancelled by its caller", *, actor: str = "code") -> SagaState:
        """Have it undone: what it has done so far is compensated. Returns the state it is in now.

        A call that is under way comes to its end first. One that has passed its pivot is not cancelled: that is an error.
        """
        return accepted(self.id, await self._store.sagas.cancel(self.id, actor=actor, reason=reason))

    async def result(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109  it says more than TimeoutError
        """What its function returned. Waits for it; raises TimeoutError, SagaUndone, or SagaStuck when it needs a person."""
        give_up = None if timeout is None else monotonic() + check_seconds("timeout", timeout)
        pause = _FIRST_LOOK
        while True:
            record = await self.record()
            if record.finished_at is not None or record.state in STUCK:
                return self._told(record)
            left = pause if give_up is None else give_up - monotonic()
            if left <= 0:
                raise TimeoutError(f"The saga {self.id!r} is {record.state} after {timeout:g} s.")
            await look_after(min(pause, left))
            pause = min(pause * 1.5, _LAST_LOOK)

    def _told(self, record: SagaRecord) -> Any:
        if record.state is SagaState.UNDONE:
            raise SagaUndone(f"The saga {self.id!r} was undone: {record.error}")
        if record.state in STUCK:
            raise SagaStuck(
                f"The saga {self.id!r} is {record.state}: {record.error} See `holdfast sagas show {self.id}`."
            )
        return decode_stored(record.result or "null", self._returns)

    def _missing(self) -> SagaMissing:
        return SagaMissing(
            f"There is no saga {self.id!r}: its transaction has not committed, or it was pruned after its time."
        )

    # --- for code without an event loop ---

    @property
    def _kept_in(self) -> Store:
        """Where it is kept."""
        return self._store

    record_sync = twin(record, "run")
    status_sync = twin(status, "run")
    signal_sync = twin(signal, "run")
    cancel_sync = twin(cancel, "run")
    result_sync = twin(result, "run")

    def __repr__(self) -> str:
        return f"<SagaRun {self.id}>"


def accepted(saga_id: str, answer: SagaAnswer) -> SagaState:
    """The state, or why it cannot be cancelled."""
    match answer.outcome:
        case "missing":
            raise SagaMissing(f"There is no saga {saga_id!r}.")
        case "too_late":
            raise UsageError(f"The saga {saga_id!r} has passed its pivot: there is no way back. It goes on.")
        case "ending":
            raise UsageError(
                f"The saga {saga_id!r} is done, and its job ends just now. Ask again in a moment."
            )
        case "no_job":
            raise UsageError(f"The saga {saga_id!r} has no job any more that could undo it.")
    assert answer.state is not None
    return answer.state
