"""What a diagnosis finds, and how waiting jobs are judged: the same on every store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec

STUCK_AFTER = 60.0  # seconds after its lease in which a running job should have been rescued
READY_TOO_LONG = 300.0  # seconds that a ready job may wait for a worker
COUNTED = 10_000  # of many jobs, no more are counted
SAMPLED = 1_000  # ready jobs of each queue whose tasks are looked at
DIED_LATELY = 3_600.0  # seconds for which a dead worker is worth a warning
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


class Dead(msgspec.Struct, frozen=True):
    """Dead jobs of one task, and how many seconds ago the newest began to run."""

    task: str
    number: int
    age: float


class Serves(msgspec.Struct, frozen=True):
    """What a live worker takes: jobs of these tasks, from these queues."""

    queues: frozenset[str]
    tasks: frozenset[str]


class Died(msgspec.Struct, frozen=True):
    """Workers that died lately: how many, the newest, and the jobs that were put back for them."""

    number: int
    newest: str
    age: float
    rescued: int


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, and for whom. Ages are in seconds; numbers of jobs end at COUNTED."""

    running: int
    stuck: int  # running, and the lease ended more than STUCK_AFTER ago
    paused: Sequence[tuple[str, int]]  # queue, ready jobs; paused queues with waiting jobs only
    unknown: Sequence[tuple[str, int]]  # task, jobs that are held because nobody knew it
    undecided: tuple[int, float] | None  # unknown jobs that wait for a person, and the age of the oldest
    oldest: tuple[str, float] | None  # queue and age of the oldest ready job of a queue that is not paused
    waiting: Sequence[tuple[str, str, int]]  # queue, task, jobs that could run now; not of paused queues
    dead: Sequence[Dead]
    serves: Sequence[Serves]  # what live workers take that do not drain
    alive: int  # workers, those that drain too
    died: Died | None


def judge(backlog: Backlog) -> Iterator[Finding]:
    yield _workers(backlog)
    yield _stuck(backlog)
    yield _paused(backlog)
    yield _unserved(backlog)
    yield _unknown(backlog)
    yield _dead(backlog)
    yield _undecided(backlog)
    yield _oldest(backlog)


def _workers(backlog: Backlog) -> Finding:
    alive = f"Workers that are alive: {backlog.alive:,}"
    if (died := backlog.died) is None:
        return ok("workers", f"{alive}; none has died within the last hour.")
    return warn(
        "workers",
        f"{alive}; died within the last hour: {died.number:,}, the last one {died.age:.0f} s ago ({died.newest}); jobs that "
        f"were put back for them: {died.rescued:,}.",
        "See them: holdfast workers; and look into their logs.",
    )


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


def _unserved(backlog: Backlog) -> Finding:
    served = {queue for each in backlog.serves for queue in each.queues}
    waiting = Counter[str]()
    for queue, _, number in backlog.waiting:
        if queue not in served:
            waiting[queue] += number
    if not waiting:
        return ok("queues", "Every queue with jobs that could run has a live worker.")
    queues = waiting.most_common()
    return bad(
        "queues",
        f"Jobs wait in queues that no live worker serves: {named(queues, SAMPLED)}.",
        f"Start a worker that does: holdfast worker module:hf -q {queues[0][0]}.",
    )


def _unknown(backlog: Backlog) -> Finding:
    """A queue without a worker is told by another finding, and its tasks are not told again."""
    known = {task for each in backlog.serves for task in each.tasks}
    waiting = Counter({task: number for task, number in backlog.unknown if task not in known})
    for queue, task, number in backlog.waiting:
        takers = [each for each in backlog.serves if queue in each.queues]
        if takers and not any(task in each.tasks for each in takers):
            waiting[task] += number
    if waiting:
        return bad(
            "unknown tasks",
            f"Jobs wait whose task no live worker of their queue knows: {named(waiting.most_common())}.",
            f"Deploy the code that has it, or see them and cancel them: holdfast jobs list --task {waiting.most_common()[0][0]}.",
        )
    if backlog.unknown:
        return ok(
            "unknown tasks",
            f"Live workers know the tasks that others did not, and let them go: {named(backlog.unknown)}.",
        )
    return ok("unknown tasks", "Every waiting job's task is known to a worker.")


def _dead(backlog: Backlog) -> Finding:
    if not backlog.dead:
        return ok("dead jobs", "No job is dead.")
    newest = min(backlog.dead, key=lambda each: each.age)
    return bad(
        "dead jobs",
        f"Jobs that will not run again unless a person says so: {named([(each.task, each.number) for each in backlog.dead])}; "
        f"the newest ran {newest.age:.0f} s ago, of {newest.task}.",
        f"See them: holdfast dead list --task {newest.task}; and decide: holdfast dead replay, or holdfast dead discard.",
    )


def _undecided(backlog: Backlog) -> Finding:
    if backlog.undecided is None:
        return ok("unknown jobs", "No job waits for a person who knows what became of an effect.")
    number, age = backlog.undecided
    return bad(
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


def read_serves(rows: Iterable[Sequence[Any]]) -> list[Serves]:
    """From rows with the two JSON texts of each live worker."""
    return [
        Serves(frozenset(msgspec.json.decode(queues)), frozenset(msgspec.json.decode(tasks)))
        for queues, tasks in rows
    ]


def named(numbers: Sequence[tuple[str, int]], most: int = COUNTED) -> str:
    """`mail (12), default (3) and 4 more`; a number that was not counted to its end has a plus: `mail (10,000+)`."""
    shown = ", ".join(f"{name} ({number:,}{'+' * (number >= most)})" for name, number in numbers[:_NAMED])
    rest = len(numbers) - _NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown
