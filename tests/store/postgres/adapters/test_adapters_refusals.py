"""What is not accepted as tx, and that a refusal leaves the caller's transaction as it was."""

import asyncio
import sqlite3
import subprocess
import sys

import aiosqlite
import apsw
import asyncpg
import psycopg
import pytest
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm
from callers import (
    CALLERS,
    AlchemyAsyncConnection,
    AlchemyAsyncSession,
    AlchemyConnection,
    AlchemySession,
    Asyncpg,
    AsyncpgPool,
    Psycopg,
    PsycopgAsync,
    in_new_loop,
)

from holdfast.kernel.errors import SchemaMissing, UsageError, WrongConnection
from holdfast.store.postgres.adapters import adopt, adopt_sync
from holdfast.store.statements import Statement


def probe():
    rows = yield Statement("SELECT 41 + $1::int", (1,))
    return rows[0][0]


async def refusal(tx, store_id="0") -> str:
    with pytest.raises(WrongConnection) as caught:
        await adopt(tx, store_id=store_id)
    return str(caught.value)


# --- another database ---


async def test_a_database_without_our_tables(opened, bare_url, store_id):
    async with opened(bare_url) as caller:
        text = await refusal(caller.tx, store_id)
        assert "has no tables of Holdfast" in text
        assert repr(bare_url.rpartition("/")[2]) in text
        assert await caller.sql("SELECT 1") == [(1,)]  # the caller's transaction has not failed


async def test_a_database_with_another_store(opened, other_url, store_id):
    async with opened(other_url) as caller:
        text = await refusal(caller.tx, store_id)
        assert "another Holdfast store" in text
        assert store_id in text
        assert await caller.sql("SELECT 1") == [(1,)]


async def test_a_role_without_rights(opened, url, store_id):
    async with opened(url) as caller:
        await caller.sql("CREATE ROLE stranger")
        await caller.sql("SET LOCAL ROLE stranger")
        assert "'stranger' may not use the schema holdfast" in await refusal(caller.tx, store_id)
        await caller.sql("RESET ROLE")
        await caller.sql("GRANT USAGE ON SCHEMA holdfast TO stranger")
        await caller.sql("SET LOCAL ROLE stranger")
        assert "'stranger' may not use the schema holdfast" in await refusal(caller.tx, store_id)
        assert await caller.sql("SELECT 1") == [(1,)]


async def test_a_connection_is_asked_once(opened, url, store_id, monkeypatch):
    asked = []
    real = sys.modules["holdfast.store.postgres.adapters.base"].belongs

    def belongs(expected):
        asked.append(expected)
        return real(expected)

    monkeypatch.setattr("holdfast.store.postgres.adapters.base.belongs", belongs)
    async with opened(url) as caller:
        for _ in range(3):
            await adopt(caller.tx, store_id=store_id)
        await caller.rollback()
        await caller.begin()
        await adopt(caller.tx, store_id=store_id)
        assert asked == [store_id]
        await refusal(caller.tx, "another")  # what is known of one store says nothing of another
        assert asked == [store_id, "another"]


# --- no transaction, or one that is over ---


async def test_asyncpg_without_a_transaction(url, store_id):
    connection = await asyncpg.connect(url)
    assert "is not in a transaction" in await refusal(connection, store_id)
    async with connection.transaction():
        await adopt(connection, store_id=store_id)
    assert "is not in a transaction" in await refusal(connection, store_id)
    await connection.close()
    assert "is closed" in await refusal(connection, store_id)


async def test_a_connection_that_went_back_to_its_pool(url, store_id):
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
        async with pool.acquire() as connection:
            assert "is not in a transaction" in await refusal(connection, store_id)
            async with connection.transaction():
                await adopt(connection, store_id=store_id)
        assert "given back to its pool" in await refusal(connection, store_id)


async def test_psycopg_in_autocommit_mode(url, store_id):
    with psycopg.connect(url, autocommit=True) as connection:
        assert "autocommit" in await refusal(connection, store_id)
        with connection.transaction():
            await adopt(connection, store_id=store_id)
        assert "autocommit" in await refusal(connection, store_id)
    assert "is closed" in await refusal(connection, store_id)


async def test_psycopg_async_in_autocommit_mode(url, store_id):
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        assert "autocommit" in await refusal(connection, store_id)
        async with connection.transaction():
            await adopt(connection, store_id=store_id)
    assert "is closed" in await refusal(connection, store_id)


async def test_a_connection_that_broke(url, store_id):
    with psycopg.connect(url) as connection, psycopg.connect(url, autocommit=True) as killer:
        killer.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        assert "is closed" in await refusal(connection, store_id)


@pytest.mark.parametrize(
    "kind", [AlchemyConnection, AlchemySession, AlchemyAsyncConnection, AlchemyAsyncSession]
)
async def test_sqlalchemy_in_autocommit_mode(kind, url, store_id):
    caller = kind(url)
    caller.options = {"isolation_level": "AUTOCOMMIT"}
    await caller.open()
    assert "AUTOCOMMIT" in await refusal(caller.tx, store_id)
    await caller.close()


