"""One simulated Stripe for all tests of a process, and what the program is told of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from simulators.common.server import Running
from simulators.stripe.app import Simulator


class Switch:
    """The server's app: a new simulator behind it for each test."""

    def __init__(self) -> None:
        self.simulator = Simulator(seed=1)

    async def __call__(self, scope, receive, send):
        await self.simulator.app(scope, receive, send)


SWITCH = Switch()
SERVER = Running(SWITCH).__enter__()
FOLDER = tempfile.mkdtemp(prefix="admissions-test-")
ENVIRONMENT = {
    "DATABASE_URL": f"sqlite:///{FOLDER}/unused.db",
    "STRIPE_BASE_URL": SERVER.url,
    "ADMISSIONS_FILES": f"{FOLDER}/files",
    "SMTP_URL": f"file:{FOLDER}/mail",
}


@contextmanager
def told() -> Iterator[None]:
    """The program reads its settings when it is imported; afterwards they are gone, for other tests have their own."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
