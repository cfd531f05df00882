"""What `doctor` finds about a PostgreSQL server, its sessions and its room."""

import asyncpg
import pytest

from holdfast.kernel.world import inhabit
from holdfast.store.findings import Level
from holdfast.store.postgres import diagnosis
from holdfast.store.postgres.store import PostgresStore
from holdfast.testing.clock import ManualClock


async def find(url, **options):
    return {each.check: each for each in await PostgresStore(url).diagnosis.examine(**options)}


async def test_a_server_of_tests_is_well_but_not_durable(postgres_url):
    found = await find(postgres_url)
    assert {check for check, each in found.items() if each.level is not Level.OK} == {"durability"}
    assert "fsync, full_page_writes are off" in found["durability"].found


async def test_a_server_that_is_not_there_is_a_finding():
    found = await find("postgresql://localhost:1/none?connect_timeout=2")
    assert list(found) == ["connection"]
    assert found["connection"].level is Level.BAD


async def test_missing_tables_are_bad(empty_postgres_url):
    found = await find(empty_postgres_url)
    assert found["tables"].level is Level.BAD
    assert "0001_jobs" in found["tables"].found
    assert "bloat" not in found  # there is nothing to ask about


async def test_clocks_that_differ(postgres_url):
    with inhabit(ManualClock()):
        found = await find(postgres_url)
    assert found["clock"].level is Level.WARN


@pytest.fixture
async def session(postgres_url):
    connection = await asyncpg.connect(postgres_url, server_settings={"application_name": "forgetful"})
    yield connection
    await connection.close()


async def test_idle_sessions_and_old_snapshots_are_named(postgres_url, session, monkeypatch):
    monkeypatch.setattr(diagnosis, "IDLE_TOO_LONG", 0.0)
    monkeypatch.setattr(diagnosis, "SNAPSHOT_TOO_OLD", 0.0)
    await session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await session.fetch("SELECT 1 FROM holdfast.job")
    found = await find(postgres_url)
    for check in ("sessions", "snapshots"):
        assert found[check].level is Level.WARN, check
        assert "forgetful" in found[check].found
        assert f"pg_terminate_backend({session.get_server_pid()})" in found[check].todo


async def test_connections_are_counted_for_the_processes_that_shall_run(postgres_url):
    assert (await find(f"{postgres_url}?pool_size=5", processes=2))["connections"].level is Level.OK
    found = (await find(f"{postgres_url}?pool_size=50", processes=10))["connections"]
    assert found.level is Level.BAD
    assert "need 530;" in found.found


async def test_dead_rows_are_worth_a_warning(postgres_url, monkeypatch):
    monkeypatch.setattr(diagnosis, "MANY", 0)
    assert (await find(postgres_url))["bloat"].level is Level.WARN


async def test_a_role_that_may_not_write(postgres_url, session):
    name = postgres_url.rpartition("/")[2]
    await session.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        assert (await find(postgres_url))["writes"].level is Level.BAD
    finally:
        await session.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


async def test_a_question_that_fails_leaves_the_others(postgres_url, session, monkeypatch):
    monkeypatch.setattr(diagnosis, "_SNAPSHOTS", "SELECT * FROM nowhere")
    found = await find(postgres_url)
    assert found["snapshots"].level is Level.WARN
    assert found["tables"].level is Level.OK


async def test_a_server_too_old(postgres_url, monkeypatch):
    monkeypatch.setattr(diagnosis, "OLDEST_SERVER", 990_000)
    assert (await find(postgres_url))["server"].level is Level.BAD
