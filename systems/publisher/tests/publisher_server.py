"""One simulated DeviantArt for all tests of a process, and what the program is told of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.vault import new_key
from simulators.common.server import Running
from simulators.deviantart.app import Simulator


class Switch:
    """The server's app: a new simulator behind it for each test."""

    def __init__(self) -> None:
        self.simulator = Simulator(seed=1)

    async def __call__(self, scope, receive, send):
        await self.simulator.app(scope, receive, send)


SWITCH = Switch()
SERVER = Running(SWITCH).__enter__()
FOLDER = tempfile.mkdtemp(prefix="publisher-test-")
# Paces a hundredth of the usual ones.
ENVIRONMENT = {
    "DATABASE_URL": f"sqlite:///{FOLDER}/unused.db",
    "DEVIANTART_BASE_URL": SERVER.url,
    "PUBLISHER_FILES": f"{FOLDER}/files",
    "PUBLISHER_KEYS": new_key("test"),
    "SMTP_URL": f"file:{FOLDER}/mail",
    "RATE_LIMITER_BASE_DELAY_MS": "30",
    "RATE_LIMITER_MAX_DELAY_MS": "3000",
    "PUBLISHER_FASTEST_DELAY_MS": "10",
    "PUBLISHER_CALL_TIMEOUT_S": "5",
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
