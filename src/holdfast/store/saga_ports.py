"""What a store can do with sagas: rows that say how far they are, moved under the claim of the job that carries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import (
    Heard,
    Move,
    NewSaga,
    Rest,
    SagaAnswer,
    SagaCount,
    SagaRecord,
    SagaState,
    SignalRecord,
    StartedSaga,
    Wait,
    Written,
)
from holdfast.store.steps import Step


class Sagas(Protocol):
    # --- for callers ---

    async def start(self, sagas: Sequence[NewSaga], *, tx: object | None = None) -> list[StartedSaga]:
        """Store the sagas and their jobs, in the caller's transaction when one is given. Of two with one id the first stays.

        One with a parent is refused unless that is there, and on its way forward: nobody would undo it.
        """

    async def get(self, saga_id: str) -> SagaRecord | None: ...
    async def of_job(self, job_id: str) -> SagaRecord | None:
        """The saga that this job carries."""

    async def states(self, job_ids: Sequence[str]) -> dict[str, SagaState]:
        """By the ids of the jobs that carry them; a job that carries none is left out."""

    async def find(
        self,
        *,
        state: SagaState | None = None,
        name: str | None = None,
        parent: str | None = None,
        correlation_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[SagaRecord]:
        """Newest first. `before` is the id of a saga, such as the last of one page: only older ones are the next."""

    async def count(self) -> list[SagaCount]:
        """How many sagas are not over, by name and state."""

    async def signal(
        self, saga_id: str, name: str, value: str = "null", *, tx: object | None = None
    ) -> SagaAnswer:
        """Send a saga a value (JSON text). It is kept until a step takes it; who waits for this name goes on, and nobody else."""

    async def signals(self, saga_id: str) -> list[SignalRecord]:
        """What was sent to a saga, in order."""

    # --- under the claim of its job ---

    async def write(
        self, claim: Claim, *, step: Step | None = None, move: Move | None = None, rest: Rest | None = None
    ) -> Written | None:
        """Keep a step, move the saga, put its job back: what is given of that, in one commit. None: the claim was lost.

        A saga that was woken since its run began, or that someone wants undone, does not rest: its job is ready at once.
        One that is over wakes those who wait for it.
        """

    async def listen(self, claim: Claim, step: Step, wait: Wait) -> Heard | None:
        """Look for what a step waits for, and remember that it does, in one transaction. None: the claim was lost.

        What is there is taken, and recorded as the result of the step; it is the same when asked again. An event counts
        from when the saga began.
        """

    async def hear(self, lease: Lease, *, limit: int = 500, portion: int = 2000) -> int | None:
        """Read the next published events, wake the sagas that wait for one of them, and go on behind them: one commit.

        When more sagas than a portion wait for them, the next call reads the same events and wakes the next portion.

        Returns how many were read. None: the lease is lost. While no saga waits for events, none are read.
        """

    # --- for people ---

    async def cancel(self, saga_id: str, *, actor: str, reason: str, done_too: bool = False) -> SagaAnswer:
        """Ask for it to be undone; leaves an audit row. `too_late`: it has passed its pivot.

        `done_too`: also when it is done, as long as its steps are kept: its job goes the way back. `ending`: that job has not ended yet;
        it will in a moment.
        """

    async def retry(self, saga_id: str, *, actor: str, tx: object | None = None) -> SagaAnswer:
        """Let a saga that is stuck go on from where it stands, with all tries of its steps; leaves an audit row."""

    async def settle(
        self, saga_id: str, step: str, *, done: bool, result: str | None = None, actor: str
    ) -> SagaAnswer:
        """A person says whether a step, or an undo, of a stuck saga was done; it goes on from there. Leaves an audit row."""

    # --- upkeep ---

    async def park_lost(self, *, limit: int = 100) -> list[str]:
        """Park the sagas whose jobs are dead or unknown, so that they are seen; their ids."""

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        """Forget sagas that were over more than `keep` seconds ago: their ids are free again.

        One that another has started stays as long as that one, which may have to undo it.
        """
