"""`hf.snapshot()`: reads for pages, beside whatever is written, and of a replica that may be behind."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from waiting import until

from holdfast import Holdfast
from holdfast.errors import (
    NotOpen,
    ReplicaBehind,
    StatementError,
    StoreError,
    TransactionEnded,
    UnsupportedStore,
    UsageError,
)
from holdfast.runtime.config import locate
from holdfast.store import reading
from holdfast.store.sqlite import snapshot
from holdfast.testing import ManualClock
from tools.postgres import PostgresServer, wheel_binaries


async def fill(hf, *ids):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS page (id INTEGER)")
        await tx.execute_many("INSERT INTO page VALUES ($1)", [(each,) for each in ids])


async def pages(hf, **options):
    async with hf.snapshot(**options) as tx:
        return [row[0] for row in await tx.fetch("SELECT id FROM page ORDER BY id")]


async def test_it_reads_while_another_holds_the_write_lock(hf):
    await fill(hf, 1)
    async with hf.transaction() as tx:
        await tx.execute("INSERT INTO page VALUES (2)")
        assert await asyncio.create_task(pages(hf)) == [1]
    assert await pages(hf) == [1, 2]


async def test_inside_a_transaction_of_the_same_task_it_is_refused(hf):
    with pytest.raises(UsageError, match="inside a transaction"):
        async with hf.transaction(), hf.snapshot():
            pass


async def test_what_was_emitted_is_there(hf):
    hf.event("page.made", unheard=True)
    await fill(hf, 1)
    async with hf.transaction() as tx:
        await tx.execute("INSERT INTO page VALUES (2)")
        made = await hf.emit("page.made", tx=tx)
    assert await pages(hf, at_least=made) == [1, 2]
    with pytest.raises(UsageError, match=r"what hf\.emit returned"):
        hf.snapshot(at_least=7)


def test_from_sync_code(url):
    hf = Holdfast(url)
    hf.blocking.migrate()
    with hf.blocking.snapshot() as tx:
        assert tx.fetch("SELECT $1 + 1", 1) == [(2,)]
        with pytest.raises(StatementError):
            tx.fetch("CREATE TABLE t (id INTEGER)")
        with pytest.raises(TransactionEnded):
            tx.fetch("SELECT 1")


async def test_snapshots_end_with_the_store(url):
    hf = Holdfast(url)
    async with hf:
        block = hf.snapshot()
        tx = await block.__aenter__()
        assert await tx.fetch("SELECT 1") == [(1,)]
    if url.startswith("sqlite"):  # PostgreSQL's connection is closed when it comes back
        with pytest.raises(NotOpen):
            await tx.fetch("SELECT 1")
    await block.__aexit__(None, None, None)
    with pytest.raises(NotOpen):
        async with hf.snapshot():
            pass
    async with hf, hf.snapshot() as tx:
        assert await tx.fetch("SELECT 1") == [(1,)]


async def test_one_that_is_open_for_too_long_is_cut_off_on_sqlite(tmp_path):
    with ManualClock() as clock:
        async with Holdfast(f"sqlite:///{tmp_path}/a.db") as hf, hf.snapshot() as tx:
            assert await tx.fetch("SELECT 1") == [(1,)]
            clock.advance(reading.LIMIT + 1)
            with pytest.raises(TransactionEnded, match="cut off"):
                while True:
                    await tx.fetch("SELECT 1")


async def test_connections_are_used_again_on_sqlite(tmp_path, monkeypatch):
    opened = []
    connected = snapshot.Snapshots._connected
    monkeypatch.setattr(
        snapshot.Snapshots, "_connected", lambda self: opened.append(self._idle[-1:]) or connected(self)
    )
    async with Holdfast(f"sqlite:///{tmp_path}/a.db") as hf:
        for _ in range(20):
            async with hf.snapshot() as tx:
                await tx.fetch("SELECT 1")
    assert sum(not idle for idle in opened) == 1


def test_only_postgres_has_a_replica(monkeypatch):
    with pytest.raises(UsageError, match="SQLite file has none"):
        Holdfast("sqlite:///a.db", read_url="postgresql://localhost/a")
    with pytest.raises(UsageError, match="replica of the PostgreSQL"):
        Holdfast("postgresql://localhost/a", read_url="redis://localhost")
    found = locate("postgresql://one/a", {"HOLDFAST_READ_URL": "postgres://two/a"})
    assert found.read_url == "postgresql://two/a"
    assert locate("sqlite:///a.db", {"HOLDFAST_READ_URL": "postgres://two/a"}).read_url is None


@pytest.fixture(scope="module")
def servers():
    binaries = wheel_binaries()
    if binaries is None or not (binaries / "pg_basebackup").exists():
        pytest.skip("this PostgreSQL has no pg_basebackup")
    primary = PostgresServer.start(binaries)
    try:
        standby = PostgresServer.standby(primary)
        try:
            yield primary, standby
        finally:
            standby.stop()
    finally:
        primary.stop()


async def replay(standby, verb):
    connection = await asyncpg.connect(standby.url())
    try:
        await connection.execute(f"SELECT pg_wal_replay_{verb}()")
    finally:
        await connection.close()


async def test_a_replica_is_read_and_waited_for(servers):
    primary, standby = servers
    name = primary.create_database()
    async with Holdfast(primary.url(name)) as other:
        await other.migrate()
    async with Holdfast(primary.url(name), read_url=standby.url(name)) as hf:
        hf.event("page.made", unheard=True)
        await fill(hf, 1)
        await until(lambda: reaches(hf, [1]))
        await replay(standby, "pause")
        async with hf.transaction() as tx:
            await tx.execute("INSERT INTO page VALUES (2)")
            made = await hf.emit("page.made", tx=tx)
        assert await pages(hf) == [1], "the replica is behind"
        with pytest.raises(ReplicaBehind, match=made.id):
            await pages(hf, at_least=made, wait=0.2)
        waits = asyncio.create_task(pages(hf, at_least=made, wait=60))
        await replay(standby, "resume")
        assert await waits == [1, 2]
        with pytest.raises(StatementError, match="snapshot"):
            async with hf.snapshot() as tx:
                await tx.fetch("DELETE FROM page")
        assert await pages(hf) == [1, 2]


async def reaches(hf, expected):
    try:
        return await pages(hf) == expected
    except StoreError:  # the table is not there yet
        return False


async def test_another_database_is_no_replica(databases):
    one, other = await databases.create(), await databases.create()
    async with (
        Holdfast(other) as hf,
        hf.transaction() as tx,
    ):  # else it would pass for a copy: both are of one template
        await tx.execute("UPDATE holdfast.store SET id = gen_random_uuid()")
    async with Holdfast(one, read_url=other) as hf:
        with pytest.raises(UnsupportedStore, match="another database"):
            await pages(hf)
    await databases.give_back(one)
    await databases.give_back(other)
