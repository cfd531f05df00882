"""What SQLite alone says to a program's own statements."""

from __future__ import annotations

import apsw
import pytest

from holdfast.kernel.errors import (
    ConstraintViolation,
    DataError,
    StatementError,
    TransactionEnded,
    UniqueViolation,
)
from holdfast.store.sqlite import writer
from holdfast.store.sqlite.store import SqliteStore


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    async with store.transaction() as tx:
        await tx.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, amount INTEGER) STRICT")
        await tx.execute("CREATE UNIQUE INDEX item_lower ON item (lower(name))")
        await tx.execute(
            "CREATE TRIGGER kept BEFORE DELETE ON item BEGIN SELECT RAISE(ABORT, 'it is kept'); END"
        )
        await tx.execute("INSERT INTO item VALUES (1, 'a', 1)")
    yield store
    await store.close()


async def told(store, kind, sql, *params):
    with pytest.raises(kind) as raised:
        async with store.transaction() as tx:
            await tx.execute(sql, *params)
    assert type(raised.value) is kind
    assert raised.value.__cause__ is not None
    return raised.value


async def test_an_index_on_an_expression_is_named(store):
    error = await told(store, UniqueViolation, "INSERT INTO item VALUES (2, 'A', 1)")
    assert (error.constraint, error.table, error.columns) == ("item_lower", None, ())


async def test_a_trigger_that_raises(store):
    error = await told(store, ConstraintViolation, "DELETE FROM item")
    assert "it is kept" in str(error)
    assert isinstance(error.__cause__, apsw.ConstraintError)


async def test_values_that_do_not_fit(store):
    await told(store, DataError, "UPDATE item SET amount = $1", "many")
    await told(store, DataError, "INSERT INTO item (id) VALUES ($1)", "one")
    await told(store, DataError, "SELECT json($1)", "{")
    await told(store, DataError, "SELECT sum(value) FROM json_each($1)", "[9223372036854775807, 1]")


async def test_parameters_are_numbered(store):
    for sql in ("SELECT ?", "SELECT :a", "SELECT @a", "SELECT $2"):
        assert "$1" in str(await told(store, StatementError, sql, 1))


async def test_statements_that_do_not_go_in_a_transaction(store):
    for sql in ("VACUUM", "ROLLBACK TO nowhere", "RELEASE nowhere"):
        await told(store, StatementError, sql)


async def test_a_statement_that_is_cut_off_says_so(store, monkeypatch):
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 0.2)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    await told(store, TransactionEnded, endless)
    await told(store, TransactionEnded, f"INSERT INTO item (amount) {endless}")
    async with store.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM item") == [(1,)]


async def test_a_cut_off_in_a_savepoint(store, monkeypatch):
    monkeypatch.setattr(writer, "TRANSACTION_LIMIT", 0.2)
    with pytest.raises(TransactionEnded):
        async with store.transaction() as tx, tx.savepoint():
            while True:
                await tx.execute("UPDATE item SET amount = amount + 1")
