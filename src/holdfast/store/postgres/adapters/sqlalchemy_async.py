"""Adopt an async connection or session of SQLAlchemy 2. Apart from the sync one, because it needs greenlet."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from holdfast.kernel.errors import UsageError
from holdfast.store.postgres.adapters.base import NEEDS_AWAIT, Adopted
from holdfast.store.postgres.adapters.sqlalchemy import SqlAlchemySync, usable
from holdfast.store.statements import Procedure

T = TypeVar("T")


class SqlAlchemyAsync(Adopted):
    """Every call runs the sync one in SQLAlchemy's own greenlet, on this event loop."""

    def __init__(self, tx: AsyncConnection | AsyncSession) -> None:
        self._tx = tx

    async def check(self, store_id: str) -> None:
        with usable():
            await self._tx.run_sync(lambda tx: SqlAlchemySync(tx).check_sync(store_id))

    async def run(self, procedure: Procedure[T]) -> T:
        return await self._tx.run_sync(lambda tx: SqlAlchemySync(tx).run_sync(procedure))

    async def execute(self, sql: str, /, *params: Any) -> int:
        return await self._tx.run_sync(lambda tx: SqlAlchemySync(tx).count(sql, params))

    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        return await self._tx.run_sync(lambda tx: SqlAlchemySync(tx).rows(sql, params))

    def check_sync(self, store_id: str) -> None:  # noqa: ARG002
        raise UsageError(NEEDS_AWAIT)

    def run_sync(self, procedure: Procedure[T]) -> T:
        procedure.close()
        raise UsageError(NEEDS_AWAIT)


def adopted(tx: AsyncConnection | AsyncSession) -> SqlAlchemyAsync:
    return SqlAlchemyAsync(tx)