async def test_sqlalchemy_in_autocommit_mode_for_one_connection(url, store_id):
    engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        assert "AUTOCOMMIT" in await refusal(connection, store_id)
    assert "is closed" in await refusal(connection, store_id)
    with engine.connect() as connection:  # the same one of the pool, now in its ordinary mode
        await adopt(connection, store_id=store_id)
    engine.dispose()


async def test_an_async_connection_that_was_not_started(url, store_id):
    engine = sqlalchemy.ext.asyncio.create_async_engine(url.replace("://", "+asyncpg://"))
    assert "has not been started" in await refusal(engine.connect(), store_id)
    async with engine.connect() as connection:
        await adopt(connection, store_id=store_id)
    assert "SQLAlchemy cannot use this" in await refusal(connection, store_id)
    await engine.dispose()


async def test_a_session_whose_block_is_over(url, store_id):
    engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://"))
    with sqlalchemy.orm.Session(engine) as session, session.begin():
        session.commit()
        assert "closed transaction" in await refusal(session, store_id)
    with sqlalchemy.orm.Session(engine, autobegin=False) as session:
        assert "Autobegin is disabled" in await refusal(session, store_id)
    with sqlalchemy.orm.Session() as session:
        assert "not bound to a single Engine" in await refusal(session, store_id)
    engine.dispose()


async def test_a_session_whose_flush_failed(url, store_id):
    engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://"))
    base = sqlalchemy.orm.declarative_base()

    class Missing(base):
        __tablename__ = "missing"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)

    with sqlalchemy.orm.Session(engine) as session:
        session.begin_nested()
        session.add(Missing(id=1))
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            session.flush()
        assert "has already failed" in await refusal(session, store_id)
    engine.dispose()


async def test_a_transaction_that_has_failed(caller, store_id):
    with pytest.raises(Exception, match="division by zero"):
        await caller.sql("SELECT 1 / 0")
    assert "has already failed" in await refusal(caller.tx, store_id)
    await caller.rollback()
    await caller.begin()
    tx = await adopt(caller.tx, store_id=store_id)
    assert await tx.run(probe()) == 42
    with pytest.raises(Exception, match="division by zero"):
        await caller.sql("SELECT 1 / 0")
    with pytest.raises(
        WrongConnection, match="has already failed"
    ):  # known by now, so found by the statement
        await tx.run(probe())


# --- failures inside ---


async def test_a_missing_table_of_ours_is_a_missing_migration(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)

    def verb():
        yield Statement("SELECT 1 FROM holdfast.from_the_future")

    with pytest.raises(SchemaMissing, match=r"from_the_future.*holdfast migrate"):
        await tx.run(verb())


