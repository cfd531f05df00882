"""Adopt a connection of psycopg 3, sync or async. The cursors are ours: the caller's settings stay out and unchanged."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import PyFormat
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.string import StrDumperUnknown

from holdfast.kernel.errors import WrongConnection
from holdfast.store.postgres.adapters.base import Adopted, AsyncAdopted, SyncAdopted
from holdfast.store.postgres.adapters.failures import FAILED
from holdfast.store.postgres.adapters.loops import same_loop
from holdfast.store.postgres.adapters.text import text_form

Row = tuple[Any, ...]

# No prepared statements: PgBouncer may lead to another server connection tomorrow. Binary answers do not depend on
# the session's DateStyle and extra_float_digits.
_HOW: dict[str, Any] = {"prepare": False, "binary": True}


class PsycopgSync(SyncAdopted):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def ready(self) -> object:
        _in_transaction(self._connection)
        return self._connection

    def rows(self, sql: str, params: Row) -> list[Row]:
        with self._executed(sql, params) as cursor:
            return cursor.fetchall() if cursor.description else []

    def count(self, sql: str, params: Row) -> int:
        with self._executed(sql, params) as cursor:
            return max(cursor.rowcount, 0)

    def _executed(self, sql: str, params: Row) -> psycopg.RawCursor[Row]:
        cursor = psycopg.RawCursor(self._connection, row_factory=tuple_row)
        _untyped(cursor)
        cursor.execute(sql.encode(), _texts(params), **_HOW)
        if self._connection.info.pipeline_status:
            with self._connection.pipeline():  # at the end of an inner block the answers are there
                pass
        return cursor


class PsycopgAsync(AsyncAdopted):
    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    def ready(self) -> object:
        same_loop(self._connection)
        _in_transaction(self._connection)
        return self._connection

    async def rows(self, sql: str, params: Row) -> list[Row]:
        async with await self._executed(sql, params) as cursor:
            return await cursor.fetchall() if cursor.description else []

    async def count(self, sql: str, params: Row) -> int:
        async with await self._executed(sql, params) as cursor:
            return max(cursor.rowcount, 0)

    async def _executed(self, sql: str, params: Row) -> psycopg.AsyncRawCursor[Row]:
        cursor = psycopg.AsyncRawCursor(self._connection, row_factory=tuple_row)
        _untyped(cursor)
        await cursor.execute(sql.encode(), _texts(params), **_HOW)
        if self._connection.info.pipeline_status:
            async with self._connection.pipeline():
                pass
        return cursor


def adopted(tx: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> Adopted:
    return PsycopgAsync(tx) if isinstance(tx, psycopg.AsyncConnection) else PsycopgSync(tx)


def _in_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if connection.closed:
        raise WrongConnection(
            "This psycopg connection is closed. Pass one that is open and in a transaction."
        )
    match connection.info.transaction_status:
        case TransactionStatus.INERROR:
            raise WrongConnection(FAILED)
        case TransactionStatus.IDLE if connection.autocommit:
            raise WrongConnection(
                "This psycopg connection is in autocommit mode and in no transaction: what is stored now would be "
                "committed alone. Call inside `with connection.transaction():`, or turn autocommit off."
            )


def _untyped(cursor: psycopg.RawCursor[Row] | psycopg.AsyncRawCursor[Row]) -> None:
    """Send text without a type, on this cursor alone, when the caller has taught the connection otherwise."""
    if cursor.adapters.get_dumper(str, PyFormat.AUTO).oid:
        cursor.adapters.register_dumper(str, StrDumperUnknown)


def _texts(params: Row) -> list[str | None]:
    return [text_form(value) for value in params]
