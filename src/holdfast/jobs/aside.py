"""What a worker has claimed and does not run: held for its guard, put off, or left to those who know its task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.jobs.endings import Endings
from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.jobs.returns import Returns
from holdfast.jobs.run import Run
from holdfast.jobs.shutting import Shutting
from holdfast.kernel.clock import patience
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.masking import hide, secret_values
from holdfast.kernel.outcomes import Snooze
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.store.job_ports import Holds
from holdfast.store.records import Claim
from holdfast.store.states import Held

STOP_GRACE = 2.0  # seconds that stopped runs have to end, and a hold to be written
_STRANGE = 1.0  # seconds between looks of a job at a guard that it was not enqueued for


class Aside:
    """`forget` drops a run, `gave_back` tells how many were not run after all, `look` has the worker look for others.

    `tell` is called with each that its guard refused, when somebody hears that.
    """

    def __init__(
        self,
        holds: Holds,
        ends: EndsOfRuns,
        endings: Endings,
        returns: Returns,
        shutting: Shutting,
        *,
        forget: Callable[[Run], None],
        gave_back: Callable[[int], None],
        look: Callable[[], None],
        tell: Callable[[Run], Awaitable[None]] | None,
    ) -> None:
        self._holds, self._ends = holds, ends
        self._endings, self._returns, self._shutting = endings, returns, shutting
        self._forget, self._gave_back, self._look, self._tell = forget, gave_back, look, tell

    async def turn_away(self, refused: Sequence[Run]) -> None:
        """Held, until somebody lets go of them at the guard's pace; or put off, so that another worker may have them.

        So is who was enqueued when its task had another guard, or none: nobody would let go of it by that key.
        """
        note("job.gated", guards=sorted({str(run.claim.guard) for run in refused}), jobs=len(refused))
        self._gave_back(len(refused))
        if self._tell is not None:
            for run in refused:
                await self._tell(run)
        held = {run.key: run for run in refused if run.is_under_guard}
        await self._put([run.claim for run in held.values()], Held.GUARD)
        for run in refused:
            if run.key in held:
                self._forget(run)
            else:
                self._endings.add(run, Snooze(after=jittered(_STRANGE), reason="its guard refused it"))
        await self._shut([*held.values()])
        self._look()  # for what is behind them

    async def _shut(self, refused: Sequence[Run]) -> None:
        try:
            await self._shutting.behind(refused)
        except HoldfastError as error:  # then they are claimed, and turned away one by one
            note("worker.hold_failed", jobs=len(refused), error=repr(error))

    async def leave_to_others(self, claim: Claim, why: str) -> None:
        """A task that this worker does not know: others may."""
        why = hide(why, secret_values(claim.args))
        note("job.unknown_task", job=claim.job_id, task=claim.task, why=why)
        await self._put([claim], Held.UNKNOWN_TASK)

    async def _put(self, claims: Sequence[Claim], reason: Held) -> None:
        try:
            async with patience(STOP_GRACE):
                await self._ends.put_back(claims, lambda some, tx: self._holds.hold(some, reason, tx=tx))
        except (HoldfastError, TimeoutError) as error:
            note("worker.hold_failed", jobs=len(claims), error=repr(error))
            self._returns.begin(claims)
