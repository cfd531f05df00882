"""The portal with seeded applications and a simulated Stripe, on free ports of loopback: for browser tests and pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.local_server import LocalServer, free_port

ROOT = Path(__file__).resolve().parent.parent
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "systems/admissions")))
_PATIENCE = 240  # seconds for the seeding, beside other work


class Simulated(LocalServer):
    """A simulated Stripe. Nobody hears its webhooks: the portal asks."""

    name = "stripe"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [
            "env",
            f"PYTHONPATH={ROOT}",
            sys.executable,
            "-m",
            "simulators.stripe",
            "--port",
            str(self.port),
        ]


class Site(LocalServer):
    """The API with its pages, and a worker beside it when `works`."""

    name = "admissions"

    def __init__(self, *, many: int, works: bool = True) -> None:
        self.stripe, self._many, self._works = Simulated(), many, works
        self._is_seeded = False
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def mails(self) -> Path:
        return self.folder / "mail"

    def start(self) -> None:
        if not self._is_seeded:
            self.port = free_port()
            command = [*self._env(), "seed", str(self._many)]
            subprocess.run(command, check=True, timeout=_PATIENCE, stdout=subprocess.DEVNULL)
            self._is_seeded = True
        super().start()

    def command(self) -> list[str]:
        return [*self._env(), "serve" if self._works else "show", str(self.port)]

    def stop(self) -> None:
        super().stop()
        self.stripe.stop()

    def _env(self) -> list[str]:
        told = {
            "PYTHONPATH": PATHS,
            "DATABASE_URL": f"sqlite:///{self.folder / 'admissions.db'}",
            "STRIPE_BASE_URL": self.stripe.url,
            "ADMISSIONS_PUBLIC_URL": self.url,
            "ADMISSIONS_FILES": str(self.folder / "files"),
            "ADMISSIONS_FIRST_WAIT_S": "0.05",
            "ADMISSIONS_LOOK_EVERY_S": "1",
            "SMTP_URL": f"file:{self.mails}",
        }
        run = [sys.executable, "-m", "tools.admissions_app"]
        return ["env", "-C", str(self.folder), *(f"{name}={value}" for name, value in told.items()), *run]
