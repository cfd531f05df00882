"""The tasks of simulated programs: each plays the script of its job, and what is dead leaves a row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from holdfast.guards.backoff import Backoff
from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.cron import Cron
from holdfast.jobs.hooks import Middleware
from holdfast.jobs.job import Job, attempt_of
from holdfast.jobs.look import Look
from holdfast.jobs.registry import Registry
from holdfast.jobs.schedule import Schedule
from holdfast.jobs.task import Sender
from holdfast.kernel.clock import monotonic, sleep
from holdfast.store.ports import Tx
from holdfast.store.states import State
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.plan import Beat, ScheduleSpec
from holdfast.testing.simulation.process import Killed
from holdfast.testing.simulation.service.acts import Acts

ROW = "INSERT INTO sim_row (op, kind, job_id) VALUES ($1, $2, $3)"
# Options of each task; what every enqueue may say for itself is said there.
TASKS: dict[str, dict[str, Any]] = {
    "plain": {"retry": Backoff(attempts=3, first=0.4, ceiling=1.5)},
    "timed": {"retry": Backoff(attempts=2, first=0.4, ceiling=1.0), "timeout": 1.5},
    "locked": {"lock": "{key}", "retry": Backoff(attempts=3, first=0.4, ceiling=1.5)},
    "few1": {"concurrency": ("{key}", 1), "retry": Backoff(attempts=2, first=0.4, ceiling=1.0)},
    "few2": {"concurrency": ("{key}", 2), "retry": Backoff(attempts=2, first=0.4, ceiling=1.0)},
    "bounded": {"max_waiting": 4, "retry": Backoff(attempts=2, first=0.4, ceiling=1.0)},
    "doomed": {"retry": Backoff(attempts=1)},  # its on_dead handler fails
    "newer": {
        "retry": Backoff(attempts=2, first=0.4, ceiling=1.0)
    },  # the first program on some nodes has no such task
}
# Tasks whose bodies have steps and effects.
ACTING: dict[str, dict[str, Any]] = {
    "acting": {"retry": Backoff(attempts=3, first=0.4, ceiling=1.5)},
    "hasty": {"retry": Backoff(attempts=2, first=0.4, ceiling=1.0), "timeout": 3.0},
}
TASKS |= ACTING
NEWER = "newer"
DOOMED = "doomed"


def declare(registry: Registry, sender: Sender, life: Life) -> None:
    """Tasks, what follows their deaths, and schedules, as a program's modules would."""

    async def play(job: Job, op: int, place: int, script: list[Beat], key: str = "") -> int | None:  # noqa: ARG001
        return await _play(life, job, script)

    async def act(job: Job, op: int, place: int, script: list[Beat], acts: list[str]) -> int | None:  # noqa: ARG001
        await Acts(life, job).play(acts)
        return await _play(life, job, script)

    async def scheduled(nominal: datetime) -> None:  # noqa: ARG001
        await sleep(0.05)

    async def leave_a_row(job: Job, tx: Tx) -> None:
        await tx.execute(ROW, 0, "on_dead", job.id)

    async def leave_another(job: Job, tx: Tx) -> None:
        await tx.execute(ROW, 0, "on_end", job.id)

    for name, options in TASKS.items():
        if name != NEWER or life.process.node.lives > 1 or life.process.node.name == "n0":
            registry.add(act if name in ACTING else play, sender, {"name": name, **options})
            registry.add_on_end(State.DEAD, name, _fail if name == DOOMED else leave_a_row)
            registry.add_on_end(State.UNKNOWN, name, leave_another)
            registry.add_on_end(State.CANCELLED, name, leave_another)
    for each in life.fleet.plan.schedules:
        task = registry.add(
            scheduled, sender, {"name": f"cron.{each.name}", "queue": life.fleet.plan.queues[0]}
        )
        registry.add_schedule(_schedule(task, each))
    registry.hooks.use(Watch(life))


def _schedule(task: Any, each: ScheduleSpec) -> Schedule:
    return Schedule(task, Cron(each.expression, tz=each.zone), name=each.name, missed=each.missed)  # type: ignore[arg-type]


async def _fail(job: Job, tx: Tx) -> None:
    """Its row is rolled back with the rest."""
    await tx.execute(ROW, 0, "on_dead", job.id)
    raise ValueError("a handler failed")


class Watch(Middleware):
    """Writes down when a body begins and ends."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def run(self, job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        if isinstance(attempt_of(job), Look):
            return await call_next()  # it is no run
        history, claim = self._life.history, (job.id, job.token)
        history.event("body", (*claim, job.attempt, job.queue))
        try:
            return await call_next()
        finally:
            if self._life.process.alive:
                history.event("body over", claim)


# --- one run ---


async def _play(life: Life, job: Job, script: Sequence[Beat]) -> int | None:
    runs = life.fleet.runs
    runs[job.id] += 1
    beat = script[min(runs[job.id], len(script)) - 1]
    await _spend(job, beat)
    return await _end(life, job, beat)


async def _spend(job: Job, beat: Beat) -> None:
    if beat.outcome.startswith("deaf"):
        await _sleep_through(beat.seconds)
    elif beat.seconds > 0.8:
        await sleep(beat.seconds / 2)
        await job.heartbeat(progress=0.5)
        await sleep(beat.seconds / 2)
    else:
        await sleep(beat.seconds)


async def _sleep_through(seconds: float) -> None:
    """As a task that swallows its cancellation."""
    until = monotonic() + seconds
    while (left := until - monotonic()) > 0:
        try:
            await sleep(left)
        except asyncio.CancelledError:
            continue


async def _end(life: Life, job: Job, beat: Beat) -> int | None:
    match beat.outcome.removeprefix("deaf "):
        case "fail":
            raise RuntimeError("simulated")
        case "retry":
            raise Retry(after=beat.after)
        case "snooze":
            raise Snooze(beat.after)
        case "cancel":
            raise Cancel("simulated")
        case "dead":
            raise Reject("simulated")
        case "poison":
            life.fleet.kill(life.process)
            raise Killed
        case "effect":
            async with job.commit() as tx:
                await tx.execute(ROW, job.token, "effect", job.id)
        case "effect, then fail":
            async with job.commit() as tx:
                await tx.execute(ROW, job.token, "effect", job.id)
            raise RuntimeError("after its completion")
        case "complete":
            async with life.store.transaction() as tx:
                await tx.execute(ROW, job.token, "effect", job.id)
                await job.complete(tx=tx)
        case "complete, then roll back":
            async with life.store.transaction() as tx:
                await tx.execute(ROW, job.token, "effect", job.id)
                await job.complete(tx=tx)
                raise RuntimeError("before its commit")
        case _:
            return 1
    return None
