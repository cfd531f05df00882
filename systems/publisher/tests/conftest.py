"""The publisher for tests: its program on a fresh database, and a simulated DeviantArt that is new for each test."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.testing import fresh
from simulators.deviantart.app import Simulator

sys.path.insert(0, str(Path(__file__).parent))  # `import publisher_kit` works in every folder below

from publisher_server import SERVER, SWITCH, told

with told():
    import publisher_kit as kit
    from publisher.program import hf as program
    from publisher.tables import Base


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


@pytest.fixture
def open_at():
    """`async with open_at(url) as hf`: for tests that need the database closed in between."""
    return opened


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


@pytest.fixture
async def fleet(any_hf, any_url, tmp_path):
    """Real processes on the database of this test."""
    from publisher_processes import Fleet

    fleet = Fleet(any_url, tmp_path)
    yield fleet
    fleet.end_all()
