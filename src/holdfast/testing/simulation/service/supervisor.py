"""A supervisor beside the nodes: it sees processes die, and puts back at once what they held."""

from __future__ import annotations

import asyncio

from holdfast.jobs.deaths import Deaths
from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.randomness import jittered
from holdfast.testing.simulation.fleet import Fleet, Life, watched
from holdfast.testing.simulation.process import Node, Process
from holdfast.testing.simulation.service.node import App

REAPED = 0.2  # seconds, about, until a death is seen
TRIES = 5


def supervise(fleet: Fleet) -> None:
    """Start it, in a process of its own that no fault strikes."""
    if any(fleet.plan.supervised):
        process = fleet.new_process(Node("supervisor", 0.0))
        process.start(_live(fleet, process), "main")


async def _live(fleet: Fleet, process: Process) -> None:
    deaths: asyncio.Queue[Process] = asyncio.Queue()
    fleet.on_death = deaths.put_nowait
    if (store := await fleet.open_store()) is not None:
        life = Life(fleet, process, store)
        await watched(life, _watch, life, deaths)


async def _watch(life: Life, seen: asyncio.Queue[Process]) -> None:
    app = App(life)
    deaths = Deaths(life.store, app.registry, app.portal)
    while True:
        dead = await seen.get()
        if is_seen(life.fleet, dead):
            await sleep(jittered(REAPED))
            await _bury(life, deaths, dead)


def is_seen(fleet: Fleet, dead: Process) -> bool:
    """Whether the dead process was a child of this supervisor."""
    return fleet.plan.supervised[fleet.nodes.index(dead.node)]


async def _bury(life: Life, deaths: Deaths, dead: Process) -> None:
    """As the supervisor of the command line does: a few times, then leases have to end by themselves."""
    for _ in range(TRIES):
        try:
            await deaths.rescue_worker(dead.name)
        except HoldfastError:
            await sleep(jittered(1.0))
        else:
            life.history.event("buried", dead.name)
            return
