"""What production code notes while it is simulated: some notes belong to the history, some are surprises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.testing.simulation.history import History
from holdfast.testing.simulation.process import Process, running

# Told to the checkers, with the job if the note names one.
HEARD = frozenset({
    "job.lease_lost", "job.finish_refused", "job.failed_after_completion", "job.unknown_task", "on_dead.failed",
    "worker.release_failed",
})  # fmt: skip
# Told to the checkers of guards, with these fields.
OF_GUARDS = {
    "breaker.opened": ("breaker", "generation"),
    "breaker.half_opened": ("breaker", "generation"),
    "breaker.closed": ("breaker", "generation"),
    "guards.alone": ("processes",),
    "guards.together": (),
    "guards.late": ("limiter", "key"),
    "guard.gave_up": ("guard", "reason"),
    "limiter.slowed": ("limiter", "key"),
    "job.gated": ("jobs",),
}
# A part of the engine has failed. That is to be expected of a store in trouble, and of nothing else.
FAILED = frozenset({
    "task.failed", "thread.failed", "hook.failed", "worker.trouble", "worker.no_wakeups", "worker.release_failed",
    "upkeep.failed", "scheduler.failed", "periodic.failed", "renewer.failed", "renewer.cannot_open",
    "lock.not_released", "guards.alone", "releases.failed", "worker.hold_failed", "breaker.unheard", "limiter.unheard",
    "classifier.failed", "relay.failed", "consumer.failed", "view.failed", "sagas.failed", "alerts.failed",
})  # fmt: skip
EXPECTED = (
    "StoreUnavailable",
    "StoreBusy",
    "StoreFull",
    "CommitUnknown",
    "TransactionEnded",
    "TimeoutError",
    "TransportUnavailable",
)


class Notes:
    def __init__(self, history: History) -> None:
        self._history = history

    def hear(self, name: str, fields: Mapping[str, Any]) -> None:
        process = running()
        if process is None or not process.alive:
            return
        if name in HEARD:
            self._history.event("note", (name, fields.get("job")))
        if (told := OF_GUARDS.get(name)) is not None:
            self._history.event(name, tuple(fields[field] for field in told))
        if name == "periodic.failed" and fields.get("name") == "members":
            self._history.event("could not tell", None)
        if name in FAILED and not _is_expected(process, str(fields.get("error", ""))):
            self._history.surprise(f"{name} {dict(fields)}")


def _is_expected(process: Process, error: str) -> bool:
    """A process that leaves closes its store at last, though a run that waited for it all the time may still want to write."""
    return error.startswith(EXPECTED) or (process.draining and error.startswith("NotOpen("))