async def test_a_missing_table_of_the_caller_is_the_drivers_error(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    with pytest.raises(Exception, match="nowhere") as caught:
        await tx.execute("SELECT 1 FROM nowhere")
    assert type(caught.value).__module__.partition(".")[0] in ("asyncpg", "psycopg", "sqlalchemy")


@pytest.mark.parametrize("state", ["40001", "40P01", "23505", "55P03", "25006"])
async def test_other_failures_stay_the_drivers(caller, store_id, state):
    tx = await adopt(caller.tx, store_id=store_id)
    await caller.sql(
        f"CREATE FUNCTION fail() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '{state}'; END $$"
    )

    def verb():
        yield Statement("SELECT public.fail()")

    with pytest.raises(Exception) as caught:
        await tx.run(verb())
    assert type(caught.value).__module__.partition(".")[0] in ("asyncpg", "psycopg", "sqlalchemy")
    error = getattr(caught.value, "orig", caught.value)
    assert (getattr(error, "sqlstate", None) or error.pgcode) == state


async def test_a_verbs_own_error_passes_through_and_the_verb_is_closed(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    closed = []

    def verb():
        try:
            yield Statement("SELECT 1")
            raise ZeroDivisionError
        finally:
            closed.append(True)

    with pytest.raises(ZeroDivisionError):
        await tx.run(verb())
    assert closed
    assert await tx.run(probe()) == 42


# --- loops and threads ---


@pytest.mark.parametrize(
    "kind", [Asyncpg, AsyncpgPool, PsycopgAsync, AlchemyAsyncConnection, AlchemyAsyncSession]
)
async def test_a_connection_of_another_loop(kind, url, store_id):
    caller = kind(url)
    await caller.open()
    await caller.begin()
    await adopt(caller.tx, store_id=store_id)
    assert "another event loop" in await in_new_loop(refusal(caller.tx, store_id))
    await adopt(caller.tx, store_id=store_id)
    await caller.rollback()
    await caller.close()


@pytest.mark.parametrize("kind", [kind for kind in CALLERS if kind.is_async])
async def test_sync_code_cannot_use_an_async_connection(kind, url, store_id):
    caller = kind(url)
    await caller.open()
    await caller.begin()
    with pytest.raises(UsageError, match="is async"):
        adopt_sync(caller.tx, store_id=store_id)
    tx = await adopt(caller.tx, store_id=store_id)
    with pytest.raises(UsageError, match="is async"):
        tx.run_sync(probe())
    await caller.rollback()
    await caller.close()


@pytest.mark.parametrize("kind", [kind for kind in CALLERS if not kind.is_async])
async def test_sync_code_uses_a_sync_connection(kind, url, store_id):
    caller = kind(url)
    await caller.open()
    await caller.begin()

    def in_a_thread():
        return adopt_sync(caller.tx, store_id=store_id).run_sync(probe())

    assert await asyncio.to_thread(in_a_thread) == 42
    assert in_a_thread() == 42
    await caller.rollback()
    await caller.close()


@pytest.mark.parametrize("kind", [AlchemyAsyncConnection, AlchemyAsyncSession])
async def test_the_sync_inside_of_an_async_session(kind, url, store_id):
    caller = kind(url)
    await caller.open()
    inside = getattr(caller.tx, "sync_session", None) or caller.tx.sync_connection
    assert "Pass the AsyncConnection or AsyncSession" in await refusal(inside, store_id)
    # where SQLAlchemy itself runs sync code on it, so do we
    answer = await caller.tx.run_sync(lambda tx: adopt_sync(tx, store_id=store_id).run_sync(probe()))
    assert answer == 42
    await caller.close()


# --- things that are no connection ---


async def test_pools_engines_cursors_and_the_like(url):
    engine = sqlalchemy.create_engine(url.replace("://", "+psycopg://"))
    async_engine = sqlalchemy.ext.asyncio.create_async_engine(url.replace("://", "+asyncpg://"))
    connection = await asyncpg.connect(url)
    async with asyncpg.create_pool(url, min_size=0) as pool:
        assert "A pool has many connections" in await refusal(pool)
    assert "that the transaction was begun on" in await refusal(connection.transaction())
    assert "prepared on" in await refusal(await connection.prepare("SELECT 1"))
    await connection.close()
    with psycopg.connect(url) as sync, sync.cursor() as cursor:
        assert "Pass the cursor's connection" in await refusal(cursor)
        assert "Pass the cursor's connection" in await refusal(psycopg.RawCursor(sync))
        assert "was not entered" in await refusal(sync.transaction())
        with sync.transaction() as transaction:
            assert "that the transaction was begun on" in await refusal(transaction)
    for maker in (engine, async_engine, sqlalchemy.orm.sessionmaker(engine)):
        assert "It makes connections" in await refusal(maker)
    assert "It makes connections" in await refusal(sqlalchemy.ext.asyncio.async_sessionmaker(async_engine))
    assert "Call it" in await refusal(sqlalchemy.orm.scoped_session(sqlalchemy.orm.sessionmaker(engine)))
    with engine.connect() as alchemy, sqlalchemy.orm.Session(engine) as session:
        assert "that the transaction was begun on" in await refusal(alchemy.begin())
        assert "that the transaction was begun on" in await refusal(session.begin())
    async with (
        async_engine.connect() as alchemy,
        sqlalchemy.ext.asyncio.AsyncSession(async_engine) as session,
    ):
        assert "that the transaction was begun on" in await refusal(alchemy.begin())
        assert "that the transaction was begun on" in await refusal(session.begin())
    engine.dispose()
    await async_engine.dispose()


async def test_connections_to_other_kinds_of_database():
    lite = sqlalchemy.create_engine("sqlite://")
    with lite.connect() as connection, sqlalchemy.orm.Session(lite) as session:
        assert "leads to sqlite" in await refusal(connection)
        assert "leads to sqlite" in await refusal(session)
        assert not session.in_transaction()  # refused before it has begun anything
    lite.dispose()
    async_lite = sqlalchemy.ext.asyncio.create_async_engine("sqlite+aiosqlite://")
    async with sqlalchemy.ext.asyncio.AsyncSession(async_lite) as session:
        assert "leads to sqlite" in await refusal(session)
    await async_lite.dispose()
    plain = sqlite3.connect(":memory:")
    assert "SQLite database" in await refusal(plain)
    plain.close()
    async with aiosqlite.connect(":memory:") as connection:
        assert "SQLite database" in await refusal(connection)
    apsw_connection = apsw.Connection(":memory:")
    assert "SQLite database" in await refusal(apsw_connection)
    apsw_connection.close()


@pytest.mark.parametrize("tx", ["postgresql://localhost/shop", 7, object(), Psycopg, {"a": 1}])
async def test_anything_else_is_named_and_the_accepted_are_listed(tx):
    text = await refusal(tx)
    assert f"{type(tx).__module__}.{type(tx).__qualname__}" in text
    for accepted in ("AsyncSession", "psycopg (3) Connection", "asyncpg Connection", "hf.transaction()"):
        assert accepted in text


def test_no_driver_is_imported_to_find_out():
    code = """if True:
        import asyncio, sys
        from holdfast.kernel.errors import WrongConnection
        from holdfast.store.postgres.adapters.recognise import recognise
        try:
            recognise(object())
        except WrongConnection:
            pass
        else:
            raise AssertionError
        loaded = {"psycopg", "psycopg2", "sqlalchemy", "greenlet", "sqlite3"} & set(sys.modules)
        assert not loaded, loaded
    """
    subprocess.run([sys.executable, "-c", code], check=True)
