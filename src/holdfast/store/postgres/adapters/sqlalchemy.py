"""Adopt a connection or session of SQLAlchemy 2 on psycopg, psycopg 2 or asyncpg.

Statements go through `exec_driver_sql`, not past SQLAlchemy: its logs, events, error classes and the lazy BEGIN of its
asyncpg dialect stay as the caller knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, CursorResult
from sqlalchemy.exc import InvalidRequestError, PendingRollbackError
from sqlalchemy.orm import Session
from sqlalchemy.util.concurrency import in_greenlet

from holdfast.kernel.errors import WrongConnection
from holdfast.store.postgres.adapters.base import SyncAdopted
from holdfast.store.postgres.adapters.failures import FAILED
from holdfast.store.postgres.adapters.loops import same_loop
from holdfast.store.postgres.adapters.text import named, pyformat

_DRIVERS = ("psycopg", "psycopg2", "asyncpg")
# The caller may have set these for reading many rows; with them an INSERT would become a cursor's declaration.
_HOW = {"stream_results": False, "yield_per": None, "preserve_rowcount": True}


class SqlAlchemySync(SyncAdopted):
    """Also what runs inside the greenlet of an async one."""

    def __init__(self, tx: Connection | Session) -> None:
        self._tx = tx

    def ready(self) -> object:
        with usable():
            bind = self._tx.get_bind() if isinstance(self._tx, Session) else self._tx
            _is_postgres(bind.dialect)
            if bind.dialect.is_async and not in_greenlet():
                raise WrongConnection(
                    "This is the sync inside of an async SQLAlchemy connection or session. "
                    "Pass the AsyncConnection or AsyncSession itself."
                )
            raw = self._connection().connection
            if bind.dialect.is_async:
                same_loop(raw.driver_connection)
            if getattr(raw.dbapi_connection, "autocommit", False):
                raise WrongConnection(
                    "This SQLAlchemy connection has the isolation level AUTOCOMMIT: what is stored now would be committed "
                    "alone. Use a connection or session with another isolation level."
                )
            assert raw.driver_connection is not None
            return raw.driver_connection

    def rows(self, sql: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        result = self._executed(sql, params)
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    def count(self, sql: str, params: tuple[Any, ...]) -> int:
        result = self._executed(sql, params)
        result.close()
        return max(result.rowcount, 0)

    def _connection(self) -> Connection:
        return self._tx.connection() if isinstance(self._tx, Session) else self._tx

    def _executed(self, sql: str, params: tuple[Any, ...]) -> CursorResult[Any]:
        with usable():
            connection = self._connection()
            if connection.dialect.driver == "asyncpg":
                return connection.exec_driver_sql(sql, params, execution_options=_HOW)
            return connection.exec_driver_sql(pyformat(sql), named(params), execution_options=_HOW)


def adopted(tx: Connection | Session) -> SqlAlchemySync:
    return SqlAlchemySync(tx)


@contextmanager
def usable() -> Iterator[None]:
    """SQLAlchemy's own refusals: closed, not begun, ended, or waiting for a rollback."""
    try:
        yield
    except PendingRollbackError as error:
        raise WrongConnection(FAILED) from error
    except InvalidRequestError as error:
        raise WrongConnection(f"SQLAlchemy cannot use this connection or session: {error}") from error


def _is_postgres(dialect: Any) -> None:
    if dialect.name != "postgresql":
        raise WrongConnection(
            f"This SQLAlchemy connection or session leads to {dialect.name}; the store is a PostgreSQL database. "
            "Pass one that leads to the store's database, or use `hf.transaction()`."
        )
    if dialect.driver not in _DRIVERS:
        raise WrongConnection(
            f"SQLAlchemy's driver {dialect.driver} is not supported here; these are: {', '.join(_DRIVERS)}."
        )
