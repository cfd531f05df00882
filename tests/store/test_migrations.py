"""Numbered SQL files: which are applied, which are to come, and whether the tables fit."""

from __future__ import annotations

import hashlib
import re
import sys

import pytest

from holdfast.kernel.errors import SchemaChanged, SchemaTooNew
from holdfast.store.migrations import Migration, load, pending

STORES = ("holdfast.store.sqlite.migrations", "holdfast.store.postgres.migrations")
FIRST, SECOND = Migration(1, "0001_jobs", "CREATE TABLE a"), Migration(2, "0002_more", "CREATE TABLE b")


def applied(*migrations):
    return {migration.number: migration.checksum for migration in migrations}


def test_everything_is_pending_on_an_empty_database():
    assert pending([FIRST, SECOND], {}) == [FIRST, SECOND]


def test_what_was_applied_is_not_pending():
    assert pending([FIRST, SECOND], applied(FIRST)) == [SECOND]
    assert pending([FIRST, SECOND], applied(FIRST, SECOND)) == []


def test_tables_of_a_newer_version_are_refused():
    with pytest.raises(SchemaTooNew, match=r"0003.*0002"):
        pending([FIRST, SECOND], {**applied(FIRST, SECOND), 3: "x"})


def test_a_migration_that_was_edited_is_refused():
    edited = Migration(1, "0001_jobs", "CREATE TABLE a ")
    with pytest.raises(SchemaChanged, match="0001_jobs"):
        pending([edited, SECOND], applied(FIRST, SECOND))


def test_newer_is_told_before_changed():
    with pytest.raises(SchemaTooNew):
        pending([FIRST], {1: "x", 2: "y"})


def test_a_gap_in_what_was_applied_is_filled():
    assert pending([FIRST, SECOND], applied(SECOND)) == [FIRST]


def test_a_checksum_is_of_the_whole_text():
    assert FIRST.checksum == hashlib.sha256(b"CREATE TABLE a").hexdigest()


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "some_migrations"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    sys.modules.pop("some_migrations", None)


def test_files_are_loaded_in_order_and_others_are_left_alone(package):
    for name in ("0002_b.sql", "0001_a.sql", "notes.sql", "0003_c.txt", "README.md"):
        (package / name).write_text(f"-- {name}", "utf-8")
    found = load("some_migrations")
    assert [(each.number, each.name, each.sql) for each in found] == [
        (1, "0001_a", "-- 0001_a.sql"),
        (2, "0002_b", "-- 0002_b.sql"),
    ]


def test_numbers_have_no_gap(package):
    for name in ("0001_a.sql", "0003_c.sql"):
        (package / name).write_text("")
    with pytest.raises(AssertionError, match="gap"):
        load("some_migrations")


def test_no_number_twice(package):
    for name in ("0001_a.sql", "0001_b.sql"):
        (package / name).write_text("")
    with pytest.raises(AssertionError, match="gap"):
        load("some_migrations")


def test_both_stores_have_the_same_migrations():
    sqlite, postgres = ([(each.number, each.name) for each in load(store)] for store in STORES)
    assert sqlite == postgres


def test_both_stores_have_the_same_coordination_tables():
    sqlite, postgres = (tables(load(store)[1].sql) for store in STORES)
    assert {"lease", "tick", "key", "audit"} <= set(sqlite)
    assert sqlite == postgres


def test_both_stores_keep_the_same_facts_of_a_job():
    """SQLite has narrow tables for each state and PostgreSQL one live table: the columns of all of them count."""
    sqlite, postgres = (facts(load(store)[0].sql) for store in STORES)
    own = {
        "sqlite": {"seq", "key", "stop", "value", "bounded_task"},  # names of its narrow tables
        "postgres": {"has_turn", "bounded", "suspect"},
    }
    assert set(sqlite) - own["sqlite"] - own["postgres"] == set(postgres) - own["postgres"] - own["sqlite"]
    for column in set(sqlite) & set(postgres):
        assert sqlite[column] == postgres[column], column


# What a type means, whichever way a database spells it.
_KINDS = {
    "integer": "number",
    "bigint": "number",
    "smallint": "number",
    "boolean": "number",
    "real": "time",
    "timestamptz": "time",
    "text": "text",
    "uuid": "text",
    "jsonb": "text",
}


def tables(sql):
    """The columns of each table, with what their types mean."""
    bare = re.sub(r"--[^\n]*", "", sql)
    found = {}
    for name, body in re.findall(r"CREATE TABLE holdfast[_.](\w+) \((.*?)\n\)", bare, re.DOTALL):
        columns = re.findall(r"^    (\w+) +(\w+)", body, re.MULTILINE)
        found[name] = {
            column: _KINDS[kind.lower()]
            for column, kind in columns
            if column.upper() not in ("CONSTRAINT", "PRIMARY")
        }
    return found


def facts(sql):
    return {
        column: kind
        for table, columns in tables(sql).items()
        if table not in ("counter", "store", "queue")
        for column, kind in columns.items()
    }
