"""Room for suspects, the jobs whose worker died under them: they run alone, and other work waits for that a while."""

from __future__ import annotations

import math
from collections.abc import Mapping

from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic, patience
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.store.fleet_ports import Leases
from holdfast.store.records import Lease

_EVERY = 2.0  # seconds between looks for suspects
_CLEARING = 30.0  # seconds for which other work waits for a suspect's turn, at most
_GIVING_BACK = 1.0  # seconds
_LONGEST_PAUSE = 3600.0  # seconds between two times, at most
_LEASE = "holdfast:suspects"  # of the one worker that makes room


class Room:
    """When a worker looks for a suspect, and when it takes nothing else."""

    def __init__(
        self, leases: Leases, runs: Mapping[tuple[str, int], Run], *, worker: str, lease: float
    ) -> None:
        self._leases, self._runs = leases, runs
        self._worker = worker
        self.alone = False  # a suspect runs here, and nothing else
        self.due = 0.0  # on the monotonic clock; a worker that begins has room for one
        self._idle_due = 0.0  # the same while nothing runs here: then there is room at once
        self._right: Lease | None = None  # to make room
        self._clearing_until = 0.0
        self._ttl = min(
            2 * _CLEARING, lease
        )  # of the right to make room: if its holder dies, it ends with the claims
        self._kept = -math.inf  # on the monotonic clock: when that was last asked for
        self._pause = 2 * _CLEARING  # seconds until the next time; more after each that was in vain

    def is_due(self) -> bool:
        """Whether to look for a suspect now."""
        if self.alone:
            return False
        if self.clears():
            return not self._runs
        return monotonic() >= (self.due if self._runs else min(self.due, self._idle_due))

    def clears(self) -> bool:
        """Whether this worker takes nothing else until a suspect has had its turn."""
        return monotonic() < self._clearing_until

    def looked(self) -> None:
        self._clearing_until = 0.0
        self.due = self._idle_due = monotonic() + jittered(_EVERY)

    def found(self) -> None:
        """A suspect's turn has come."""
        self._pause = 2 * _CLEARING
        self.alone = True

    def left(self, run: Run) -> None:
        """A suspect's turn is over. One seldom comes alone; but ordinary work has its turn in between."""
        self.alone = False
        if run.began is not None and monotonic() - run.began < _EVERY:
            self.due = 0.0

    async def make(self) -> None:
        """There is a suspect, and it must not be charged for the death of what runs here."""
        if self._runs_long():
            self.due = monotonic() + jittered(_CLEARING)
        elif (
            not await self._may_clear()
        ):  # another makes room, or has died, and then its right has ended by that time
            self.due = monotonic() + jittered(self._ttl)
        else:
            self._clearing_until = monotonic() + _CLEARING
            self.due = monotonic() + self._pause  # unless there is room before that
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    async def keep(self) -> None:
        """While it waits for room: the right to it would end before."""
        if self.clears() and monotonic() > self._kept + self._ttl / 3 and not await self._may_clear():
            self._clearing_until = 0.0

    def _runs_long(self) -> bool:
        """Whether a run will hardly end while all others wait for it."""
        now = monotonic()
        return any(run.began is not None and now - run.began > _CLEARING / 2 for run in self._runs.values())

    async def _may_clear(self) -> bool:
        """One worker of the fleet is enough."""
        self._kept = monotonic()
        self._right = await self._leases.acquire(_LEASE, owner=self._worker, ttl=self._ttl)
        return self._right is not None

    async def give_back(self) -> None:
        """It needs no room any more: another may."""
        if (right := self._right) is not None:
            self._right, self._clearing_until = None, 0.0
            try:
                async with patience(_GIVING_BACK):
                    await self._leases.release(right)
            except Exception as error:  # noqa: BLE001  it ends by itself
                note("worker.room_kept", worker=self._worker, error=repr(error))
