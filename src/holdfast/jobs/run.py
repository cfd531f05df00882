"""One claim in a worker's hands: from taken to ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

from holdfast.guards.reservations import Reservation
from holdfast.guards.visits import Visit
from holdfast.guards.witness import Witness
from holdfast.jobs.attempt import Attempt
from holdfast.jobs.counting import Flight
from holdfast.jobs.gating import is_sick, is_under
from holdfast.jobs.job import Job
from holdfast.jobs.task import Task
from holdfast.kernel.clock import monotonic
from holdfast.kernel.outcomes import Outcome
from holdfast.kernel.threads import ThreadCall
from holdfast.kernel.world import Alarm
from holdfast.store.records import Claim, Finish, Lease


class Stop(Enum):
    """Why a run is stopped from outside."""

    TIMEOUT = "it took longer than its timeout"
    CANCELLED = "someone cancelled the job"
    LOST = "its lease ended: another worker may run it now"
    LOCK_LOST = "its lock was lost"
    DRAIN = "the worker is leaving"


class Run:
    """A claim, its task when this program knows it, and what is going on with it."""

    __slots__ = (
        "ahead", "apart", "attempt", "began", "claim", "ending", "finish", "flight", "job", "late", "limit_until", "lock", "lock_until", "over", "reason", "reservation", "stop", "task", "thread", "timer", "took", "until", "visit", "why_lost", "witness", "work",
    )  # fmt: skip

    def __init__(self, claim: Claim, task: Task[Any, Any] | None, until: float) -> None:
        self.claim, self.task = claim, task
        # On the monotonic clock: counted from before the claim, so never later than the lease.
        self.until = until
        # By how much that clock is ahead of the database's. Not from `until` later on: every renewal moves it.
        self.ahead = until - claim.lease_until
        self.began: float | None = None  # on the monotonic clock; None: it waits for a slot
        self.limit_until: float | None = None  # when its timeout is over
        self.timer: Alarm | None = None
        self.work: asyncio.Task[None] | None = None  # what runs it, once it has begun
        self.attempt: Attempt | None = None  # once its body begins
        self.job: Job | None = None  # the same, as its task sees it
        self.lock: Lease | None = None
        self.lock_until = 0.0  # as `until`: never later than the lock's end
        self.thread: ThreadCall | None = None
        self.stop: Stop | None = None
        self.reason = ""  # of a cancellation
        self.why_lost = ""  # as far as that is known
        self.ending: Outcome | None = None  # how it ends, as soon as that is known
        self.reservation: Reservation | None = None  # of its guard: spent when the run begins
        # Asks the gate, of a run that has begun without: seconds until it is worth asking again; 0: it may call.
        self.late: Callable[[], float] | None = None
        self.visit: Visit | None = None  # it finds out whether what its guard stands before is well again
        self.witness: Witness | None = None  # of what its guard meets, where that decides what is charged
        self.finish: Finish | None = None  # the same on its way to the store
        self.flight: Flight | None = None  # with an end that is written in a transaction of its own
        self.apart: Outcome | None = None  # that end
        self.took: float | None = None  # seconds, once it has ended
        self.over = False  # its body has ended, and only the token decides what becomes of it

    @property
    def key(self) -> tuple[str, int]:
        return self.claim.job_id, self.claim.token

    @property
    def waited(self) -> float:
        """Seconds from when it was due until it began."""
        return 0.0 if self.began is None else max(0.0, self.began - self.claim.due - self.ahead)

    @property
    def is_guarded(self) -> bool:
        """Whether a gate is asked before it begins."""
        return self.task is not None and self.task.declaration.gate is not None

    @property
    def is_under_guard(self) -> bool:
        """Whether it was enqueued for the gate that its task has, and not only this process finds that closed."""
        guard = None if self.task is None else self.task.declaration.gate
        return guard is not None and is_under(guard, self.claim.guard) and not is_sick(guard)

    @property
    def gate_key(self) -> str | None:
        """Under which it is held when its gate refuses it."""
        return self.claim.guard if self.is_under_guard else None

    @property
    def needs_lease(self) -> bool:
        """Not after the task has committed its success, or has parted: what it does then changes nothing."""
        return not (self.attempt is not None and (self.attempt.completed or self.attempt.parted))

    def time_left(self) -> float | None:
        """Seconds until its deadline, at least 0, by the database's clock when it was claimed; None: it has none."""
        deadline = self.claim.deadline
        return None if deadline is None else max(0.0, deadline + self.ahead - monotonic())

    def halt(self, stop: Stop, reason: str = "") -> None:
        """Stop it, once; a lost lease counts more than any reason before it."""
        if self.over or self.stop is stop or (self.stop is not None and stop is not Stop.LOST):
            return
        self.stop, self.reason = stop, reason
        if self.attempt is not None:
            self.attempt.stop_reason = reason or stop.value
        if self.thread is not None:
            self.thread.stop()
        elif self.work is not None:
            self.work.cancel()
