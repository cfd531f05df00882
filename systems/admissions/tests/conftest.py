"""The portal for tests: its program on a fresh database, a simulated Stripe that is new for each test, and a mailbox."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.testing import fresh, mailbox
from simulators.stripe.app import Simulator

sys.path.insert(0, str(Path(__file__).parent))  # `import admissions_kit` works in every folder below

from admissions_server import SERVER, SWITCH, told

with told():
    import admissions_kit as kit
    from admissions.program import hf as program
    from admissions.tables import Base


def pytest_sessionfinish():
    SERVER.__exit__(None, None, None)


@pytest.fixture
def stripe_simulator(request):
    """The simulated Stripe of this test; it goes by the manual clock where there is one."""
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
        return f"sqlite:///{tmp_path / 'admissions.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def portal(stripe_simulator, tmp_path):
    """The program on a SQLite file."""
    async with opened(f"sqlite:///{tmp_path / 'admissions.db'}") as hf:
        yield hf


@pytest.fixture
async def any_portal(stripe_simulator, any_url):
    """The program on both stores."""
    async with opened(any_url) as hf:
        yield hf


@pytest.fixture
def box():
    """Where mails go to."""
    with mailbox(program) as found:
        yield found


@pytest.fixture
def desk():
    return kit
