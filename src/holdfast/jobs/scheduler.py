"""Enqueues what schedules say. Any number of schedulers may run: the store takes one job for each nominal time."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.options import NONE
from holdfast.jobs.schedule import Schedule, Times
from holdfast.kernel.clock import moment, sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import TROUBLE, TooManyWaiting
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Looping
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store

MOST = 1_000  # missed times that `all` makes up for at a time; the newest of them
ON_TIME = timedelta(seconds=60)  # later than this, a time has been missed
_AGAIN = 1.0  # seconds, about, until what failed is tried again
_LONGEST_SLEEP = 30.0  # the database's clock is asked again after this


class Scheduler(Looping):
    """A service of every worker. Times are those of the database's clock."""

    def __init__(self, store: Store, enqueuer: Enqueuer, schedules: dict[str, Schedule]) -> None:
        super().__init__("scheduler")
        self._store, self._enqueuer, self._schedules = store, enqueuer, schedules
        self._seen: dict[str, datetime] = {}  # by schedule: until when its times were looked at

    async def start(self) -> None:
        if self._schedules:
            await super().start()

    async def _run(self) -> None:
        while True:
            try:
                pause = await self.turn()
            except Exception as error:  # noqa: BLE001  the next time is tried all the same
                self._failed(error)
                pause = _AGAIN
            await sleep(pause if self._trouble is None else jittered(_AGAIN))

    async def turn(self) -> float:
        """Enqueue what is due; returns the seconds until the next time."""
        self._trouble = None
        now = moment(await self._store.now())
        pauses = [await self._serve(schedule, now) for schedule in self._schedules.values()]
        return min(_LONGEST_SLEEP, max(0.0, min(pauses, default=_LONGEST_SLEEP)) + 0.001)

    async def _serve(self, schedule: Schedule, now: datetime) -> float:
        """One of them; returns the seconds until its next time. Its failure is not that of those declared after it."""
        try:
            await self._catch_up(schedule, now)
            nexts = schedule.next(now, 1)
        except TROUBLE:
            raise  # the store's, so of all
        except Exception as error:  # noqa: BLE001  whatever its arguments or its times do
            self._failed(error, schedule)
            return _AGAIN
        return (nexts[0] - now).total_seconds() if nexts else _LONGEST_SLEEP

    def _failed(self, error: Exception, schedule: Schedule | None = None) -> None:
        name = "all" if schedule is None else schedule.name
        self._trouble = f"scheduler ({name}): {error}"
        note("scheduler.failed", schedule=name, error=repr(error))

    async def _catch_up(self, schedule: Schedule, now: datetime) -> None:
        since = await self._since(schedule, now)
        if since >= now:
            return
        for nominal in _due(schedule, since, now):
            try:
                await self._tick(schedule, nominal)
            except TooManyWaiting as error:  # what max_waiting is for: this time is passed over, and no error
                note(
                    "schedule.passed_over",
                    schedule=schedule.name,
                    nominal=nominal.isoformat(),
                    why=str(error),
                )
                break  # later ones would be refused as well
        self._seen[schedule.name] = now

    async def _since(self, schedule: Schedule, now: datetime) -> datetime:
        """Where it was left, by this scheduler or by any before it; a new schedule begins now, and the store knows it.

        What was seen by a clock that has been put back since counts no more: a person may have reset the schedule for it.
        """
        if (seen := self._seen.get(schedule.name)) is not None and seen <= now:
            return seen
        return moment(await self._store.schedules.begin(schedule.name))

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
        found = list(deque(times.fires(begin, now), maxlen=count))
        if begin == since or len(found) == count:
            return found
        back *= 8
