"""The errors of PEP 249, and what an error of APSW is among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class Warning(Exception):  # noqa: A001  PEP 249 names it so
    pass


class Error(Exception):
    """`sqlite_errorcode` and `sqlite_errorname` are those of SQLite, as with the interpreter's sqlite3."""

    sqlite_errorcode: int | None = None
    sqlite_errorname: str | None = None


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


_KINDS: tuple[tuple[tuple[type[Exception], ...], type[Error]], ...] = (
    ((apsw.ConstraintError, apsw.MismatchError), IntegrityError),
    ((apsw.CorruptError, apsw.NotADBError), DatabaseError),
    ((apsw.TooBigError, apsw.RangeError, OverflowError, UnicodeEncodeError), DataError),
    ((apsw.InternalError,), InternalError),
    ((apsw.MisuseError,), InterfaceError),
    (
        (
            apsw.BindingsError,
            apsw.ConnectionClosedError,
            apsw.CursorClosedError,
            apsw.ThreadingViolationError,
            apsw.IncompleteExecutionError,
            TypeError,
        ),
        ProgrammingError,
    ),
    ((apsw.Error, UnicodeDecodeError), OperationalError),
)


@contextmanager
def explained() -> Iterator[None]:
    """Around what APSW does: its errors become those of PEP 249, on the thread where they arise."""
    try:
        yield
    except (apsw.Error, TypeError, OverflowError, UnicodeError) as error:
        raise translated(error) from error


def translated(error: Exception) -> Error:
    kind = next(kind for causes, kind in _KINDS if isinstance(error, causes))
    found = kind(_text(error))
    if isinstance(error, apsw.Error):
        code = getattr(error, "extendedresult", None)
        found.sqlite_errorcode = code
        names = apsw.mapping_extended_result_codes, apsw.mapping_result_codes
        found.sqlite_errorname = next((str(each[code]) for each in names if code in each), None)
    return found


def _text(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"Text in the file is no UTF-8: {error}. Read it with CAST(… AS BLOB)."
    if isinstance(error, TypeError):
        return f"A parameter cannot be sent to SQLite: {error}. Pass text, numbers, bytes or None."
    return str(error)
