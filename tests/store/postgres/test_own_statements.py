"""What PostgreSQL alone says to a program's own statements."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from holdfast.kernel.errors import (
    CheckViolation,
    ConstraintViolation,
    DataError,
    Deadlock,
    ForeignKeyViolation,
    LockTimeout,
    SerializationFailure,
    StatementError,
    StatementTimeout,
    StoreUnavailable,
    TransactionEnded,
    UniqueViolation,
)


@pytest.fixture
async def items(store):
    async with store.transaction() as tx:
        await tx.execute(
            'CREATE TABLE item (id int PRIMARY KEY, "odd, name" text UNIQUE, amount int CHECK (amount > 0))'
        )
        await tx.execute('CREATE UNIQUE INDEX item_lower ON item (lower("odd, name"))')
        await tx.execute("CREATE TABLE part (item int CONSTRAINT part_of REFERENCES item (id))")
        await tx.execute("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 1)")
    yield store
    async with store.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS item, part, slot")


async def told(store, kind, *statements):
    with pytest.raises(kind) as raised:
        async with store.transaction() as tx:
            for statement in statements:
                await tx.execute(*statement if isinstance(statement, tuple) else (statement,))
    assert type(raised.value) is kind
    assert isinstance(raised.value.__cause__, asyncpg.PostgresError)
    return raised.value


async def test_constraints_are_named(items):
    error = await told(items, UniqueViolation, "INSERT INTO item VALUES (1)")
    assert (error.constraint, error.table, error.columns) == ("item_pkey", "item", ("id",))
    error = await told(items, UniqueViolation, "INSERT INTO item VALUES (3, 'a')")
    assert error.columns == ("odd, name",) or error.columns == ()
    error = await told(items, UniqueViolation, "INSERT INTO item VALUES (3, 'A')")
    assert (error.constraint, error.columns) == ("item_lower", ())
    error = await told(items, CheckViolation, "INSERT INTO item VALUES (3, 'c', 0)")
    assert (error.constraint, error.table) == ("item_amount_check", "item")
    error = await told(items, ForeignKeyViolation, "INSERT INTO part VALUES (9)")
    assert (error.constraint, error.table) == ("part_of", "part")


async def test_a_deferred_unique_key_is_told_at_the_commit(items):
    async with items.transaction() as tx:
        await tx.execute("CREATE TABLE slot (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    error = await told(items, UniqueViolation, "INSERT INTO slot VALUES (1), (1)")
    assert error.columns == ("id",)


async def test_a_function_that_raises(items):
    error = await told(items, ConstraintViolation, "DO $$ BEGIN RAISE EXCEPTION 'it is kept'; END $$")
    assert "it is kept" in str(error)


async def test_values_are_in_no_message(items):
    for sql, *params in (
        ("SELECT CAST(CAST($1 AS text) AS int)", "secret"),
        ("SELECT CAST($1 AS uuid)", "secret"),
        ("SELECT CAST($1 AS date)", "secret"),
        ('INSERT INTO item (id, "odd, name") VALUES ($1, $2)', 7, b"secret"),
        ("SELECT 9223372036854775807 + CAST($1 AS bigint)", 1),
        ("SELECT CAST($1 AS int)", "secret"),
    ):
        error = await told(items, DataError, (sql, *params))
        assert "secret" not in str(error)


async def test_limits_of_time(items, other):
    error = await told(items, StatementTimeout, "SET LOCAL statement_timeout = '20ms'", "SELECT pg_sleep(5)")
    assert "statement timeout" in str(error)
    async with other.transaction() as holder:
        await holder.execute("UPDATE item SET amount = 2 WHERE id = 1")
        await told(items, LockTimeout, "SELECT * FROM item WHERE id = 1 FOR UPDATE NOWAIT")
        await told(
            items, LockTimeout, "SET LOCAL lock_timeout = '20ms'", "UPDATE item SET amount = 3 WHERE id = 1"
        )


async def test_two_that_wait_for_each_other(items):
    held = asyncio.Barrier(2)

    async def swap(first, second):
        async with items.transaction() as tx:
            await tx.execute("UPDATE item SET amount = 2 WHERE id = $1", first)
            await held.wait()
            await tx.execute("UPDATE item SET amount = 2 WHERE id = $1", second)

    outcomes = await asyncio.gather(swap(1, 2), swap(2, 1), return_exceptions=True)
    [error] = [each for each in outcomes if each is not None]
    assert type(error) is Deadlock
    assert isinstance(error, StoreUnavailable)


async def test_another_was_first(items):
    async with items.transaction() as other:
        with pytest.raises(SerializationFailure):
            async with items.transaction() as tx:
                await tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                await tx.fetch("SELECT * FROM item")
                await other.execute("UPDATE item SET amount = 2 WHERE id = 1")
                await other._connection.execute("COMMIT")
                await tx.execute("UPDATE item SET amount = 3 WHERE id = 1")
        await other._connection.execute("BEGIN")


async def test_what_is_wrong_with_a_statement(items):
    for wrong in (
        "VACUUM",
        "SELECT id = 'a'::text FROM item",
        "SELECT count(*) FROM item WHERE (SELECT id FROM item) = 1",
        "DROP TABLE item",
        "SET LOCAL no_such_setting_at_all = 1",
    ):
        await told(items, StatementError, wrong)


async def test_a_savepoint_gives_back_the_planner_as_it_was(items):
    from holdfast.testing.conformance.kit import job

    async def seqscan(tx):
        rows = await tx._connection.fetch("SHOW enable_seqscan")
        return rows[0][0]

    async with items.transaction() as tx:
        await items.jobs.enqueue([job() for _ in range(600)], tx=tx)  # planned as ours
        ours = await seqscan(tx)
        with pytest.raises(UniqueViolation):
            async with tx.savepoint():
                await tx.execute("INSERT INTO item VALUES (1)")
        assert await seqscan(tx) == ours
        await tx.fetch("SELECT 1")
        assert await seqscan(tx) == "on"


async def test_a_connection_that_breaks_in_a_savepoint(items, other):
    with pytest.raises(TransactionEnded, match="cut off"):
        async with items.transaction() as tx, tx.savepoint():
            [(pid,)] = await tx.fetch("SELECT pg_backend_pid()")
            async with other.transaction() as killer:
                await killer.fetch("SELECT pg_terminate_backend($1)", pid)
            await tx.fetch("SELECT 1")


async def test_tables_that_have_changed_since_a_statement_was_prepared(items, other):
    for attempt in (1, 2):
        if attempt == 2:
            async with other.transaction() as tx:
                await tx.execute("ALTER TABLE item ALTER COLUMN amount TYPE bigint")
            with pytest.raises(StoreUnavailable, match="do the transaction again"):
                async with items.transaction() as tx:
                    await tx.fetch("SELECT * FROM item WHERE id = $1", 1)
        async with items.transaction() as tx:
            assert len(await tx.fetch("SELECT * FROM item WHERE id = $1", 1)) == 1
