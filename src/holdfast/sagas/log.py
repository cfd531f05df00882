"""What a run writes of its saga: steps, moves and rests, each under the claim, and what it hears with the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from holdfast.jobs.patience import patiently
from holdfast.kernel.clock import monotonic
from holdfast.sagas.plans import read
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.saga_records import Heard, Move, Rest, SagaRecord, SagaState, Wait, Written
from holdfast.store.steps import Progress, Step, StepRecord

_DONE = (Progress.DONE, Progress.RESOLVED)


class SagaLog:
    """The steps' port of one run. `lost` is called when the claim is no longer ours, and gives the error to raise."""

    def __init__(self, store: Store, claim: Claim, record: SagaRecord, lost: Callable[[], Exception]) -> None:
        self._store, self._claim, self.lost = store, claim, lost
        self.record = record
        self._read = monotonic()
        self._moving = asyncio.Lock()  # of two moves in one commit, one would get lost
        self.asked: str | None = record.asked
        self.pivot: str | None = record.pivot
        self.at_pivot: Callable[[], None] | None = None  # called when it is passed
        self._goes_on = (
            not record.undoing and record.state is not SagaState.RUNNING
        )  # and nobody sees that yet

    @property
    def time_left(self) -> float | None:
        """Seconds until the saga's deadline; None: it has none."""
        if self.record.deadline is None:
            return None
        return self.record.deadline - self.record.now - (monotonic() - self._read)

    # --- as the steps of a job ---

    async def load(self, job_id: str, generation: int) -> list[StepRecord]:
        return await self._store.steps.load(job_id, generation)

    async def write(self, claim: Claim, step: Step) -> bool:
        """The first write of a run says that the saga runs; that of a pivot that is done, that it was passed."""
        passes = step.progress in _DONE and read(step.plan).pivot
        if not passes and not self._goes_on:
            written = await self._write(claim, step=step)
        else:
            async with self._moving:
                pivot = step.name if passes else None
                written = await self._write(claim, step=step, move=Move(state=SagaState.RUNNING, pivot=pivot))
                self._moved(pivot)
        return written is not None and written.kept

    async def _write(
        self, claim: Claim, *, step: Step | None = None, move: Move | None = None, rest: Rest | None = None
    ) -> Written | None:
        written = await self._store.sagas.write(claim, step=step, move=move, rest=rest)
        if written is not None:
            self.asked = written.asked
        return written

    # --- the saga itself ---

    async def move(
        self,
        move: Move,
        *,
        step: Step | None = None,
        rest: Rest | None = None,
        during: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Written:
        """Raises when the claim is lost. Each try is made within what `during` gives."""
        claim = self._claim

        async def once() -> Written | None:
            with during():
                return await self._write(claim, step=step, move=move, rest=rest)

        async with self._moving:
            written = await patiently(once, what="saga.not_moved", job=claim.job_id)
            if written is None:
                raise self.lost()
            self._moved(move.pivot)
            return written

    def _moved(self, pivot: str | None) -> None:
        self._goes_on = False
        if pivot is not None:
            self.pivot = pivot
            if self.at_pivot is not None:
                self.at_pivot()

    async def keep(self, step: Step) -> None:
        """A step by itself, such as that of an undo."""
        claim = self._claim
        written = await patiently(
            lambda: self._write(claim, step=step), what="steps.not_written", job=claim.job_id
        )
        if written is None:
            raise self.lost()

    async def listen(self, step: Step, wait: Wait) -> Heard:
        claim = self._claim
        heard = await patiently(
            lambda: self._store.sagas.listen(claim, step, wait), what="saga.not_heard", job=claim.job_id
        )
        if heard is None:
            raise self.lost()
        self.asked = heard.asked
        return heard

    async def steps(self) -> list[StepRecord]:
        """All that is recorded now."""
        claim = self._claim
        return await patiently(
            lambda: self._store.steps.load(claim.job_id, claim.generation),
            what="steps.not_loaded",
            job=claim.job_id,
        )
