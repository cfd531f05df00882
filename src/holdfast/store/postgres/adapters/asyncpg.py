"""Adopt a connection of asyncpg, its own or one acquired from its pool."""

from __future__ import annotations

from typing import Any

import asyncpg

from holdfast.kernel.errors import WrongConnection
from holdfast.store.postgres.adapters.base import AsyncAdopted
from holdfast.store.postgres.adapters.loops import same_loop


class Asyncpg(AsyncAdopted):
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def ready(self) -> object:
        connection = self._connection
        if isinstance(connection, asyncpg.pool.PoolConnectionProxy):
            connection = connection._con  # noqa: SLF001 - the proxy dies with the `async with`, this one lives on
            if connection is None:
                raise WrongConnection(
                    "This connection was given back to its pool. Call inside the `async with pool.acquire()` block."
                )
        same_loop(connection)
        if connection.is_closed():
            raise WrongConnection(
                "This asyncpg connection is closed. Pass one that is open and in a transaction."
            )
        if not connection.is_in_transaction():
            raise WrongConnection(
                "This asyncpg connection is not in a transaction: what is stored now would be committed alone. "
                "Call inside `async with connection.transaction():`."
            )
        return connection

    async def rows(self, sql: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        records = await self._connection.fetch(sql, *params, record_class=asyncpg.Record)
        return [tuple(record) for record in records]

    async def count(self, sql: str, params: tuple[Any, ...]) -> int:
        status = await self._connection.execute(sql, *params)  # INSERT 0 1, UPDATE 3, CREATE TABLE
        last = status.rpartition(" ")[2]
        return int(last) if last.isdigit() else 0


def adopted(tx: Any) -> Asyncpg:
    return Asyncpg(tx)
