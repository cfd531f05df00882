"""Keeps a worker's claims: renews them from a loop of its own, so that a task that blocks does not lose its lease."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence

from holdfast.jobs.presence import Presence
from holdfast.jobs.run import Run, Stop
from holdfast.kernel.clock import look_within, monotonic, patience, sleep
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import spawn, start, start_beside
from holdfast.kernel.telemetry import note
from holdfast.kernel.world import Beside
from holdfast.store.ports import Store

Runs = Mapping[tuple[str, int], Run]
MARGIN = 1 / 4  # of the lease: a run that could not be renewed is stopped this long before its end
_PATIENCE = 1 / 5  # of the lease: a run that was stopped so has this long to end
_AT_A_TIME = 50  # locks that are renewed together
HARD_GRACE = 10.0  # seconds after its timeout in which a run must end, or its process is ended
_LOOKS = 0.25  # seconds between looks at what is overdue
_NUDGES = 1.0  # seconds between two early looks for jobs that are asked to stop
_PULSE_LATE = 1.0  # seconds without a turn of the worker's loop that are worth a warning


class Renewer:
    """`stuck` is called, on the renewer's own thread, when a run cannot be stopped in time."""

    def __init__(
        self,
        store: Store,
        runs: Runs,
        *,
        lease: float,
        stuck: Callable[[str], None] | None = None,
        presence: Presence | None = None,
    ) -> None:
        self._home, self._runs, self._lease, self._stuck = store, runs, lease, stuck
        self._presence = (
            presence  # its signs of life come from here, so that a blocked loop is not taken for a death
        )
        self._loop = asyncio.get_running_loop()
        self._beside: Beside | None = None
        self._bell: asyncio.Event | None = None
        self._stopping = False
        self._renewing: asyncio.Task[None] | None = None
        self._trouble: str | None = None
        self._failed = (-math.inf, "")  # when a renewal failed last, and how
        self._given_up: dict[tuple[str, int], float] = {}  # since when
        self._unlocked: dict[tuple[str, int], float] = {}  # whose lock is lost, since when
        self._overtime: dict[tuple[str, int], float] = {}  # whose timeout is over, since when that is known
        self._due = 0.0
        self._renewed = -math.inf
        self._pulse = monotonic()
        self._warned = -math.inf

    async def start(self) -> None:
        self._beside = start_beside("holdfast-renewer", self._main)

    async def stop(self) -> None:
        if (beside := self._beside) is not None:
            self._beside, self._stopping = None, True
            beside.post(self._wake)
            await beside.ended()

    def trouble(self) -> str | None:
        return self._trouble

    def nudge(self) -> None:
        """Someone may have asked a job to stop: look now, not at a third of the lease."""
        self._due = min(self._due, self._renewed + _NUDGES)

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.set()
        if self._renewing is not None:  # a store that does not answer is not waited for
            self._renewing.cancel()

    # --- on the renewer's own loop from here on ---

    async def _main(self) -> None:
        self._bell, self._due = asyncio.Event(), monotonic() + self._lease / 3
        # Beside the renewals: a store that does not answer must not keep anyone from being stopped in time.
        watch = spawn(self._watch(), name="renewer-watch")
        try:
            while not self._stopping:
                try:
                    await self._serve()
                except Exception as error:  # noqa: BLE001  nobody looks after this thread: it must go on
                    self._tell(error)
                    await self._nap(jittered(min(1.0, self._lease / 30)))
        finally:
            watch.cancel()
            if self._presence is not None:
                await self._presence.rest()

    async def _serve(self) -> None:
        """Renew until the end, through a store of our own where there is one: another each time, should one be half open."""
        store = self._home.twin()
        if store is self._home:
            await self._turns(store)
            return
        try:
            await store.open()
            await self._turns(store)
        finally:
            if self._presence is not None:
                await self._presence.rest()
            await store.close()

    async def _watch(self) -> None:
        while True:
            await sleep(min(_LOOKS, self._lease / 12))
            if self._loop.is_closed() and not any(_is_in_thread(run) for run in list(self._runs.values())):
                self._stopping = True  # the worker was cut off, and there is nobody to renew for
                return
            try:
                self._look()
            except Exception as error:  # noqa: BLE001  the next look is as important
                note("renewer.failed", error=repr(error))

    async def _turns(self, store: Store) -> None:
        """Renew at a third of the lease. What is not answered by the second third is asked again."""
        while not self._stopping:
            await self._nap(min(_LOOKS, self._lease / 12))  # not longer: someone may ask for an early look
            if self._presence is not None:
                self._presence.look(store)
            if monotonic() < self._due:
                continue
            try:
                async with patience(self._lease / 3):
                    self._renewing = start(self._renew(store), name="renewer-renew")
                    await self._renewing
                self._due = monotonic() + jittered(self._lease / 3, 0.1)
                self._trouble = None
            except asyncio.CancelledError:
                if not self._stopping:
                    raise
            except Exception as error:  # noqa: BLE001  whatever it is: who does not renew loses every job
                self._tell(error)
                self._due = monotonic() + jittered(self._lease / 30)

    def _tell(self, error: Exception) -> None:
        self._trouble = f"leases were not renewed: {error}"
        self._failed = monotonic(), str(error) or type(error).__name__
        note("renewer.failed", error=repr(error))

    async def _nap(self, seconds: float) -> None:
        assert self._bell is not None
        try:
            async with look_within(seconds):
                await self._bell.wait()
        except TimeoutError:
            return

    async def _renew(self, store: Store) -> None:
        began = self._renewed = monotonic()
        runs = [
            run
            for run in list(self._runs.values())
            if run.needs_lease and self._goes_on(run) and not self._is_given_up(run)
        ]
        if runs:
            kept = {
                (renewal.job_id, renewal.token): renewal
                for renewal in await store.claims.renew([run.claim for run in runs], lease=self._lease)
            }
            for run in runs:
                if (renewal := kept.get(run.key)) is None:
                    self._give_up(run, monotonic(), "the store did not renew it: it was over")
                    continue
                run.until = began + self._lease
                if renewal.cancel is not None:
                    self._halt(run, Stop.CANCELLED, renewal.cancel)
        await self._renew_locks(store, runs)

    async def _renew_locks(self, store: Store, runs: Sequence[Run]) -> None:
        """Many at a time, those that end first before the others: a turn that is cut off has helped who needed it most."""
        locked = sorted((run for run in runs if _is_locked(run)), key=lambda run: run.lock_until)
        for first in range(0, len(locked), _AT_A_TIME):
            answers = await asyncio.gather(
                *(self._renew_lock(store, run) for run in locked[first : first + _AT_A_TIME]),
                return_exceptions=True,
            )
            for answer in answers:
                if answer is not None:
                    raise answer

    async def _renew_lock(self, store: Store, run: Run) -> None:
        if run.lock is None or run.over or self._is_lock_late(run, monotonic()):
            return  # who is stopped for it keeps it from others for nothing
        began = monotonic()
        if await store.leases.renew(run.lock, ttl=self._lease) is not None:
            run.lock_until = began + self._lease
        elif not run.over:
            self._lose_lock(run, monotonic())

    def _look(self) -> None:
        """Stop what can no longer be renewed in time; say what stands in the way."""
        now = monotonic()
        for stopped in (self._given_up, self._unlocked, self._overtime):
            for key in [key for key in stopped if key not in self._runs]:
                del stopped[key]
        self._post(self._beat)
        for run in [each for each in list(self._runs.values()) if self._goes_on(each)]:
            if run.needs_lease and self._is_late(run, now):
                self._give_up(run, now, self._why_late(run, now))
            if self._is_lock_late(run, now):
                self._lose_lock(run, now)
            if self._stuck is not None and self._must_end(run, now):
                self._stuck(f"job {run.claim.job_id} of task {run.claim.task!r} did not stop: {_why(run)}")
        if now - self._pulse > _PULSE_LATE and now - self._warned > 10 * _PULSE_LATE:
            self._warn(now)

    def _warn(self, now: float) -> None:
        """Name the task that is on the loop. Without one it is not blocked: the whole process stood still."""
        culprit = asyncio.current_task(self._loop)
        if culprit is not None:
            self._warned = now
            note("loop.blocked", task=culprit.get_name(), seconds=round(now - self._pulse, 1))

    def _is_given_up(self, run: Run) -> bool:
        """A lease that is renewed while its run is stopped would keep the job from everyone for nothing."""
        lost = run.stop is Stop.LOST or run.key in self._given_up
        return lost or self._is_overdue(run) or self._is_late(run, monotonic())

    def _is_late(self, run: Run, now: float) -> bool:
        return now > run.until - self._lease * MARGIN

    def _is_lock_late(self, run: Run, now: float) -> bool:
        return _is_locked(run) and now > run.lock_until - self._lease * MARGIN

    def _is_overdue(self, run: Run) -> bool:
        """Counted from when that was seen: who slept through its timeout with the whole process is to be asked first."""
        if run.limit_until is None or run.over or (now := monotonic()) <= run.limit_until:
            return False
        return now > self._overtime.setdefault(run.key, now) + HARD_GRACE

    def _must_end(self, run: Run, now: float) -> bool:
        """Its body goes on after its hard limit, or when someone else may have its claim or its lock."""
        if run.over or run.work is None:
            return False
        since = self._given_up.get(run.key, self._unlocked.get(run.key))
        return self._is_overdue(run) or (since is not None and now > since + self._lease * _PATIENCE)

    def _why_late(self, run: Run, now: float) -> str:
        told = f"it was not renewed for {now - (run.until - self._lease):.0f} s"
        when, what = self._failed
        return f"{told}: {what}" if when > run.until - self._lease else f"{told}, as this process stood still"

    def _give_up(self, run: Run, now: float, why: str) -> None:
        """Known here, since the worker's loop may stand still."""
        self._given_up.setdefault(run.key, now)
        run.why_lost = run.why_lost or why
        self._halt(run, Stop.LOST)

    def _lose_lock(self, run: Run, now: float) -> None:
        self._unlocked.setdefault(run.key, now)
        self._halt(run, Stop.LOCK_LOST)

    def _goes_on(self, run: Run) -> bool:
        """A thread does, also when the loop of its worker was closed."""
        return not self._loop.is_closed() or _is_in_thread(run)

    def _halt(self, run: Run, stop: Stop, reason: str = "") -> None:
        self._post(run.halt, stop, reason)

    def _post(self, call: Callable[..., None], *args: object) -> None:
        if self._loop.is_closed():
            call(*args)
        else:
            self._loop.call_soon_threadsafe(call, *args)

    def _beat(self) -> None:
        self._pulse = monotonic()


def _is_locked(run: Run) -> bool:
    return run.lock is not None and not run.over


def _is_in_thread(run: Run) -> bool:
    return run.thread is not None and run.thread.is_running


def _why(run: Run) -> str:
    return "it is past its hard time limit" if run.stop is None else run.stop.value
