"""Bring the tables up to date. On PostgreSQL this is done by `migrate` only, never by opening the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.store.migrations import Migration, load, pending

MIGRATIONS = load("holdfast.store.postgres.migrations")
_LOCK = "SELECT pg_advisory_xact_lock(1215266048, 0)"  # migrators go one after the other
_SCHEMA = "CREATE SCHEMA IF NOT EXISTS holdfast"
_TABLE = """CREATE TABLE IF NOT EXISTS holdfast.migration (
    number     integer     NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)"""


async def find_pending(connection: Any) -> list[Migration]:
    """What is still to be applied; raises when the tables are newer than this version, or changed."""
    if await connection.fetchval("SELECT to_regclass('holdfast.migration')") is None:
        return MIGRATIONS
    rows = await connection.fetch("SELECT number, checksum FROM holdfast.migration")
    return pending(MIGRATIONS, {row[0]: row[1] for row in rows})


async def apply(connection: Any) -> list[str]:
    """Apply all that is missing in one transaction: all of it or none."""
    async with connection.transaction():
        await connection.execute(_LOCK)
        # Asked first: without the right to create schemas, IF NOT EXISTS fails although there is nothing to do.
        if await connection.fetchval("SELECT to_regnamespace('holdfast')") is None:
            await connection.execute(_SCHEMA)
        if await connection.fetchval("SELECT to_regclass('holdfast.migration')") is None:
            await connection.execute(_TABLE)
        missing = await find_pending(connection)
        for migration in missing:
            await connection.execute(migration.sql)
            sql = "INSERT INTO holdfast.migration (number, name, checksum) VALUES ($1, $2, $3)"
            await connection.execute(sql, migration.number, migration.name, migration.checksum)
    return [migration.name for migration in missing]


def print_sql(write: Callable[[str], object]) -> None:
    """The whole schema as SQL, for whoever applies it by other means."""
    write(f"{_SCHEMA};\n{_TABLE};\n")
    for migration in MIGRATIONS:
        write(f"-- {migration.name}\n{migration.sql}\n")
        write(
            "INSERT INTO holdfast.migration (number, name, checksum) "
            f"VALUES ({migration.number}, '{migration.name}', '{migration.checksum}');\n"
        )
