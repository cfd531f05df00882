"""Bring the tables of a SQLite file up to date. A SQLite store does this by itself when it opens."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.store.migrations import Migration, load, pending
from holdfast.store.sqlite.connection import Db

MIGRATIONS = load("holdfast.store.sqlite.migrations")

_TABLE = """
CREATE TABLE IF NOT EXISTS holdfast_migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at REAL NOT NULL
)"""


def find_pending(db: Db) -> list[Migration]:
    """What is still to be applied; raises when the tables are newer than this version, or changed."""
    if not db.value("SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_migration'"):
        return MIGRATIONS
    applied: dict[int, str] = dict(db.rows("SELECT number, checksum FROM holdfast_migration"))
    return pending(MIGRATIONS, applied)


def apply(db: Db) -> list[str]:
    """Apply all that is missing, in the caller's transaction: all of it or none."""
    db.run(_TABLE)
    missing = find_pending(db)
    for migration in missing:
        db.connection.execute(migration.sql)
        sql = "INSERT INTO holdfast_migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
        db.run(sql, migration.number, migration.name, migration.checksum, db.now)
    return [migration.name for migration in missing]


def print_sql(write: Callable[[str], object]) -> None:
    """The whole schema as SQL, for whoever applies it by other means."""
    write(f"{_TABLE};\n")
    for migration in MIGRATIONS:
        write(f"-- {migration.name}\n{migration.sql}\n")
        write(
            "INSERT INTO holdfast_migration (number, name, checksum, applied_at) "
            f"VALUES ({migration.number}, '{migration.name}', '{migration.checksum}', unixepoch('subsec'));\n"
        )
