"""Databases to adopt connections to, and a caller of every driver with an open transaction."""

import asyncio
from contextlib import asynccontextmanager

import asyncpg
import pytest
from callers import CALLERS, CREATE_ORDERS

from holdfast.store.postgres.store import PostgresStore

EMPTIED = ("job", "history", "key", "outbox", "event_key", "inbox", "seen")


@pytest.fixture(scope="session")
def url(databases):
    """The store's database, one for all tests of this folder: most of them leave nothing behind."""
    return asyncio.run(databases.create())


@pytest.fixture(scope="session")
def other_url(databases):
    """One with another store; a copy of a database has the identity of the original."""
    url = asyncio.run(databases.create())
    asyncio.run(execute(url, "UPDATE holdfast.store SET id = gen_random_uuid()"))
    return url


@pytest.fixture(scope="session")
def bare_url(databases):
    """One without any."""
    return asyncio.run(databases.create(migrated=False))


async def execute(url: str, sql: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(sql)
    await connection.close()


@pytest.fixture
async def store(url):
    """Open, and empty."""
    store = PostgresStore(url)
    await store.open()
    await execute(url, f"TRUNCATE {', '.join(f'holdfast.{table}' for table in EMPTIED)}")
    yield store
    await store.close()


@pytest.fixture
async def store_id(url):
    connection = await asyncpg.connect(url)
    found = await connection.fetchval("SELECT id::text FROM holdfast.store")
    await connection.close()
    return found


@pytest.fixture
async def orders(url):
    """The caller's own table."""
    await execute(url, f"DROP TABLE IF EXISTS orders; {CREATE_ORDERS}")


@pytest.fixture(params=CALLERS, ids=lambda kind: kind.__name__)
def opened(request):
    """`async with opened(url) as caller`: a transaction that is rolled back at the end."""

    @asynccontextmanager
    async def opened(url):
        caller = request.param(url)
        await caller.open()
        await caller.begin()
        try:
            yield caller
        finally:
            await caller.rollback()
            await caller.close()

    return opened


@pytest.fixture
async def caller(opened, url):
    async with opened(url) as caller:
        yield caller
