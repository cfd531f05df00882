"""One phase: load on, a fault again and again, heal, wait until all acknowledged work has ended, count."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from chaos import recovery
from chaos.audit import Audit, Findings
from chaos.faults.fault import Fault
from chaos.fleet import Fleet, Size
from chaos.heard import on_their_way
from chaos.person import Person
from chaos.place import Place, place
from chaos.world import World
from holdfast.kernel.errors import HoldfastError
from holdfast.store.states import State
from tools.postgres import PostgresServer

_PATIENCE = 90.0  # seconds for what was acknowledged to end after the last fault
Tell = Callable[[str, int, int], None]  # what it does now, and how many of how many injections were made


class Row(msgspec.Struct, kw_only=True):
    """One line of the table."""

    fault: str
    store: str
    injections: int = 0
    kills: int = 0
    zombies: int = 0
    acknowledged: int = 0
    done: int = 0
    unanswered: int = 0
    lost: int = 0
    doubled: int = 0
    ghosts: int = 0
    unknown: int = 0  # listed by hf.unknown, and decided by a person
    looked_up: int = 0  # settled by reconcile
    replayed: int = 0  # dead with their workers, and replayed by a person
    late: int = 0
    recover_p50: float | None = None
    recover_max: float | None = None
    limit: float = 0.0
    slowest: list[str] = []  # of those that were interrupted
    seconds: float = 0.0
    notes: list[str] = []  # what was found, in words
    skipped: str = ""  # why it could not be injected here

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.ghosts or self.late or self.notes)

    @property
    def verdict(self) -> str:
        return "not injected" if self.skipped else "kept" if self.is_clean else "BROKEN"


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A fault, how often, and for how long at most."""

    key: str
    fault: Callable[[], Fault]
    count: int
    seconds: float = 120.0


async def run(
    phase: Phase, store: str, server: PostgresServer | None, *, usual: Size, seed: int, tell: Tell,
    disk: Path | None = None,
) -> Row:  # fmt: skip
    fault, began = phase.fault(), time.monotonic()
    async with place(store, server, disk) as where, fault.around(where):
        fleet = Fleet(where, fault.size(usual))
        world, person = World(where, fleet, seed), Person(where)
        try:
            tell("starting", 0, phase.count)
            await fleet.start()
            injections = await _inject(phase, fault, world, tell)
            tell("healing", phase.count, phase.count)
            await fault.heal(world)
            await fleet.stop_callers()
            left = await _end(where, person)
            await fleet.stop()
            audit = Audit(where, person.replayed)
            row = _row(fault, world, person, audit, await audit.make(), left)
            row.injections, row.seconds = injections, time.monotonic() - began
            return row
        finally:
            await fleet.destroy()


async def _inject(phase: Phase, fault: Fault, world: World, tell: Tell) -> int:
    made, end = 0, time.monotonic() + phase.seconds
    while not fault.is_over(world, made, phase.count) and time.monotonic() < end:
        tell("injecting", made, phase.count)
        made += await fault.inject(world)
    return made


async def _end(where: Place, person: Person) -> list[str]:
    """Until nothing waits and nothing runs; returns what is left after all patience."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            waiting = await person.turn() + await _live(where) + await on_their_way(where)
        except (HoldfastError, OSError) as error:
            waiting, left = 1, [f"the store does not answer: {error}"]
        else:
            left = [f"{waiting} jobs and events have not ended after {_PATIENCE:g} s"]
        if not waiting:
            return []
        if time.monotonic() > end:
            return left
        await asyncio.sleep(0.2)


async def _live(where: Place) -> int:
    counts = await where.hf.queues.count()
    return sum(
        each.number
        for each in counts
        if each.queue == "default" and each.state in (State.QUEUED, State.RUNNING)
    )


def _row(
    fault: Fault, world: World, person: Person, audit: Audit, findings: Findings, left: list[str]
) -> Row:
    runs = [run for run in audit.runs if run.task not in fault.newer]
    found = recovery.times(runs, world.injections, from_the_end=fault.from_the_end, decided=person.decided)
    times = [each.seconds for each in found]
    late = [each for each in times if each > fault.limit]
    [[looked_up]] = world.place.there.fetch("SELECT count(*) FROM lookup WHERE found")
    notes = [*left, *(f"dead: {why}" for why in person.failed.values()), *world.fleet.trouble]
    return Row(
        fault=fault.name, store=world.place.store, kills=world.kills, zombies=world.zombies,
        acknowledged=findings.acknowledged, done=findings.done,
        unanswered=findings.unanswered,
        lost=len(findings.lost), doubled=len(findings.doubled), ghosts=len(findings.ghosts),
        unknown=len(person.listed), looked_up=looked_up, replayed=len(person.replayed),
        late=len(late), limit=fault.limit,
        recover_p50=round(statistics.median(times), 1) if times else None,
        recover_max=round(times[-1], 1) if times else None,
        slowest=[f"{each.seconds:.1f} s: {each.told}" for each in found[-5:]],
        notes=[*findings.lost[:20], *findings.doubled[:20], *findings.ghosts[:20], *findings.disorder[:5], *notes[:5]],
    )  # fmt: skip
