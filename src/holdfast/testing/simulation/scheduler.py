"""A scheduler in every process: they race for each nominal time, and one job comes of it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import msgspec

from holdfast.jobs.cron import fires
from holdfast.kernel.clock import moment, sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.ids import new_id
from holdfast.kernel.randomness import jittered
from holdfast.store.records import NewJob
from holdfast.testing.simulation.fleet import Args, Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import QUEUES, Beat

# A schedule begins this long before the simulation: over the jump of the local clock.
LOOK_BACK = timedelta(hours=3)
EVERY = 5.0


async def schedule(life: Life) -> None:
    """The program: look at every schedule, and tick what is due by the database's clock, in order."""
    while life.fleet.plan.schedules and not life.process.draining:
        for each in life.fleet.plan.schedules:
            try:
                await _tick_due(life, each.name, each.expression, each.zone)
            except (*REFUSALS, CommitUnknown):
                break  # the next round begins at the first that is missing
        await sleep(jittered(EVERY))


async def _tick_due(life: Life, name: str, expression: str, zone: str) -> None:
    last = await life.store.schedules.last(name)
    after = moment(life.fleet.plan.epoch) - LOOK_BACK if last is None else moment(last.nominal)
    for due in fires(expression, zone, after, moment(await life.store.now())):
        crashpoint("schedule.before_tick")
        job = NewJob(id=new_id(), task="sim", args=_args(), queue=QUEUES[0])
        nominal = due.timestamp()
        await life.history.call(
            "tick", (name, nominal, job.id), partial(life.store.schedules.tick, name, nominal, job)
        )


def _args() -> str:
    return msgspec.json.encode(Args(-1, 0, (Beat(0.05, "done"),))).decode()
