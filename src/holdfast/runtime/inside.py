"""What a Holdfast is wired of: for the engine, the command line and tests. Programs do not see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.events.bus import Bus
from holdfast.fleet.guards import GuardFleet
from holdfast.jobs.blocking import Portal
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.registry import Registry
from holdfast.jobs.working import Work
from holdfast.kernel.service import Service
from holdfast.runtime.config import Location
from holdfast.sqlalchemy.engines import Engines

if TYPE_CHECKING:
    from holdfast.fleet.redis import RedisGuards
    from holdfast.fleet.redis_visits import RedisVisits
    from holdfast.runtime.app import Holdfast


@dataclass(eq=False)
class Inside:
    """Its parts. Those of the last lines belong to the database that it is pointed at."""

    hooks: Hooks
    fleet: GuardFleet
    registry: Registry
    enqueuer: Enqueuer
    bus: Bus
    guards_elsewhere: RedisGuards | None  # where guards meet, when that is not the database
    visits_elsewhere: (
        RedisVisits | None
    )  # where sessions of web pages are kept, when that is not the database
    forked: Callable[[], None]  # called in a child of the process
    # What each worker runs beside its jobs, made for its name and lease.
    beside: list[Callable[[str, float], Sequence[Service]]] = field(default_factory=list)
    work_elsewhere: Callable[[], Work] | None = None  # of a supervisor: what its processes do
    location: Location = field(init=False)
    portal: Portal = field(init=False)
    engines: Engines = field(init=False)


def inside(hf: Holdfast) -> Inside:
    """The parts of this one."""
    return hf._inside  # noqa: SLF001  hidden from programs, and not from the engine
