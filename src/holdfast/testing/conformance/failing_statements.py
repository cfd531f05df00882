"""Statements of a program's own that fail: each is the same error on every store, and ends its transaction alike."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from holdfast.kernel.errors import (
    CheckViolation,
    ConstraintViolation,
    DataError,
    ForeignKeyViolation,
    HoldfastError,
    NotNullViolation,
    StatementError,
    StoreError,
    TransactionEnded,
    UniqueViolation,
    UsageError,
)
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import job, raises, total

_TABLES = (
    "DROP TABLE IF EXISTS conformance_item",
    """CREATE TABLE conformance_item (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        amount INTEGER CONSTRAINT conformance_positive CHECK (amount > 0),
        code TEXT,
        parent INTEGER REFERENCES conformance_item (id),
        later INTEGER REFERENCES conformance_item (id) DEFERRABLE INITIALLY DEFERRED,
        UNIQUE (name, code)
    )""",
)
_SECRET = "s3cret@example.org"  # noqa: S105  it is in no message
_INSERT = (
    "INSERT INTO conformance_item (id, name, amount, code, parent, later) VALUES ($1, $2, $3, $4, $5, $6)"
)
_FIRST = (1, _SECRET, 1, _SECRET, None, None)


@contextmanager
def caught(kind: type[BaseException]) -> Generator[list[Any], None, None]:
    """What was raised, of this very kind."""
    found: list[Any] = []
    try:
        yield found
    except kind as error:
        found.append(error)
    assert [type(each) for each in found] == [kind]


_ENDS = (
    "COMMIT",
    " ; commit;",
    "-- now\nEND",
    "/* now */ rollback",
    "ROLLBACK TRANSACTION",
    "BEGIN",
    "begin immediate",
    "START TRANSACTION",
    "PREPARE TRANSACTION 'a'",
)


class FailingStatementsConformance(Conformance):
    async def _make_items(self, store: Store) -> None:
        async with store.transaction() as tx:
            for sql in _TABLES:
                await tx.execute(sql)
            await tx.execute(_INSERT, *_FIRST)

    async def _item_ids(self, store: Store) -> list[int]:
        async with store.transaction() as tx:
            return [row[0] for row in await tx.fetch("SELECT id FROM conformance_item ORDER BY id")]

    async def _is_refused_as(self, store: Store, kind: type[BaseException], sql: str, *params: Any) -> Any:
        """What a statement is refused with by both verbs; the driver's error is the cause, and our message has no values."""
        for verb in ("execute", "fetch"):
            with caught(kind) as found:
                async with store.transaction() as tx:
                    await getattr(tx, verb)(sql, *params)
            assert isinstance(found[0], HoldfastError)
            assert found[0].__cause__ is not None
            assert not isinstance(found[0].__cause__, HoldfastError)
            assert _SECRET not in str(found[0])
        return found[0]

    async def test_no_statement_ends_the_transaction(self, store: Store) -> None:
        """A COMMIT by hand would keep what was done before it, whatever becomes of the rest."""
        await self._make_items(store)
        for sql in _ENDS:
            for verb in ("execute", "fetch"):
                with raises(UsageError, "would begin or end a transaction"):
                    async with store.transaction() as tx:
                        await tx.execute(_INSERT, 2, "b", 1, "b", None, None)
                        await store.jobs.enqueue([job()], tx=tx)
                        await getattr(tx, verb)(sql)
        async with store.transaction() as tx:
            assert await tx.fetch("SELECT id FROM conformance_item") == [(1,)]
        assert await total(store) == 0

    async def test_a_taken_key_is_a_unique_violation(self, store: Store) -> None:
        await self._make_items(store)
        error = await self._is_refused_as(store, UniqueViolation, _INSERT, *_FIRST)
        assert (error.table, error.columns) == ("conformance_item", ("id",))
        error = await self._is_refused_as(store, UniqueViolation, _INSERT, 2, *_FIRST[1:])
        assert (error.table, error.columns) == ("conformance_item", ("name", "code"))
        assert "conformance_item: name, code" in str(error)
        assert isinstance(error, ConstraintViolation)
        assert isinstance(error, StoreError)

    async def test_other_broken_rules_have_kinds_of_their_own(self, store: Store) -> None:
        await self._make_items(store)
        error = await self._is_refused_as(store, CheckViolation, _INSERT, 2, _SECRET, -1, None, None, None)
        assert error.constraint == "conformance_positive"
        error = await self._is_refused_as(store, NotNullViolation, _INSERT, 2, None, 1, None, None, None)
        assert (error.table, error.columns) == ("conformance_item", ("name",))
        await self._is_refused_as(store, ForeignKeyViolation, _INSERT, 2, _SECRET, 1, None, 9, None)
        assert await self._item_ids(store) == [1]

    async def test_a_row_that_is_referred_to_stays(self, store: Store) -> None:
        await self._make_items(store)
        async with store.transaction() as tx:
            await tx.execute(_INSERT, 2, "b", 1, None, 1, None)
        await self._is_refused_as(store, ForeignKeyViolation, "DELETE FROM conformance_item WHERE id = $1", 1)

    async def test_a_deferred_rule_is_told_at_the_commit(self, store: Store) -> None:
        await self._make_items(store)
        with caught(ForeignKeyViolation) as found:
            async with store.transaction() as tx:
                await tx.execute(_INSERT, 2, _SECRET, 1, None, None, 9)
                await store.jobs.enqueue([job()], tx=tx)
                assert await tx.fetch("SELECT count(*) FROM conformance_item") == [(2,)]
        assert found[0].__cause__ is not None
        assert await self._item_ids(store) == [1]
        assert await total(store) == 0

    async def test_a_wrong_statement_is_told_as_such(self, store: Store) -> None:
        await self._make_items(store)
        for wrong in (
            "SELEC 1",
            "SELECT nope FROM conformance_item",
            "SELECT id FROM conformance_nope",
            "SELECT conformance_nope(1)",
            "INSERT INTO conformance_item (nope) VALUES (1)",
            "CREATE TABLE conformance_item (id INTEGER)",
            "RELEASE SAVEPOINT conformance_nope",
        ):
            await self._is_refused_as(store, StatementError, wrong)
        assert "nope" in str(
            await self._is_refused_as(store, StatementError, "SELECT nope FROM conformance_item")
        )

    async def test_values_and_parameters_match(self, store: Store) -> None:
        await self._make_items(store)
        sql = "SELECT id FROM conformance_item WHERE id = $1"
        for params in ((), (1, 2)):
            with caught(StatementError):
                async with store.transaction() as tx:
                    await tx.fetch(sql, *params)

    async def test_a_value_that_fits_nowhere_is_a_data_error(self, store: Store) -> None:
        await self._make_items(store)
        sql = "UPDATE conformance_item SET id = $1"
        for wrong in (object(), 2**70, {"a": _SECRET}):
            assert "$1" in str(await self._is_refused_as(store, DataError, sql, wrong))
        await self._is_refused_as(store, DataError, "UPDATE conformance_item SET name = $1", "\ud800")
        await self._is_refused_as(
            store, DataError, "SELECT id FROM conformance_item WHERE name LIKE 'a' ESCAPE 'ab'"
        )

    async def test_after_a_failure_nothing_more_is_done_and_nothing_is_stored(self, store: Store) -> None:
        await self._make_items(store)
        with raises(TransactionEnded, "UniqueViolation"):
            async with store.transaction() as tx:
                await tx.execute(_INSERT, 2, "b", 1, None, None, None)
                await store.jobs.enqueue([job()], tx=tx)
                with raises(UniqueViolation):
                    await tx.execute(_INSERT, *_FIRST)
                for more in (
                    lambda: tx.execute(_INSERT, 3, "c", 1, None, None, None),
                    lambda: tx.fetch("SELECT 1"),
                    lambda: store.jobs.enqueue([job()], tx=tx),
                    lambda: tx.savepoint().__aenter__(),
                ):
                    with caught(TransactionEnded) as found:
                        await more()
                    assert isinstance(found[0].__cause__, UniqueViolation)
                    assert "conformance_item: id" in str(found[0])
        assert await self._item_ids(store) == [1]
        assert await total(store) == 0

    async def test_every_kind_of_failure_ends_a_transaction(self, store: Store) -> None:
        await self._make_items(store)
        for kind, wrong in (
            (StatementError, ("SELEC 1",)),
            (DataError, ("UPDATE conformance_item SET id = $1", object())),
            (StatementError, ("SELECT $1", 1, 2)),
            (UsageError, ("INSERT INTO conformance_item (id, name) VALUES (7, 'x'); SELECT 1",)),
        ):
            with raises(TransactionEnded, kind.__name__):
                async with store.transaction() as tx:
                    await tx.execute(_INSERT, 2, "b", 1, None, None, None)
                    with raises(kind):
                        await tx.execute(*wrong)
            assert await self._item_ids(store) == [1]

    async def test_a_select_changes_no_rows(self, store: Store) -> None:
        await self._make_items(store)
        async with store.transaction() as tx:
            assert await tx.execute("SELECT id FROM conformance_item") == 0
            assert await tx.execute("CREATE INDEX conformance_named ON conformance_item (name)") == 0
            sql = "INSERT INTO conformance_item (id, name) VALUES (8, 'a'), (9, 'b') RETURNING id"
            assert await tx.execute(sql) == 2
            sql = "INSERT INTO conformance_item (id, name) VALUES (8, 'a') ON CONFLICT DO NOTHING"
            assert await tx.execute(sql) == 0
