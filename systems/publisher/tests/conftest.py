"""The publisher for tests: its program on a fresh database, and a simulated DeviantArt that is new for each test."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.vault import new_key
from simulators.common.server import Running
from simulators.deviantart.app import Simulator

sys.path.insert(0, str(Path(__file__).parent))  # `import publisher_kit` works in every folder below


class Switch:
    """One server for all tests of this process, and a new simulator behind it for each."""

    def __init__(self) -> None:
        self.simulator = Simulator(seed=1)

    async def __call__(self, scope, receive, send):
        await self.simulator.app(scope, receive, send)


SWITCH = Switch()
SERVER = Running(SWITCH).__enter__()
FOLDER = tempfile.mkdtemp(prefix="publisher-test-")
# What the program reads when it is imported: paces a hundredth of the usual ones.
os.environ.update({
    "DATABASE_URL": f"sqlite:///{FOLDER}/unused.db",
    "DEVIANTART_BASE_URL": SERVER.url,
    "PUBLISHER_FILES": f"{FOLDER}/files",
    "PUBLISHER_KEYS": new_key("test"),
    "SMTP_URL": f"file:{FOLDER}/mail",
    "RATE_LIMITER_BASE_DELAY_MS": "30",
    "RATE_LIMITER_MAX_DELAY_MS": "3000",
    "PUBLISHER_FASTEST_DELAY_MS": "10",
    "PUBLISHER_CALL_TIMEOUT_S": "5",
})  # fmt: skip

import publisher_kit as kit  # noqa: E402  the program reads these when it is imported
from publisher.program import hf as program  # noqa: E402
from publisher.tables import Base  # noqa: E402

from holdfast.testing import fresh  # noqa: E402


def pytest_sessionfinish():
    SERVER.__exit__(None, None, None)


@pytest.fixture
def simulator(request):
    """The simulated DeviantArt of this test; it goes by the manual clock where there is one."""
    SWITCH.simulator = Simulator(seed=1)
    if "manual_clock" in request.fixturenames:
        SWITCH.simulator.clock.now = request.getfixturevalue("manual_clock").now
    return SWITCH.simulator


@asynccontextmanager
async def opened(url):
    async with fresh(program, url) as hf:
        async with hf.sqlalchemy().begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        yield hf


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'publisher.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def hf(simulator, tmp_path):
    """The program on a SQLite file."""
    async with opened(f"sqlite:///{tmp_path / 'publisher.db'}") as hf:
        yield hf


@pytest.fixture
async def any_hf(simulator, any_url):
    """The program on both stores."""
    async with opened(any_url) as hf:
        yield hf


@pytest.fixture
async def ada(simulator):
    """An artist who has logged in; asks for `hf` or `any_hf` beside it."""
    return kit.Artist(simulator, "ada-arc")
