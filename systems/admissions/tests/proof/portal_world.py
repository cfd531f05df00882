"""The world of the portal's proof: simulators, APIs and workers as processes, and what each of them is told."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tools.processes import Process, environment
from tools.proving.crew import Crew
from tools.proving.place import Place, ports
from tools.waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
LEASE = 5.0  # seconds; 30 by default
SIMULATORS = ("stripe", "smtp", "clamd")
# What is said of the proof: shorter rests, and more at a time than a small university needs.
TIMES = {
    "ADMISSIONS_BREAKER_OPEN_S": "2",
    "ADMISSIONS_LOOK_EVERY_S": "5",
    "ADMISSIONS_FIRST_WAIT_S": "0.5",
    "ADMISSIONS_OLDEST_S": "3600",
    "STRIPE_TIMEOUT_S": "3",
    "CLAMD_TIMEOUT_S": "3",
}
PLACES = {
    "ADMISSIONS_VERIFY_AT_ONCE": "16",
    "ADMISSIONS_PAY_AT_ONCE": "16",
    "ADMISSIONS_MAIL_AT_ONCE": "16",
    "STRIPE_CALLS_A_SECOND": "400",
}


@dataclass(frozen=True)
class Size:
    applications: int
    terms: int  # each person applies for all of them
    connections: int
    workers: int
    every: float  # seconds between two troubles
    patience: float
    scale: float  # of the seed's delays, in the comparison
    load: float  # seconds of each side of the comparison
    clients: int


WHOLE = Size(5_000, 20, 200, 4, 2.0, 900.0, 1.0, 60.0, 20)
SMALL = Size(300, 20, 20, 2, 3.0, 200.0, 0.05, 3.0, 8)


@dataclass
class World:
    place: Place
    size: Size
    crew: Crew
    lines: dict[str, int] = field(default_factory=dict)  # ports by name

    @property
    def folder(self) -> Path:
        return self.place.folder

    def choose_ports(self) -> None:
        names = ("stripe", "smtp", "smtp_page", "clamd", "clamd_page", "api-0", "api-1", "before")
        names += tuple(f"health-{number}" for number in range(self.size.workers))
        self.lines = dict(zip(names, ports(len(names)), strict=True))

    def told(self) -> dict[str, str]:
        """The settings of every process; the database comes with each."""
        return {
            **TIMES,
            "STRIPE_BASE_URL": f"http://127.0.0.1:{self.lines['stripe']}",
            "CLAMD_ADDRESS": f"127.0.0.1:{self.lines['clamd']}",
            "SMTP_URL": f"smtp://127.0.0.1:{self.lines['smtp']}",
            "ADMISSIONS_FILES": str(self.folder / "files"),
            "HOLDFAST_METRICS_FOLDER": str(self.folder / "metrics"),
            "HOLDFAST_LOG_LEVEL": "error",
        }

    def process(self, command: list[str], log: Path, **given: str) -> Process:
        folders = [HERE, HERE.parent, HERE.parents[1], ROOT]
        told = {"DATABASE_URL": self.place.way} | self.told() | given
        return Process([sys.executable, "-m", *command], self.folder, environment(folders, **told), log)

    # --- the outside ---

    async def start_simulators(self) -> None:
        line = {name: str(port) for name, port in self.lines.items()}
        hook = f"http://127.0.0.1:{line['api-0']}/webhooks/stripe"
        commands = {
            "stripe": ["--port", line["stripe"], "--webhook", hook],
            "smtp": ["--port", line["smtp"], "--page", line["smtp_page"]],
            "clamd": ["--port", line["clamd"], "--page", line["clamd_page"]],
        }
        for name, options in commands.items():
            command = [f"simulators.{name}", "--seed", "1", *options]
            self.crew.role(name, 1, lambda _, log, command=command: self.process(command, log))
        for member in self.crew.of(*SIMULATORS):
            await member.process.says("Simulated ")

    async def ask(self, name: str, method: str, what: str, body: object = None) -> Any:
        port = self.lines[{"smtp": "smtp_page", "clamd": "clamd_page"}.get(name, name)]
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            answer = await client.request(
                method, f"http://127.0.0.1:{port}/_sim/{what}", **({} if body is None else {"json": body})
            )
        assert answer.status_code == 200, answer.text
        return answer.json()

    # --- the portal ---

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{self.lines[name]}" for name in ("api-0", "api-1")]

    async def start_portal(self, **given: str) -> None:
        def api(place: int, log: Path) -> Process:
            port = str(self.lines[f"api-{place}"])
            return self.process(["portal_api", port], log, ADMISSIONS_PORT=port, **given)

        def worker(place: int, log: Path) -> Process:
            port = str(self.lines[f"health-{place}"])
            more = {
                "HEALTH_CHECK_PORT": port,
                "HOLDFAST_WORKER_LEASE": str(LEASE),
                "HOLDFAST_LOG_LEVEL": "info",
            }
            return self.process(["admissions.main", "worker"], log, **more, **given)

        self.crew.role("api", 2, api)
        self.crew.role("worker", self.size.workers, worker)
        for address in self.addresses:
            await until(lambda address=address: answers(f"{address}/probes/ready"), 60)
        await until(lambda: all(each.name for each in self.crew.of("worker")), 60)


async def answers(url: str) -> bool:
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=5) as client:
            return (await client.get(url)).status_code == 200
    except httpx2.TransportError:
        return False
