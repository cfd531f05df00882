"""What PostgreSQL says to a program's own statement, as an error of Holdfast: the same that SQLite would be told as."""

from __future__ import annotations

import re

import asyncpg

from holdfast.kernel.errors import (
    CheckViolation,
    ConstraintViolation,
    DataError,
    ForeignKeyViolation,
    HoldfastError,
    LockTimeout,
    NotNullViolation,
    StatementError,
    StatementTimeout,
    StoreUnavailable,
    UniqueViolation,
    UsageError,
)
from holdfast.store.postgres.failures import translate
from holdfast.store.statements import ONE_AT_A_TIME
from holdfast.store.violations import raised, violation

_RAISED = "P0001"  # by a trigger or a function
_KINDS: dict[str, type[ConstraintViolation]] = {
    "23505": UniqueViolation,
    "23503": ForeignKeyViolation,
    "23001": ForeignKeyViolation,
    "23514": CheckViolation,
    "23502": NotNullViolation,
    _RAISED: ConstraintViolation,
    "44000": ConstraintViolation,  # a row that its view would not show
    "40002": ConstraintViolation,
}
# Whatever the language of the server is: `Key (a, b)=(1, 2)`, with the values left out.
_KEY = re.compile(r"\((?P<columns>.*?)\)=\(")
_NAME = re.compile(r'\w+|"(?:[^"]|"")+"')
_PARAMETER = re.compile(r"invalid input for query argument (\$\d+)")  # as the driver says it
WRONG_VALUES = (ValueError, TypeError, OverflowError)
_WRONG = ("42", "0A", "21", "25", "26", "2B", "34", "3B", "3D", "3F", "54", "55")
_LIMITS: dict[str, tuple[type[StatementTimeout], str]] = {
    "55P03": (LockTimeout, "What this statement needs is locked by another transaction"),
    "57014": (StatementTimeout, "PostgreSQL has stopped this statement"),
}
_NOT_WRONG = {"25006", "25P02", "25P03", "25P04"}  # no writes now, or the transaction has ended


def meaning(error: BaseException) -> HoldfastError:
    """The same failure in Holdfast's words, without the values of the statement. The driver's error is its cause."""
    if not isinstance(error, asyncpg.PostgresError):
        return _of_driver(error)
    state = error.sqlstate or ""
    if state in _KINDS or state.startswith("23"):
        return _of_constraint(error, state)
    return _of_statement(error, state) or translate(error)


def _of_statement(error: asyncpg.PostgresError, state: str) -> HoldfastError | None:
    if state.startswith("22"):
        return _of_value(error)
    if isinstance(error, asyncpg.InvalidCachedStatementError):  # the driver prepares it anew the next time
        return StoreUnavailable(
            "The tables have changed since this statement was prepared. Nothing was stored; do the transaction again."
        )
    if "multiple commands" in str(error):
        return UsageError(ONE_AT_A_TIME)
    if state in _LIMITS:
        kind, said = _LIMITS[state]
        return kind(f"{said} ({error}).")
    if state.startswith(_WRONG) and state not in _NOT_WRONG:
        return StatementError(f"PostgreSQL cannot run this statement: {error} (SQLSTATE {state}).")
    return None


def _of_driver(error: BaseException) -> HoldfastError:
    """Refused before it was sent."""
    if isinstance(error, WRONG_VALUES):
        return _of_value(error)
    if isinstance(error, asyncpg.InterfaceError):
        return StatementError(f"The driver cannot run this statement: {error}.")
    return translate(error)


def _of_value(error: BaseException) -> DataError:
    if (found := _PARAMETER.match(str(error))) is not None:
        return DataError(
            f"Parameter {found[1]} is not of the type that PostgreSQL expects there. What the driver says is in the cause of "
            "this error; a cast in the statement, such as `$1::text`, says another type."
        )
    return DataError(
        "PostgreSQL cannot take a value of this statement. What it says is in the cause of this error."
    )


def _of_constraint(error: asyncpg.PostgresError, state: str) -> ConstraintViolation:
    if state == _RAISED:
        return raised(str(error))
    kind = _KINDS.get(state, ConstraintViolation)
    columns: tuple[str, ...] = (error.column_name,) if error.column_name else ()
    if kind is UniqueViolation:
        columns = _columns(error.detail or "")
    return violation(kind, constraint=error.constraint_name, table=error.table_name, columns=columns)


def _columns(detail: str) -> tuple[str, ...]:
    """Of the key, in a sentence that has its values, too. None of an index on expressions."""
    if (key := _KEY.search(detail)) is None:
        return ()
    parts = key["columns"].split(", ")
    if not all(map(_NAME.fullmatch, parts)):
        return ()
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts)
