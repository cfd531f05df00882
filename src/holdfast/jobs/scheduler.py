"""Enqueues what schedules say. Any number of schedulers may run: the store takes one job for each nominal time."""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import datetime, timedelta

from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.options import NONE
from holdfast.jobs.schedule import Schedule, Times
from holdfast.kernel.clock import moment, sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store

MOST = 1_000  # missed times that `all` makes up for at a time; the newest of them
ON_TIME = timedelta(seconds=60)  # later than this, a time has been missed
_LONGEST_SLEEP = 30.0  # the database's clock is asked again after this


class Scheduler:
    """A service of every worker. Times are those of the database's clock."""

    def __init__(self, store: Store, enqueuer: Enqueuer, schedules: dict[str, Schedule]) -> None:
        self._store, self._enqueuer, self._schedules = store, enqueuer, schedules
        self._seen: dict[str, datetime] = {}  # by schedule: until when its times were looked at
        self._task: asyncio.Task[None] | None = None
        self._trouble: str | None = None

    async def start(self) -> None:
        if self._schedules:
            self._task = spawn(self._run(), name="scheduler")

    async def stop(self) -> None:
        if (task := self._task) is not None:
            self._task = None
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return

    def trouble(self) -> str | None:
        return self._trouble

    async def _run(self) -> None:
        while True:
            try:
                pause = await self.turn()
                self._trouble = None
            except Exception as error:  # noqa: BLE001  the next time is tried all the same
                self._trouble = f"scheduler: {error}"
                note("scheduler.failed", error=repr(error))
                pause = jittered(1.0)
            await sleep(pause)

    async def turn(self) -> float:
        """Enqueue what is due; returns the seconds until the next time."""
        now = moment(await self._store.now())
        for schedule in self._schedules.values():
            await self._catch_up(schedule, now)
        nexts = [times[0] for each in self._schedules.values() if (times := each.next(now, 1))]
        pause = min([(each - now).total_seconds() for each in nexts], default=_LONGEST_SLEEP)
        return min(_LONGEST_SLEEP, max(0.0, pause) + 0.001)

    async def _catch_up(self, schedule: Schedule, now: datetime) -> None:
        since = await self._since(schedule, now)
        if since >= now:
            return
        for nominal in _due(schedule, since, now):
            await self._tick(schedule, nominal)
        self._seen[schedule.name] = now

    async def _since(self, schedule: Schedule, now: datetime) -> datetime:
        """Where it was left, by this scheduler or by any before it; a new schedule begins now."""
        if (seen := self._seen.get(schedule.name)) is not None:
            return seen
        last = await self._store.schedules.last(schedule.name)
        if last is not None:
            return moment(last.nominal)
        self._seen[schedule.name] = now
        return now

    async def _tick(self, schedule: Schedule, nominal: datetime) -> None:
        crashpoint("schedule.before_tick")
        job = self._enqueuer.build(schedule.task, schedule.arguments(nominal), NONE)
        stored = await self._store.schedules.tick(schedule.name, nominal.timestamp(), job)
        if stored is not None:
            note("schedule.fired", schedule=schedule.name, nominal=nominal.isoformat(), job=stored.id)


def _due(schedule: Schedule, since: datetime, now: datetime) -> list[datetime]:
    """Those in (since, now] that the policy for missed times lets run."""
    match schedule.missed:
        case "all":
            return _newest(schedule.times, since, now, MOST)
        case "latest":
            return _newest(schedule.times, since, now, 1)
        case _:
            return _newest(schedule.times, max(since, now - ON_TIME), now, 1)


def _newest(times: Times, since: datetime, now: datetime, count: int) -> list[datetime]:
    """The newest of them, in order. Looks back in growing steps: a year of minutes is not walked for its last one."""
    back = timedelta(hours=1)
    while True:
        begin = max(since, now - back)
        found = list(deque(times.between(begin, now), maxlen=count))
        if begin == since or len(found) == count:
            return found
        back *= 8
