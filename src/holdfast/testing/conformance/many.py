"""Many rows in one call: `tx.execute_many`, and lists as parameters."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.errors import (
    DataError,
    NeverAwaited,
    StatementError,
    TransactionEnded,
    UniqueViolation,
    UsageError,
)
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import raises

_INSERT = "INSERT INTO conformance_many (id, name) VALUES ($1, $2)"
_LISTS: tuple[tuple[str, list[Any]], ...] = (
    ("BIGINT", [1, 3]),
    ("BIGINT", []),
    ("BIGINT", [2**63 - 1, -(2**63)]),
    ("TEXT", ["a", 'Zoë\'s "☃" $1']),
    ("DOUBLE PRECISION", [0.1, -2.5e300]),
)


class ManyConformance(Conformance):
    async def _table(self, store: Store) -> None:
        async with store.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS conformance_many")
            await tx.execute("CREATE TABLE conformance_many (id BIGINT UNIQUE, name TEXT)")

    async def _ids(self, store: Store) -> list[Any]:
        async with store.transaction() as tx:
            return [row[0] for row in await tx.fetch("SELECT id FROM conformance_many ORDER BY id")]

    async def test_one_statement_is_run_for_each_row_in_their_order(self, store: Store) -> None:
        await self._table(store)
        async with store.transaction() as tx:
            await tx.execute_many(_INSERT, [(number, "a") for number in range(2_500)])
            await tx.execute_many(_INSERT, ([number, None] for number in (2_500, 2_501)))
            changes = [("b", 7), ("c", 7), ("d", 8)]
            await tx.execute_many("UPDATE conformance_many SET name = $1 WHERE id = $2", changes)
            sql = "SELECT id, name FROM conformance_many WHERE name <> 'a' ORDER BY id"
            assert await tx.fetch(sql) == [(7, "c"), (8, "d")]
        assert await self._ids(store) == [*range(2_502)]

    async def test_no_rows_change_nothing(self, store: Store) -> None:
        await self._table(store)
        async with store.transaction() as tx:
            await tx.execute_many(_INSERT, [])
        assert await self._ids(store) == []

    async def test_one_row_that_fails_takes_all_of_them_back(self, store: Store) -> None:
        await self._table(store)
        with raises(UniqueViolation):
            async with store.transaction() as tx:
                await tx.execute_many(_INSERT, [(1, "a"), (2, "b"), (1, "c"), (3, "d")])
        assert await self._ids(store) == []
        async with store.transaction() as tx:
            with raises(UniqueViolation):
                async with tx.savepoint():
                    await tx.execute_many(_INSERT, [(1, "a"), (1, "c")])
            await tx.execute_many(_INSERT, [(5, "e")])
        assert await self._ids(store) == [5]

    async def test_a_value_that_does_not_fit_ends_the_transaction(self, store: Store) -> None:
        await self._table(store)
        with raises(TransactionEnded):
            async with store.transaction() as tx:
                with raises(DataError, "$1"):
                    await tx.execute_many(_INSERT, [(1, "a"), (2**63, "b")])
                await tx.fetch("SELECT 1")
        for row in ((1,), (1, "a", 2)):
            with raises(StatementError):
                async with store.transaction() as tx:
                    await tx.execute_many(_INSERT, [row])
        assert await self._ids(store) == []

    async def test_what_is_no_list_of_rows_is_refused(self, store: Store) -> None:
        await self._table(store)
        for wrong, words in (
            ("ab", "list of tuples"),
            ({1: "a"}, "list of tuples"),
            ([1], "tuple of the values"),
        ):
            rows: Any = wrong
            with raises(UsageError, words):
                async with store.transaction() as tx:
                    await tx.execute_many(_INSERT, rows)
        with raises(UsageError):
            async with store.transaction() as tx:
                await tx.execute_many("COMMIT", [()])
        with raises(UsageError, "One statement"):
            async with store.transaction() as tx:
                await tx.execute_many("DELETE FROM conformance_many; COMMIT", [()])
        assert await self._ids(store) == []

    async def test_many_rows_that_nobody_awaits_are_noticed(self, store: Store) -> None:
        await self._table(store)
        with raises(NeverAwaited, _INSERT):
            async with store.transaction() as tx:
                tx.execute_many(_INSERT, [(1, "a")])  # type: ignore[unused-coroutine]
        assert await self._ids(store) == []

    async def test_a_list_is_asked_by_any_and_all(self, store: Store) -> None:
        for number, (kind, values) in enumerate(_LISTS):
            table = f"conformance_list_{number}"
            async with store.transaction() as tx:
                await tx.execute(f"DROP TABLE IF EXISTS {table}")
                await tx.execute(f"CREATE TABLE {table} (id {kind}, name TEXT)")
                rows = [*((value, "x") for value in values), (None, None)]
                await tx.execute_many(f"INSERT INTO {table} VALUES ($1, $2)", rows)  # noqa: S608  the name is ours
                sql = f"SELECT id FROM {table} WHERE id = ANY($1) AND name = $2"  # noqa: S608  as above
                assert sorted(await tx.fetch(sql, values, "x")) == sorted((value,) for value in values)
                sql = f"SELECT id FROM {table} WHERE id <> all( $1 ) AND name IS NOT NULL"  # noqa: S608  as above
                assert await tx.fetch(sql, values[1:]) == [(value,) for value in values[:1]]
                sql = f"DELETE FROM {table} WHERE id = ANY($1)"  # noqa: S608  as above
                assert await tx.execute(sql, tuple(values)) == len(values)
                await tx.execute(f"DROP TABLE {table}")

    async def test_what_is_quoted_is_no_test_against_a_list(self, store: Store) -> None:
        await self._table(store)
        async with store.transaction() as tx:
            await tx.execute(_INSERT, 7, "a")
            sql = "SELECT '= ANY($1)', id FROM conformance_many WHERE id = ANY($1::bigint[]) /* = ANY($2) */"
            assert await tx.fetch(sql, [7, 8]) == [("= ANY($1)", 7)]

    async def test_a_list_with_what_the_store_does_not_take_is_refused(self, store: Store) -> None:
        await self._table(store)
        for value in (2**63, object()):
            with raises(DataError, "$1"):
                async with store.transaction() as tx:
                    await tx.fetch("SELECT id FROM conformance_many WHERE id = ANY($1)", [1, value])
