"""Run one statement on a connection of APSW, and tell all that PEP 249 asks about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import apsw

from holdfast.sqlalchemy.dbapi.errors import ProgrammingError, explained
from holdfast.sqlalchemy.dbapi.texts import changes_rows
from holdfast.store.statements import may_be_several

Row: TypeAlias = tuple[Any, ...]
Description: TypeAlias = list[tuple[str, str | None, None, None, None, None, None]]


class Writes(Exception):
    """The statement writes, and this is a place for reading. It was not begun."""


@dataclass(frozen=True, slots=True)
class Request:
    """A statement, with one set of values or, as `many`, with several."""

    sql: str
    params: Sequence[Any] = ()
    many: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    description: Description | None
    rows: list[Row]
    rowcount: int
    lastrowid: int | None


def run(connection: apsw.Connection, request: Request, *, reads_only: bool = False) -> Outcome:
    """All rows are read: a statement that returns rows has not ended before that."""
    with explained():
        cursor, looks = _begun(connection, request, reads_only=reads_only)
        rows: list[Row] = cursor.fetchall()
        cursor.close()
        return _outcome(connection, request, looks, rows)


def stream(connection: apsw.Connection, request: Request) -> tuple[Description | None, apsw.Cursor]:
    """Begin a statement that reads; its rows are fetched from the cursor. The cursor has a snapshot of its own."""
    with explained():
        cursor, looks = _begun(connection, request, reads_only=True)
        return looks.description, cursor


def portion(cursor: apsw.Cursor, size: int | None) -> list[Row]:
    """The next rows; None: all that are left."""
    with explained():
        rows: list[Row] = cursor.fetchall() if size is None else []
        while size is not None and len(rows) < size and (row := cursor.fetchone()) is not None:
            rows.append(row)
        return rows


def _begun(connection: apsw.Connection, request: Request, *, reads_only: bool) -> tuple[apsw.Cursor, _Looks]:
    cursor = connection.cursor()
    looks = _Looks(connection, request, reads_only=reads_only)
    cursor.exec_trace = looks.before_each
    if request.many:
        cursor.executemany(request.sql, request.params)
    else:
        cursor.execute(request.sql, request.params)
    return cursor, looks


def _outcome(connection: apsw.Connection, request: Request, looks: _Looks, rows: list[Row]) -> Outcome:
    if looks.is_readonly:
        return Outcome(looks.description, rows, -1, None)
    looks.count()
    rowcount = looks.changed if changes_rows(request.sql) else -1
    return Outcome(looks.description, rows, rowcount, connection.last_insert_rowid())


class _Looks:
    """Called after a statement was prepared and before its first step: only then is known what it returns, and if it writes."""

    def __init__(self, connection: apsw.Connection, request: Request, *, reads_only: bool) -> None:
        self._connection, self._request, self._reads_only = connection, request, reads_only
        self._several = may_be_several(request.sql)
        self._times = 0
        self._first = ""
        self._total = connection.total_changes()
        self.changed = 0
        self.is_readonly = True
        self.description: Description | None = None

    @property
    def before_each(self) -> Callable[[apsw.Cursor, str, Any], bool]:
        return self._before_each

    def _before_each(self, cursor: apsw.Cursor, sql: str, _: Any) -> bool:
        self._times += 1
        if self._times == 1:
            self._look(cursor, sql)
            return True
        if self._several and (not self._request.many or sql != self._first):
            raise ProgrammingError("You can only execute one statement at a time. Call each by itself.")
        self.count()  # of the set of values before
        return True

    def _look(self, cursor: apsw.Cursor, sql: str) -> None:
        self._first = sql
        self.is_readonly = cursor.is_readonly or bool(cursor.is_explain)
        if self._reads_only and not self.is_readonly:
            raise Writes
        columns = cursor.get_description()
        self.description = [(name, kind, None, None, None, None, None) for name, kind in columns] or None

    def count(self) -> None:
        """changes() stays as it was when a statement writes nothing, so it counts only when the total has moved."""
        total = self._connection.total_changes()
        if total != self._total:
            self._total = total
            self.changed += self._connection.changes()
