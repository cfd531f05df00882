"""PEP 249 over APSW: what a cursor tells, and the errors, beside what the interpreter's sqlite3 does."""

from __future__ import annotations

from datetime import date

import apsw
import pytest
import sqlalchemy as sa

from holdfast.kernel.errors import UsageError
from holdfast.sqlalchemy import dbapi
from holdfast.sqlalchemy.dbapi import texts
from holdfast.sqlalchemy.sqlite import url_of_file


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.db")


@pytest.fixture
def connection(path):
    connection = dbapi.connect(path)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE NOT NULL, CHECK (a <> 'bad'))")
    connection.commit()
    yield connection
    connection.close()


def test_the_description_of_an_empty_result(connection):
    cursor = connection.execute("SELECT id, a AS b FROM t")
    assert [column[0] for column in cursor.description] == ["id", "b"]
    assert all(len(column) == 7 for column in cursor.description)
    assert (cursor.fetchone(), cursor.fetchmany(3), cursor.fetchall()) == (None, [], [])
    assert connection.execute("DELETE FROM t").description is None


def test_how_many_rows_a_statement_has_changed(connection):
    counts = [
        connection.execute(sql).rowcount
        for sql in (
            "INSERT INTO t (a) VALUES ('a'), ('b'), ('c')",
            "UPDATE t SET a = a || 'x' WHERE id > 1",
            "UPDATE t SET a = 1 WHERE id > 100",  # SQLite's own number is still that of the statement before
            "CREATE TABLE other (a)",
            "SELECT * FROM t",
            "WITH one(id) AS (SELECT 1) DELETE FROM t WHERE id IN one",
            "INSERT INTO t (a) VALUES ('d') RETURNING id",
        )
    ]
    assert counts == [3, 2, 0, -1, -1, 1, 1]
    many = connection.executemany("INSERT INTO t (a) VALUES (?)", [(number,) for number in range(5)])
    assert many.rowcount == 5
    assert connection.executemany("UPDATE t SET a = ? WHERE id = ?", [(9, 99), ("z", 3)]).rowcount == 1


def test_the_id_of_the_last_row(connection):
    assert connection.execute("INSERT INTO t (a) VALUES ('a')").lastrowid == 1


@pytest.mark.parametrize(
    ("sql", "params", "kind"),
    [
        ("INSERT INTO t (a) VALUES (NULL)", (), dbapi.IntegrityError),
        ("INSERT INTO t (a) VALUES ('bad')", (), dbapi.IntegrityError),
        ("SELECT nothing", (), dbapi.OperationalError),
        ("SELEC", (), dbapi.OperationalError),
        ("SELECT ?", (object(),), dbapi.ProgrammingError),
        ("SELECT ?", (date(2026, 1, 1),), dbapi.ProgrammingError),
        ("SELECT ?", (), dbapi.ProgrammingError),
        ("SELECT ?", (2**63,), dbapi.DataError),
        ("SELECT ?", ("\ud800",), dbapi.DataError),
        ("SELECT CAST(x'ff' AS TEXT)", (), dbapi.OperationalError),
        ("SELECT 1; SELECT 2", (), dbapi.ProgrammingError),
    ],
)
def test_what_fails_is_an_error_of_its_kind(connection, sql, params, kind):
    with pytest.raises(kind):
        connection.execute(sql, params)


def test_an_error_has_the_code_of_sqlite(connection):
    connection.execute("INSERT INTO t (a) VALUES ('a')")
    with pytest.raises(dbapi.IntegrityError) as raised:
        connection.execute("INSERT INTO t (a) VALUES ('a')")
    assert raised.value.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    assert raised.value.sqlite_errorcode == apsw.SQLITE_CONSTRAINT_UNIQUE


def test_a_transaction_begins_with_the_first_write(connection, path):
    connection.execute("SELECT * FROM t")
    assert not connection.in_transaction
    connection.execute("INSERT INTO t (a) VALUES ('a')")
    assert connection.in_transaction
    connection.rollback()
    other = dbapi.connect(path)
    assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
    other.close()


def test_a_closed_connection_or_cursor_does_nothing(connection):
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT 1")
    connection.close()
    connection.close()
    with pytest.raises(dbapi.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(dbapi.OperationalError, match="Does its folder exist"):
        dbapi.connect(str(tmp_path / "nowhere" / "a.db"))


def test_options_of_the_other_library_are_refused(path):
    with pytest.raises(UsageError, match="native_datetime"):
        sa.create_engine(url_of_file(path), native_datetime=True)
    with pytest.raises(UsageError, match="names no file"):
        sa.create_engine("sqlite+holdfast://").connect()


def test_regular_expressions(connection):
    assert connection.execute("SELECT 'abc' REGEXP '^a.c$', NULL REGEXP 'a', 'b' REGEXP 'a'").fetchone() == (
        1,
        None,
        0,
    )


@pytest.mark.parametrize(
    "sql", ["COMMIT", "-- a\nbegin", "/* a */ ROLLBACK", ";END", "rollback transaction", "Commit and chain"]
)
def test_a_text_that_ends_a_transaction_is_seen(sql):
    assert texts.ends_transaction(sql)


@pytest.mark.parametrize(
    "sql",
    ["ROLLBACK TO a", "rollback transaction to savepoint a", "SELECT 'COMMIT'", "UPDATE t SET commit = 1"],
)
def test_others_are_not_taken_for_one(sql):
    assert not texts.ends_transaction(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA table_info(t)",
        'PRAGMA main.table_xinfo("t")',
        "pragma foreign_keys",
        "CREATE TABLE template (a)",
    ],
)
def test_what_only_tells_is_taken(sql):
    texts.refuse_what_stays(sql)


@pytest.mark.parametrize(
    "sql",
    ["PRAGMA foreign_keys(0)", "pragma temp.user_version = 1", "PRAGMA optimize", "create temporary view v AS SELECT 1",
     "DETACH a", "CREATE TABLE temp.t (a)", "PRAGMA wal_checkpoint"],
)  # fmt: skip
def test_what_changes_the_connection_is_not(sql):
    with pytest.raises(UsageError):
        texts.refuse_what_stays(sql)
