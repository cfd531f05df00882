"""The publisher with seeded artists and a simulated DeviantArt, on free ports of loopback: for browser tests and pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.local_server import LocalServer, free_port

ROOT = Path(__file__).resolve().parent.parent
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "systems/publisher")))
_PATIENCE = 240  # seconds for the seeding, beside other work


class Simulated(LocalServer):
    """A simulated DeviantArt."""

    name = "deviantart"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [
            "env",
            f"PYTHONPATH={ROOT}",
            sys.executable,
            "-m",
            "simulators.deviantart",
            "--port",
            str(self.port),
        ]


class Site(LocalServer):
    """The API with its pages, and a worker beside it when `works`."""

    name = "publisher"

    def __init__(self, *, past: int, works: bool = True) -> None:
        self.simulated, self._past, self._works = Simulated(), past, works
        self._is_seeded = False
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        if not self._is_seeded:
            self.port = free_port()
            subprocess.run(
                [*self._env(), "seed", str(self._past)],
                check=True,
                timeout=_PATIENCE,
                stdout=subprocess.DEVNULL,
            )
            self._is_seeded = True
        super().start()

    def command(self) -> list[str]:
        return [*self._env(), "serve" if self._works else "show", str(self.port)]

    def stop(self) -> None:
        super().stop()
        self.simulated.stop()

    def _env(self) -> list[str]:
        told = {
            "PYTHONPATH": PATHS,
            "DATABASE_URL": f"sqlite:///{self.folder / 'publisher.db'}",
            "DEVIANTART_BASE_URL": self.simulated.url,
            "PUBLISHER_PUBLIC_URL": self.url,
            "PUBLISHER_FILES": str(self.folder / "files"),
            "SMTP_URL": f"file:{self.folder / 'mail'}",
            "PUBLISHER_FASTEST_DELAY_MS": "10",
            "RATE_LIMITER_BASE_DELAY_MS": "20",
            "CIRCUIT_BREAKER_THRESHOLD": "50",  # tests break DeviantArt, and others go on meanwhile
        }
        run = [sys.executable, "-m", "tools.publisher_app"]
        return ["env", "-C", str(self.folder), *(f"{name}={value}" for name, value in told.items()), *run]
