"""Real processes of the publisher on a test's database, which publish at the simulator of this test."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from publisher_server import ENVIRONMENT

from tools.processes import Process, environment
from tools.proving.place import ports
from tools.waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MAIN = (sys.executable, "-m", "publisher.main")
LEASE = 2.0  # seconds; 30 by default
SCAN = 8.0  # within which a job runs again after its lease, also on a machine that does much else
SHIFTED = """
import os, time
_true, _by = time.time, float(os.environ["CLOCK_BY"])
time.time = lambda: _true() + _by
time.time_ns = lambda: int(time.time() * 1e9)
"""


class Fleet:
    """`url` is the database; settings of a process are given by their variables."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.processes: list[Process] = []

    def start(self, *command: str, **given: str) -> Process:
        told = {
            "DATABASE_URL": self.url, "HOLDFAST_WORKER_LEASE": str(LEASE), "PUBLISHER_LOOK_AGAIN_S": "0.5",
            "PUBLISHER_SETTLE_S": "0.5", "HEALTH_CHECK_ENABLED": "false",
        }  # fmt: skip
        given = {name: value for name, value in (os.environ | ENVIRONMENT | told | given).items() if value}
        folders = [*given.pop("FOLDERS", "").split(), HERE.parent, ROOT]
        log = self.folder / f"process-{len(self.processes)}.log"
        process = Process([*command], self.folder, environment(folders, **given), log)
        self.processes.append(process)
        return process

    @property
    def holdfast(self) -> list[str]:
        return [sys.executable, "-m", "holdfast"]

    def start_worker(self, **given: str) -> Process:
        return self.start(*MAIN, "worker", **given)

    async def worker(self, **given: str) -> Process:
        """As an operator starts it; it takes jobs when this returns."""
        process = self.start_worker(**given)
        await process.says("takes jobs from", 60)
        return process

    async def probed(self, **given: str) -> tuple[Process, int]:
        """A worker with probes, and their port."""
        [port] = ports(1)
        return await self.worker(HEALTH_CHECK_ENABLED="true", HEALTH_CHECK_PORT=str(port), **given), port

    async def called(self, simulator, endpoint: str, number: int = 1) -> None:
        """Wait until the simulator has had so many calls."""
        try:
            await until(lambda: calls(simulator, endpoint) >= number, 60)
        except AssertionError:
            raise AssertionError(
                f"no {number} calls of {endpoint}: {dict(simulator.ledger.calls)}\n{self.said}"
            ) from None

    def shift(self, seconds: float) -> dict[str, str]:
        """Settings of a process whose clock is wrong by so much."""
        folder = self.folder / "shim"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(SHIFTED)
        return {"FOLDERS": str(folder), "CLOCK_BY": str(seconds)}

    @property
    def said(self) -> str:
        """What all of them have said, for who wonders why."""
        return "\n".join(f"--- {each.pid}:\n{each.log}" for each in self.processes)

    def end_all(self) -> None:
        for process in self.processes:
            process.destroy()


def calls(simulator, endpoint: str) -> int:
    return simulator.ledger.calls[endpoint]
