"""One seed, from the first boot to the verdict: chaos, heal, drain, then every checker."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

import apsw
import msgspec

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.telemetry import subscribe, unlogged
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.refusals import our_descriptors
from holdfast.testing.simulation.callers import call
from holdfast.testing.simulation.checkers import Run, Violation, check
from holdfast.testing.simulation.end_state import file_size, leaked, remaining, stories, unfinished
from holdfast.testing.simulation.fleet import Fleet, watched
from holdfast.testing.simulation.history import Event
from holdfast.testing.simulation.kinds import KINDS, make_plan
from holdfast.testing.simulation.ledger import Ledger
from holdfast.testing.simulation.loop import Deadlock, SeededLoop
from holdfast.testing.simulation.nemesis import Nemesis
from holdfast.testing.simulation.notes import Notes
from holdfast.testing.simulation.plan import CHAOS, Op
from holdfast.testing.simulation.sometimes import count
from holdfast.testing.simulation.template import Template

CALM = 240.0  # seconds after the heal in which all acknowledged work must end


class Choices(msgspec.Struct, frozen=True):
    """What a replay leaves out of a seed's plan, and from which step on it takes the oldest callback."""

    without_faults: frozenset[int] = frozenset()
    fifo_after: int | None = None


class Result(msgspec.Struct):
    seed: int
    kind: str
    violations: list[Violation]
    trace: str
    steps: int
    ended: float  # virtual seconds
    counts: dict[str, int]
    story: list[str]  # for a person who looks into a failure


def simulate(
    seed: int,
    template: Template,
    choices: Choices = Choices(),  # noqa: B008  it is frozen
    *,
    kind: str = "store",
    story: bool = False,
) -> Result:
    plan = make_plan(seed, kind).without(choices.without_faults)
    loop = SeededLoop(f"schedule:{seed}", fifo_after=choices.fifo_after)
    fleet = Fleet(loop, plan, template.write(), KINDS[kind])
    coverage: Counter[str] = Counter()
    nemesis = Nemesis(fleet, coverage)
    try:
        with _collector_waits(), _hooked(fleet), armed("*", nemesis.passed), fleet.workload.hurried():
            run = _run(fleet, nemesis)
        violations = check(run)
        count(run, coverage)
        trace = f"{loop.trace_hash()}-{fleet.history.digest()}"
        told = [_line(event) for event in fleet.history.events] if story else []
        return Result(seed, kind, violations, trace, loop.steps, loop.time(), dict(coverage), told)
    finally:
        fleet.bury()
        loop.close()


def _run(fleet: Fleet, nemesis: Nemesis) -> Run:
    loop = fleet.loop
    fleet.workload.beside(fleet)
    for node in fleet.nodes:
        fleet.boot(node)
    for op in fleet.plan.ops:
        loop.call_at(op.at, _launch, fleet, op)
    for fault in fleet.plan.faults:
        loop.call_at(fault.at, nemesis.strike, fault)
    with our_descriptors(fleet.path):  # another connection of the same library: no stranger
        watcher = apsw.Connection(fleet.path)
        watcher.execute("PRAGMA schema_version")
    stuck = None
    try:
        loop.run_until_complete(_direct(fleet, nemesis, watcher))
    except Deadlock as deadlock:
        stuck = str(deadlock)
    run = Run(
        plan=fleet.plan,
        history=fleet.history,
        ledger=Ledger(fleet.marks.read(watcher), fleet.marks.committed),
        ended=loop.time(),
        unfinished=unfinished(watcher),
        pending=fleet.workload.pending(fleet, watcher),
        leaked=leaked(watcher),
        remaining=remaining(watcher),
        stories=stories(watcher),
        crashes=[*loop.crashes, *fleet.history.surprises, *([] if stuck is None else [stuck])],
        file_size=file_size(fleet.path),
        longest_mailbox=max(box.longest for world in fleet.worlds for box in world.mailboxes),
    )
    watcher.close()
    return run


async def _direct(fleet: Fleet, nemesis: Nemesis, watcher: apsw.Connection) -> None:
    """Wait out the chaos, heal, and wait until everything has ended, or too long."""
    await asyncio.sleep(CHAOS)
    fleet.history.event("healed", None)
    fleet.healed, fleet.healed_at = True, fleet.loop.time()
    nemesis.heal()
    until = fleet.loop.time() + CALM
    await asyncio.sleep(fleet.workload.calm)
    while fleet.loop.time() < until and (  # noqa: ASYNC110  only the file tells
        unfinished(watcher) or fleet.workload.pending(fleet, watcher)
    ):
        await asyncio.sleep(1.0)


def _launch(fleet: Fleet, op: Op) -> None:
    life = fleet.life_on(op.node)
    if life is None:
        fleet.history.event("nobody", op.number)
        return
    life.process.start(watched(life, call, life, op), f"op {op.number}")


@contextmanager
def _hooked(fleet: Fleet) -> Generator[None, None, None]:
    hooks = apsw.connection_hooks
    hooks.append(fleet.connected)
    forget = subscribe(Notes(fleet.history).hear)
    begin, commit = Db.begin, Db.commit

    def begun(db: Db, mode: str, *, hasty: bool = False) -> None:
        begin(db, mode, hasty=hasty)
        if mode == "IMMEDIATE":
            fleet.marks.began()

    def committed(db: Db) -> None:
        fleet.marks.ended()
        commit(db)

    try:
        with patch.object(Db, "begin", begun), patch.object(Db, "commit", committed), unlogged():
            yield
    finally:
        forget()
        hooks.remove(fleet.connected)


@contextmanager
def _collector_waits() -> Generator[None, None, None]:
    """The collector would end a killed task in the middle of the run, at a time that no seed decides."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _line(event: Event) -> str:
    return f"{event.moment:9.3f} {event.process:8} {event.kind:7} {event.verb:16} {event.data}"
