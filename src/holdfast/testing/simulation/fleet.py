"""The nodes of one simulation, what runs on them, and the file they share."""

from __future__ import annotations

import contextvars
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import apsw
import msgspec

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import CommitUnknown, NotOpen
from holdfast.store.records import NewJob
from holdfast.store.sqlite.store import SqliteStore
from holdfast.testing.simulation.history import REFUSALS, History
from holdfast.testing.simulation.loop import SeededLoop
from holdfast.testing.simulation.plan import SUPERVISOR, Beat, JobSpec, Op, Plan
from holdfast.testing.simulation.process import Node, Process, running
from holdfast.testing.simulation.triggers import Marks
from holdfast.testing.simulation.world import Host, SimulatedWorld


class Life:
    """What the code of one process works with."""

    def __init__(self, fleet: Fleet, process: Process, store: SqliteStore) -> None:
        self.fleet, self.process, self.store = fleet, process, store
        self.history = fleet.history
        self.app: Any = None  # what the workload has built for it
        self.leave: Callable[[], Awaitable[None]] = _give_time  # end its programs

    @property
    def name(self) -> str:
        return self.process.name


class Args(msgspec.Struct, array_like=True):
    """A simulated job's arguments: whose it is, and what its body does on each run."""

    op: int
    place: int
    script: tuple[Beat, ...]


class NamedArgs(msgspec.Struct):
    """The same as tasks are given them; a schedule's job has none of these."""

    op: int = -1
    place: int = 0
    script: tuple[Beat, ...] = ()


async def _give_time() -> None:
    """Programs that look at `draining` end by themselves."""
    await sleep(2.0)


@dataclass(frozen=True)
class Workload:
    """A kind of simulation: what its seeds decide, and what runs on its nodes."""

    plan: Callable[[int], Plan]
    open: Callable[[str, History], SqliteStore]
    furnish: Callable[[Life], None]  # a process, before its programs start
    programs: tuple[Program, ...]
    new_job: Callable[[Life, Op, int, JobSpec], NewJob]
    beside: Callable[[Fleet], None]  # what else is started, on no node
    hurried: Callable[[], AbstractContextManager[object]]  # with which production code looks less often
    calm: float = 4.0  # seconds after the heal, at least
    # What beside jobs must still end.
    pending: Callable[[Fleet, apsw.Connection], list[str]] = lambda _fleet, _watcher: []


class Fleet:
    def __init__(self, loop: SeededLoop, plan: Plan, path: str, workload: Workload) -> None:
        self.loop, self.plan, self.path, self.workload = loop, plan, path, workload
        self.host = Host(loop, plan.epoch)
        self.history = History(loop)
        self.nodes = [Node(f"n{place}", skew) for place, skew in enumerate(plan.skews)]
        self.processes: list[Process] = []
        self.worlds: list[SimulatedWorld] = []
        self.lives: dict[str, Life] = {}
        self.healed = False
        self.healed_at = 0.0
        self.runs: Counter[str] = Counter()  # of each job's body, whoever ran it
        self.acknowledged: dict[int, list[str]] = {}  # ids of jobs, by the op that enqueued them
        self.marks = Marks(lambda: (self.host.now(), loop.time(), loop.steps))
        self.outside = contextvars.copy_context()  # of no process: what happens there survives a kill
        self._connections: list[tuple[Process, apsw.Connection]] = []
        self.provider: Any = None  # a service outside, if the workload has one
        self.on_death: Callable[[Process], None] | None = None
        self.chance: Callable[[], float] = random.Random(f"chance:{plan.seed}").random

    def boot(self, node: Node) -> None:
        """Start a process on the node: a fresh store on the same file, then its programs."""
        if node.process is None:
            process = self.new_process(node)
            self.history.event("booted", process.name)
            process.start(self._live(process), "main")

    def new_process(self, node: Node) -> Process:
        process = Process(self.loop, node, len(self.processes) + 1)
        self.processes.append(process)
        world = SimulatedWorld(process, self.host, str(self.plan.seed))
        self.worlds.append(world)
        process.inhabit(world)
        return process

    def kill(self, process: Process, *, restart_after: float = SUPERVISOR, well: bool = False) -> None:
        """End it, and start the next one later. `well`: it left by itself, and nobody need clean up after it."""
        if process.alive:
            self.history.event("killed", process.name)
            process.kill()
            self.loop.call_later(restart_after, self.boot, process.node, context=self.outside)
            if not well and self.on_death is not None:
                self.outside.copy().run(self.on_death, process)

    def pause(self, process: Process, seconds: float) -> None:
        """Stop it as SIGSTOP would, connections and locks included, and let it go on later."""
        if process.alive and not process.paused:
            self.history.event("paused", process.name)
            process.pause()
            self.loop.call_later(seconds, self.resume, process, context=self.outside)

    def resume(self, process: Process) -> None:
        if process.alive and process.paused:
            self.history.event("resumed", process.name)
            process.resume()

    async def drain(self, life: Life) -> None:
        """Stop a process as SIGTERM would: its programs end by themselves, then the store is closed."""
        if life.process.draining:
            return
        life.process.draining = True
        self.history.event("draining", life.name)
        await life.leave()
        self.history.event("drained", life.name)
        await life.store.close()
        self.kill(life.process, well=True)

    def life_on(self, place: int) -> Life | None:
        """What runs on this node now, or on the next one that is up."""
        for offset in range(len(self.nodes)):
            process = self.nodes[(place + offset) % len(self.nodes)].process
            if process is not None and not process.draining and process.name in self.lives:
                return self.lives[process.name]
        return None

    def connections_of(self, process: Process) -> list[apsw.Connection]:
        return [connection for owner, connection in self._connections if owner is process]

    def connected(self, connection: apsw.Connection) -> None:
        """APSW calls this for every new connection: the triggers of the ledger ask it who and when."""
        process = running()
        if process is None:
            return
        self._connections.append((process, connection))
        self.marks.lend(connection, process.name)

    async def _live(self, process: Process) -> None:
        if (store := await self.open_store()) is None:
            return
        self.history.event("opened", process.name)
        life = self.lives[process.name] = Life(self, process, store)
        self.workload.furnish(life)
        for program in self.workload.programs:
            process.start(watched(life, program, life), program.__name__)

    async def open_store(self) -> SqliteStore | None:
        """A fresh store on the one file; None when it cannot be, which is a surprise."""
        store = self.workload.open(self.path, self.history)
        while True:
            try:
                await store.open()
            except (*REFUSALS, CommitUnknown):
                await sleep(0.5)
            except Exception as error:  # noqa: BLE001  a fleet in which nobody works would break no promise
                self.history.surprise(f"open: {type(error).__name__}: {error}")
                return None
            else:
                return store

    def bury(self) -> None:
        for process in self.processes:
            process.bury()
        self._connections.clear()


Program = Callable[[Life], Coroutine[Any, Any, None]]


async def watched(life: Life, program: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Run it; an error that nobody handles is a surprise, which fails the simulation."""
    try:
        await program(*args)
    except NotOpen:
        if not life.process.draining:
            life.history.surprise(f"{program.__name__}: the store is closed")
    except Exception as error:  # noqa: BLE001
        if life.process.alive:
            life.history.surprise(f"{program.__name__}: {type(error).__name__}: {error}")
