"""How runs have ended, on the way to the store: many in one commit, or one by itself that waits for another's transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from holdfast.jobs.counting import new_flight
from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic, patience, recover
from holdfast.kernel.errors import NotOpen
from holdfast.kernel.outcomes import Outcome
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import over, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.job_ports import Claims
from holdfast.store.records import Finish

_WRITING = 2.0  # seconds that a worker which leaves waits for the store to have them
_MOMENT = 0.5  # seconds


class Endings:
    """`on_over` is called with each run whose end the store has, or has refused for good; `on_apart` when that was one by itself."""

    def __init__(
        self,
        claims: Claims,
        ends: EndsOfRuns,
        runs: Mapping[tuple[str, int], Run],
        *,
        worker: str,
        lease: float,
        on_over: Callable[[Run], None],
        on_apart: Callable[[], None],
    ) -> None:
        self._claims, self._ends, self._runs, self._worker, self._lease = claims, ends, runs, worker, lease
        self._on_over, self._on_apart = on_over, on_apart
        self._waiting: list[Finish] = []  # for the next commit
        self._apart: set[asyncio.Task[None]] = set()
        self._flight = new_flight()  # of the next commit
        self.in_haste = False  # the worker is leaving
        self.is_left = False  # it has left: there is no next commit, and its claims are no longer renewed

    def __bool__(self) -> bool:
        """Whether any waits for the next commit."""
        return bool(self._waiting)

    def add(self, run: Run, outcome: Outcome) -> None:
        if run.finish is not None:
            return
        run.finish = Finish(run.claim, outcome)
        if self.is_left or self._ends.concern(run.finish):
            self._begin_apart(run.finish)
        else:
            self._waiting.append(run.finish)

    def add_known(self) -> None:
        """Also of those that a hook or a lock still keeps."""
        for run in list(self._runs.values()):
            if run.ending is not None:
                self.add(run, run.ending)

    # --- many in one commit ---

    def take(self) -> list[Finish]:
        finishes, self._waiting = self._waiting, []
        if self._flight is not None and finishes:
            self._flight.sent(finishes)
        return finishes

    def put_again(self, finishes: list[Finish]) -> None:
        """The token decides, so asking again does no harm."""
        self._waiting = finishes + self._waiting

    def answered(self, finishes: Sequence[Finish], accepted: Sequence[bool | None]) -> None:
        """None: its row is locked by another's transaction, for which the others did not wait."""
        if self._flight is not None and finishes:
            self._flight.ended(finishes, accepted, self._runs)
        for item, ok in zip(finishes, accepted, strict=True):
            if ok is None:
                self._begin_apart(item)
            else:
                self._end(item, ok)

    # --- each by itself ---

    async def write_all(self) -> None:
        """Each by itself, so that none stands in the way of another. A silent store is not waited for.

        Also what is known to have ended, and kept by a hook or a lock: it is not run again if that can still be written.
        """
        self.add_known()
        with suppress(TimeoutError):
            async with patience(_WRITING):
                while self._waiting or self._apart:
                    for item in self.take():
                        self._begin_apart(item)
                    await over(*self._apart)

    def under_way(self) -> frozenset[asyncio.Task[None]]:
        return frozenset(self._apart)

    async def write_known(self, *, besides: frozenset[asyncio.Task[None]]) -> None:
        """What has ended meanwhile. For those `besides` it was waited before, in vain."""
        self.add_known()
        with suppress(TimeoutError):
            async with patience(_MOMENT):
                await over(*(self._apart - besides))

    def _begin_apart(self, item: Finish) -> None:
        task = spawn(self._write_apart(item), name="worker-finish")
        self._apart.add(task)
        task.add_done_callback(self._apart.discard)

    async def _write_apart(self, item: Finish) -> None:
        if (flight := new_flight()) is not None:
            flight.sent([item])
        while True:
            try:
                async with patience(
                    self._lease
                ):  # a store that is silent for so long may have lost the question
                    ok = await self._written(item)
            except Exception as error:  # noqa: BLE001  what has ended must be written, whatever stands in the way
                note("worker.trouble", worker=self._worker, error=repr(error))
                if self._gives_up(item, error):
                    return
                await recover(jittered(0.1 if self.in_haste else 0.5))
            else:
                if flight is not None:
                    flight.ended([item], [ok], self._runs)
                self._end(item, ok)
                self._on_apart()
                return

    async def _written(self, item: Finish) -> bool:
        if self._ends.concern(item):
            return await self._ends.finish(item)
        [ok] = await self._claims.finish([item])
        return ok

    def _gives_up(self, item: Finish, error: Exception) -> bool:
        """When the worker has left: its store may be closed, and nobody renews the claim."""
        run = self._run_of(item)
        return self.is_left and (run is None or monotonic() > run.until or isinstance(error, NotOpen))

    def settled(self, run: Run, *, is_written: bool) -> None:
        """A transaction of its own may have ended it."""
        if run.flight is not None and run.apart is not None:
            run.flight.ended([Finish(run.claim, run.apart)], [is_written], self._runs)

    def _end(self, item: Finish, ok: bool) -> None:
        if (run := self._run_of(item)) is not None:
            self._on_over(run)
        if not ok:
            note("job.finish_refused", job=item.claim.job_id, task=item.claim.task, token=item.claim.token)

    def _run_of(self, item: Finish) -> Run | None:
        return self._runs.get((item.claim.job_id, item.claim.token))
