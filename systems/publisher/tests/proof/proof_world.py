"""The world of a proof: how long times are, who takes part, and what each process is told."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from tools.processes import Process, environment
from tools.proving.crew import Crew
from tools.proving.place import Place, ports
from tools.waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
MAIN = (sys.executable, "-m", "publisher.main")
LEASE = 2.5  # seconds; 30 by default
BUSY = 20.0  # more seconds in the small form, which runs beside other tests
SCAN = 7.5  # seconds after a lease in which its job runs again, on a machine that runs all of this at once
# A hundredth of the usual ones: those of the artist's pace, of the breaker, and of looking again.
TIMES = {
    "RATE_LIMITER_BASE_DELAY_MS": "30",
    "RATE_LIMITER_MAX_DELAY_MS": "3000",
    "PUBLISHER_FASTEST_DELAY_MS": "10",
    "PUBLISHER_LONGEST_REST_MS": "24000",
    "CIRCUIT_BREAKER_OPEN_DURATION_MS": "3000",
    "PUBLISHER_SETTLE_S": "0.6",
    "PUBLISHER_LOOK_AGAIN_S": "0.6",
}
CALL_TIMEOUT = "3"  # seconds; 30 usually, and a busy machine answers late
# So are the limits of the other side; that of the application would be the pace of the proof.
LIMITS = {"user_window": 0.06, "block": 18.0, "block_grows": 0.6, "app_calls": 1_000_000, "answers_in": 0.2}


@dataclass(frozen=True)
class Size:
    workers: int
    apis: int
    artists: int
    at_once: int  # posts
    over_outage: int
    pressed: int  # by hand, at the API
    kills_every: float  # seconds
    freezes_every: float
    cuts_every: float
    hurt_for: float  # seconds, at least
    patience: float


WHOLE = Size(5, 2, 200, 1000, 300, 100, 2.5, 6.0, 7.0, 60.0, 300.0)
SMALL = Size(3, 0, 40, 110, 40, 0, 4.0, 7.0, 5.0, 10.0, 90.0)


@dataclass
class World:
    place: Place
    size: Size
    crew: Crew
    simulator: str = ""
    ports: list[int] = field(default_factory=list)
    api_ports: list[int] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.place.folder

    def told(self) -> dict[str, str]:
        """The settings of every process; the database comes with each."""
        return TIMES | {
            "DEVIANTART_BASE_URL": self.simulator,
            "PUBLISHER_CALL_TIMEOUT_S": CALL_TIMEOUT,
            "PUBLISHER_FILES": str(self.folder / "files"),
            "PUBLISHER_KEYS": os.environ["PUBLISHER_KEYS"],
            "SMTP_URL": f"file:{self.folder / 'mail'}",
            "HOLDFAST_METRICS_FOLDER": str(self.folder / "metrics"),
        }

    def process(self, command: list[str], log: Path, **given: str) -> Process:
        system = HERE.parents[1]
        folders = [HERE, HERE.parent, system, ROOT]
        told = {"DATABASE_URL": self.place.way} | self.told() | given
        return Process(command, self.folder, environment(folders, **told), log)

    # --- the outside ---

    async def start_simulator(self) -> None:
        log = self.folder / "simulator.log"
        command = [sys.executable, "-m", "simulators.deviantart", "--seed", "1"]
        self.crew.role("simulator", 1, lambda _, __: self.process(command, log))
        [process] = [each.process for each in self.crew.of("simulator")]
        await process.says("Simulated DeviantArt: ")
        self.simulator = process.log.split("Simulated DeviantArt: ")[1].split()[0]
        await self.ask("PUT", "settings", LIMITS)

    async def ask(self, method: str, what: str, body: object = None):
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            answer = await client.request(
                method, f"{self.simulator}/_sim/{what}", **({} if body is None else {"json": body})
            )
        assert answer.status_code == 200, answer.text
        return answer.json()

    # --- workers ---

    def start_workers(self) -> None:
        self.ports = self.ports or ports(self.size.workers)

        def start(place: int, log: Path) -> Process:
            port = str(self.ports[place])
            return self.process(
                [*MAIN, "worker"], log, HEALTH_CHECK_PORT=port, HOLDFAST_WORKER_LEASE=str(LEASE)
            )

        self.crew.role("worker", self.size.workers, start)

    def start_api(self) -> list[str]:
        """Their addresses."""
        self.api_ports = self.api_ports or ports(self.size.apis)

        def start(place: int, log: Path) -> Process:
            return self.process([*MAIN, "api"], log, PUBLISHER_PORT=str(self.api_ports[place]))

        self.crew.role("api", self.size.apis, start)
        return [f"http://127.0.0.1:{port}" for port in self.api_ports]

    async def workers_are_there(self) -> None:
        await until(
            lambda: sum(each.name is not None for each in self.crew.of("worker")) == self.size.workers, 60
        )

    async def scraped(self) -> str:
        """The numbers of all workers there were: they share a folder."""
        async with httpx2.AsyncClient(trust_env=False, timeout=20) as client:
            for _ in range(100):
                for port in self.ports:
                    try:
                        answer = await client.get(f"http://127.0.0.1:{port}/metrics")
                    except httpx2.TransportError:
                        continue
                    if answer.status_code == 200:
                        return answer.text
                await asyncio.sleep(0.1)
        raise AssertionError("no worker shows its metrics")
