"""PEP 249 over APSW: the module that SQLAlchemy's dialect is given in place of `sqlite3`."""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.sqlalchemy.dbapi.connection import Connection
from holdfast.sqlalchemy.dbapi.cursor import Cursor
from holdfast.sqlalchemy.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004  PEP 249 names it so
)
from holdfast.sqlalchemy.dbapi.own import OwnConnection

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
Binary = memoryview
sqlite_version = apsw.sqlite_lib_version()
sqlite_version_info = tuple(map(int, sqlite_version.split(".")))
version = apsw.apsw_version()


def connect(path: str, **options: Any) -> Connection:
    return OwnConnection(path, **options)


__all__ = [
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "OwnConnection",
    "ProgrammingError",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "sqlite_version",
    "sqlite_version_info",
    "threadsafety",
    "version",
]
