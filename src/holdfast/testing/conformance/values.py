"""Values of a program's own statements: what every store takes and gives back as it was."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.errors import DataError
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import raises

_VALUES: tuple[Any, ...] = (
    None,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    0.1,
    -2.5e300,
    "",
    'Zoë\'s "☃" \\ %s $1',
    "1",
    b"",
    b"\x00\xff",
)


def _kind(value: Any, store_tables: str) -> str:
    if isinstance(value, float):
        return "DOUBLE PRECISION"
    if isinstance(value, bytes):
        return "BLOB" if store_tables == "holdfast_" else "BYTEA"
    return "TEXT" if isinstance(value, str) else "BIGINT"


class ValuesConformance(Conformance):
    async def test_plain_values_come_back_as_they_went(self, store: Store) -> None:
        for number, value in enumerate(_VALUES):
            table = f"conformance_value_{number}"
            async with store.transaction() as tx:
                await tx.execute(f"DROP TABLE IF EXISTS {table}")
                await tx.execute(f"CREATE TABLE {table} (value {_kind(value, self.bench.tables)})")
                await tx.execute(f"INSERT INTO {table} VALUES ($1)", value)  # noqa: S608  the name is ours
                sql = f"SELECT value FROM {table} WHERE value = $1 OR $2 = 1"  # noqa: S608  as above
                [(found,)] = await tx.fetch(sql, value, int(value is None))
                await tx.execute(f"DROP TABLE {table}")
            assert found == value
            assert type(found) is type(value)

    async def test_a_truth_is_told_as_one(self, store: Store) -> None:
        async with store.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS conformance_truth")
            await tx.execute("CREATE TABLE conformance_truth (id INTEGER, value BOOLEAN)")
            await tx.execute("INSERT INTO conformance_truth VALUES (1, $1), (2, $2)", True, False)
            assert await tx.fetch("SELECT value FROM conformance_truth ORDER BY id") == [(True,), (False,)]
            assert await tx.fetch("SELECT id FROM conformance_truth WHERE value") == [(1,)]

    async def test_numbers_out_of_range_are_refused(self, store: Store) -> None:
        for value in (2**63, -(2**63) - 1):
            with raises(DataError, "$1"):
                async with store.transaction() as tx:
                    await tx.execute("DROP TABLE IF EXISTS conformance_value")
                    await tx.execute("CREATE TABLE conformance_value (id BIGINT)")
                    await tx.execute("INSERT INTO conformance_value VALUES ($1)", value)
