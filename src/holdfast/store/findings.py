"""What a diagnosis finds, and how waiting jobs are judged: the same on every store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

STUCK_AFTER = 60.0  # seconds after its lease in which a running job should have been rescued
READY_TOO_LONG = 300.0  # seconds that a ready job may wait for a worker
_NAMED = 3  # of many, so many are named


class Level(StrEnum):
    """In the order of their weight."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    check: str  # what was looked at: a stable name
    level: Level
    found: str
    todo: str | None = None


def ok(check: str, found: str) -> Finding:
    return Finding(check, Level.OK, found)


def warn(check: str, found: str, todo: str) -> Finding:
    return Finding(check, Level.WARN, found, todo)


def bad(check: str, found: str, todo: str) -> Finding:
    return Finding(check, Level.BAD, found, todo)


class Backlog(msgspec.Struct, frozen=True):
    """What waits, and for whom. Ages are in seconds."""

    running: int
    stuck: int  # running, and the lease ended more than STUCK_AFTER ago
    paused: Sequence[tuple[str, int]]  # queue, ready jobs; paused queues with waiting jobs only
    unknown: Sequence[tuple[str, int]]  # task, jobs that are held because nobody knew it
    undecided: tuple[int, float] | None  # unknown jobs that wait for a person, and the age of the oldest
    oldest: tuple[str, float] | None  # queue and age of the oldest ready job of a queue that is not paused


def judge(backlog: Backlog) -> Iterator[Finding]:
    yield _stuck(backlog)
    yield _paused(backlog)
    yield _unknown(backlog)
    yield _undecided(backlog)
    yield _oldest(backlog)


def _stuck(backlog: Backlog) -> Finding:
    if not backlog.stuck:
        return ok("leases", f"Running jobs: {backlog.running:,}; none is past its lease for long.")
    return bad(
        "leases",
        f"Running jobs past their lease for over {STUCK_AFTER:g} s: {backlog.stuck:,} of {backlog.running:,}; "
        "nobody rescues them.",
        "Is a worker running? Start one: holdfast worker.",
    )


def _paused(backlog: Backlog) -> Finding:
    if not backlog.paused:
        return ok("paused", "No paused queue has waiting jobs.")
    return warn(
        "paused",
        f"Jobs wait in paused queues: {named(backlog.paused)}.",
        f"When the reason is over: holdfast queues resume {backlog.paused[0][0]}.",
    )


def _unknown(backlog: Backlog) -> Finding:
    if not backlog.unknown:
        return ok("unknown tasks", "Every queued job's task is known to a worker that met it.")
    return warn(
        "unknown tasks",
        f"Jobs are held because the worker that met them does not know their task: {named(backlog.unknown)}.",
        "Deploy the code that has it, or discard them: holdfast jobs list --held unknown_task.",
    )


def _undecided(backlog: Backlog) -> Finding:
    if backlog.undecided is None:
        return ok("unknown jobs", "No job waits for a person who knows what became of an effect.")
    number, age = backlog.undecided
    return warn(
        "unknown jobs",
        f"Jobs that wait for a person, since nobody knows what became of an effect of theirs: {number:,}; the oldest "
        f"was enqueued {age:.0f} s ago.",
        "See them: holdfast unknown list; and decide: holdfast unknown resolve.",
    )


def _oldest(backlog: Backlog) -> Finding:
    if backlog.oldest is None:
        return ok("waiting", "No job is ready and waits for a worker.")
    queue, age = backlog.oldest
    found = f"The oldest ready job waits for {age:.0f} s, in the queue {queue!r}."
    if age < READY_TOO_LONG:
        return ok("waiting", found)
    return warn("waiting", found, f"Does a worker serve {queue!r}, and are there enough?")


def named(numbers: Sequence[tuple[str, int]]) -> str:
    """`mail (12), default (3) and 4 more`."""
    shown = ", ".join(f"{name} ({number:,})" for name, number in numbers[:_NAMED])
    rest = len(numbers) - _NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown
