"""What SQLite says to a program's own statement, as an error of Holdfast: the same that PostgreSQL would be told as."""

from __future__ import annotations

import re
from typing import Any

import apsw

from holdfast.kernel.errors import (
    CheckViolation,
    ConstraintViolation,
    DataError,
    ForeignKeyViolation,
    NotNullViolation,
    StatementError,
    TransactionEnded,
    UniqueViolation,
)
from holdfast.store.sqlite.connection import Db, explain
from holdfast.store.violations import raised, violation

_COLUMN = re.compile(r"(?P<table>.+)\.(?P<column>[^.]+)")
_KINDS: dict[int, type[ConstraintViolation]] = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: UniqueViolation,
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: UniqueViolation,
    apsw.SQLITE_CONSTRAINT_ROWID: UniqueViolation,
    apsw.SQLITE_CONSTRAINT_NOTNULL: NotNullViolation,
    apsw.SQLITE_CONSTRAINT_CHECK: CheckViolation,
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: ForeignKeyViolation,
}
# Said when the statement runs, but not about a value.
_NO_DATA = ("no such savepoint", "cannot ", "SQL statements in progress")
NO_MATCH = (
    "Parameters are written `$1`, `$2` …; each has a value, and each value is asked for by the statement."
)
TAKEN = "SQLite takes None, bool, int (64 bits), float, str and bytes"


def meaning(
    error: Exception, db: Db | None = None, sql: str = "", params: dict[str, Any] | None = None
) -> Exception:
    """The same failure in Holdfast's words, without the values of the statement. The driver's error is its cause."""
    found = _meaning(error, db, sql, params or {})
    if found is not error:
        found.__cause__ = error
    return found


def _meaning(error: Exception, db: Db | None, sql: str, params: dict[str, Any]) -> Exception:
    if isinstance(error, apsw.BindingsError | KeyError):
        return StatementError(NO_MATCH)
    if isinstance(error, TypeError | OverflowError | UnicodeError):
        return _of_parameter(params)
    if not isinstance(error, apsw.Error):
        return error
    return _of_sqlite(error, db, sql, params)


def _of_sqlite(error: apsw.Error, db: Db | None, sql: str, params: dict[str, Any]) -> Exception:
    match error:
        case apsw.ConstraintError():
            return _of_constraint(error)
        case apsw.MismatchError() | apsw.TooBigError():
            return DataError(f"SQLite cannot take a value of this statement: {error}.")
        case apsw.InterruptError():
            return TransactionEnded(
                "A statement took too long: the transaction was cut off, and is rolled back."
            )
        case apsw.SQLError():
            return _of_statement(error, db, sql, params)
    return explain(error)


def _of_constraint(error: apsw.ConstraintError) -> Exception:
    text, code = str(error).partition("constraint failed: ")[2], getattr(error, "extendedresult", 0)
    if code == apsw.SQLITE_CONSTRAINT_DATATYPE:
        return DataError(f"SQLite cannot take a value of this statement: {error}.")
    if code == apsw.SQLITE_CONSTRAINT_TRIGGER:
        return raised(str(error))
    kind = _KINDS.get(code, ConstraintViolation)
    if kind is CheckViolation:
        return violation(kind, constraint=text or None)
    if text.startswith("index "):  # of an expression
        return violation(kind, constraint=text.removeprefix("index ").strip("'"))
    columns = [found for part in text.split(", ") if (found := _COLUMN.fullmatch(part))]
    table = columns[0]["table"] if columns else None
    return violation(kind, table=table, columns=tuple(found["column"] for found in columns))


def _of_statement(error: apsw.SQLError, db: Db | None, sql: str, params: dict[str, Any]) -> Exception:
    """SQLite has one code for a wrong statement and for a value that it stumbles over while it runs."""
    if db is not None and not str(error).startswith(_NO_DATA) and _is_right(db, sql, params):
        return DataError(
            "SQLite cannot take a value of this statement. What it says is in the cause of this error."
        )
    return StatementError(f"SQLite cannot run this statement: {error}.")


def _is_right(db: Db, sql: str, params: dict[str, Any]) -> bool:
    try:
        db.connection.cursor().execute(f"EXPLAIN {sql}", params).close()
    except apsw.Error:
        return False
    return True


def _of_parameter(params: dict[str, Any]) -> DataError:
    for place, value in params.items():
        if (wrong := _wrong(value)) is not None:
            return DataError(f"Parameter ${place} {wrong}. {TAKEN}.")
    return DataError(f"A parameter is of a type that SQLite does not take. {TAKEN}.")


def _wrong(value: Any) -> str | None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "is text with lone surrogates, which is no Unicode"
        return None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else "is an integer of more than 64 bits"
    if value is None or isinstance(value, float | bytes | bytearray | memoryview):
        return None
    kind = type(value).__name__
    return f"is a {kind}: pass {_FORMS.get(kind, 'it as text or a number')}"


_FORMS = {
    "datetime": "its isoformat()",
    "date": "its isoformat()",
    "time": "its isoformat()",
    "timedelta": "its total_seconds()",
    "UUID": "it as str(…)",
    "Decimal": "it as str(…), or an integer of the smallest unit",
    "dict": "it as JSON text",
    "set": "it as JSON text, and read it with json_each($1)",
}
