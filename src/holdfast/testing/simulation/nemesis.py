"""Brings the faults of a plan upon the fleet, and takes them away again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Never

import apsw

from holdfast.kernel.errors import StoreUnavailable
from holdfast.testing.simulation.faults import Fault
from holdfast.testing.simulation.fleet import Fleet
from holdfast.testing.simulation.process import Killed, Process, running


@dataclass
class _Trap:
    """A fault that waits at a crash point for a process of its node."""

    fault: Fault
    skip: int
    times: int


class Nemesis:
    def __init__(self, fleet: Fleet, coverage: Counter[str]) -> None:
        self._fleet = fleet
        self._loop = fleet.loop
        self._traps: list[_Trap] = []
        self._full_until = self._slow_until = 0.0
        self._away_until: dict[str, float] = {}  # by node
        self._coverage = coverage
        self.healed = False

    def strike(self, fault: Fault) -> None:
        if self.healed:
            return
        self._fleet.history.event("fault", str(fault))
        if fault.point:
            self._traps.append(_Trap(fault, fault.skip, fault.times))
        else:
            _NOW[fault.kind](self, fault)

    def heal(self) -> None:
        """No fault from now on; every node runs."""
        self.healed = True
        self._traps.clear()
        self._full_until = self._slow_until = 0.0
        self._away_until.clear()
        for node in self._fleet.nodes:
            if node.process is None:
                self._fleet.boot(node)
            else:
                self._fleet.resume(node.process)

    # --- faults that strike at once ---

    def kill(self, fault: Fault) -> None:
        if (process := self._fleet.nodes[fault.node].process) is not None:
            self._fleet.kill(process, restart_after=fault.seconds)

    def pause(self, fault: Fault) -> None:
        if (process := self._fleet.nodes[fault.node].process) is not None:
            self._fleet.pause(process, fault.seconds)

    def clock(self, fault: Fault) -> None:
        self._fleet.nodes[fault.node].skew += fault.seconds

    def host_clock(self, fault: Fault) -> None:
        self._fleet.host.stepped += fault.seconds
        self._fleet.history.event("stepped", fault.seconds)

    def full(self, fault: Fault) -> None:
        self._full_until = self._loop.time() + fault.seconds
        self._fleet.history.event("full", fault.seconds)

    def slow(self, fault: Fault) -> None:
        self._slow_until = self._loop.time() + fault.seconds
        self._fleet.history.event("slow", fault.seconds)

    # --- faults that wait at a crash point ---

    def passed(self, point: str) -> None:
        """The action of every crash point."""
        process = running()
        if process is None or not process.alive:
            return
        self._coverage[f"passed {point}"] += 1
        if point in _COMMITS:
            self._trouble_disk()
            if self._loop.time() < self._away_until.get(process.node.name, 0.0):
                raise StoreUnavailable("The store cannot be reached.")
        for trap in self._traps:
            if trap.fault.point == point and self._fleet.nodes[trap.fault.node] is process.node:
                if trap.skip > 0:
                    trap.skip -= 1
                    continue
                trap.times -= 1
                if trap.times == 0:
                    self._traps.remove(trap)
                self._coverage[f"{trap.fault.kind} {point}"] += 1
                self._fleet.history.event("sprung", str(trap.fault))
                _AT_POINT[trap.fault.kind](self, process, trap.fault)
                return

    def _trouble_disk(self) -> None:
        if self._loop.time() < self._slow_until:
            self._coverage["slow disk"] += 1
            self._loop.advance(0.05 + self._fleet.chance() * 0.5)
        if self._loop.time() < self._full_until:
            self._coverage["full disk"] += 1
            raise apsw.FullError("database or disk is full")

    def crash(self, process: Process, fault: Fault) -> Never:
        self._fleet.kill(process, restart_after=fault.seconds)
        raise Killed

    def stall(self, process: Process, fault: Fault) -> None:
        self._fleet.pause(process, fault.seconds)

    def refuse(self, process: Process, fault: Fault) -> Never:
        raise StoreUnavailable("The request was lost.")

    def lose_reply(self, process: Process, fault: Fault) -> Never:
        self._away_until[process.node.name] = self._loop.time() + fault.seconds
        raise ConnectionError("the reply was lost")

    def lose_request(self, process: Process, fault: Fault) -> None:
        """COMMIT itself fails, without having happened, as on a disk that goes away; the store cannot tell."""
        for connection in self._fleet.connections_of(process):
            with suppress(apsw.ConnectionClosedError):
                connection.set_commit_hook(_io_error)


# What stands on the thread of the file. A part of the engine that is about to commit has not touched the disk yet.
_COMMITS = ("store.before_commit", "transaction.before_commit")


def _io_error() -> bool:
    raise apsw.IOError("disk I/O error")


_NOW: dict[str, Callable[[Nemesis, Fault], None]] = {
    "kill": Nemesis.kill,
    "pause": Nemesis.pause,
    "clock": Nemesis.clock,
    "host clock": Nemesis.host_clock,
    "full": Nemesis.full,
    "slow": Nemesis.slow,
}
_AT_POINT: dict[str, Callable[[Nemesis, Process, Fault], None]] = {
    "crash": Nemesis.crash,
    "stall": Nemesis.stall,
    "refused": Nemesis.refuse,
    "lost reply": Nemesis.lose_reply,
    "lost request": Nemesis.lose_request,
}
