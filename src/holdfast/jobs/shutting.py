"""When a guard has refused a job: the ready ones behind it that it would refuse too are held with it, unclaimed."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.jobs.gating import is_closed
from holdfast.jobs.registry import Registry
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic
from holdfast.store.ports import Store

_REST = 0.5  # seconds until it looks again after it has found none
_TURNS = 10  # looks after one refusal


class Shutting:
    """Of one worker. Else it would claim a long line of them one by one, and others behind them would wait for that."""

    def __init__(self, store: Store, registry: Registry, *, window: int) -> None:
        self._holds, self._registry, self._window = store.holds, registry, window
        self._rests_until = 0.0

    async def behind(self, refused: Sequence[Run]) -> None:
        """An open breaker refuses all of its guard, a limiter those of a key."""
        if not refused or monotonic() < self._rests_until:
            return
        keys, guards = _keys(refused), _guards(refused)
        tasks = self._registry.guarded_by(guards)
        queues = sorted({run.claim.queue for run in refused})
        for _ in range(_TURNS):
            if not await self._holds.shut_gates(
                queues, keys=keys, guards=guards, tasks=tasks, window=self._window
            ):
                self._rests_until = monotonic() + _REST
                return


def _keys(refused: Sequence[Run]) -> list[str]:
    return sorted({run.claim.guard for run in refused if run.claim.guard is not None and not _guards([run])})


def _guards(refused: Sequence[Run]) -> list[str]:
    """Those whose breakers let no call through."""
    guards = [run.task.declaration.gate for run in refused if run.task is not None]
    return sorted({guard.name for guard in guards if guard is not None and not is_closed(guard)})
