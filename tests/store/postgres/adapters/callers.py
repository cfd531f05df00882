"""A caller of each driver, as a program would use it: begins its own transaction, writes its own rows, ends it."""

from __future__ import annotations

import asyncio
import importlib.util
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import asyncpg
import psycopg
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm

CREATE_ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY)"


class Caller(ABC):
    """One transaction at a time, on one connection."""

    is_async: ClassVar[bool]
    tx: Any  # what is passed to the store

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    async def open(self) -> None: ...
    @abstractmethod
    async def begin(self) -> None: ...
    @abstractmethod
    async def sql(self, sql: str) -> list[tuple[Any, ...]]: ...
    @abstractmethod
    async def commit(self) -> None: ...
    @abstractmethod
    async def rollback(self) -> None: ...
    @abstractmethod
    async def close(self) -> None: ...


class Asyncpg(Caller):
    is_async = True

    async def open(self) -> None:
        self.tx = await asyncpg.connect(self.url)

    async def begin(self) -> None:
        self._transaction = self.tx.transaction()
        await self._transaction.start()

    async def sql(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(record) for record in await self.tx.fetch(sql)]

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()

    async def close(self) -> None:
        await self.tx.close()


class AsyncpgPool(Asyncpg):
    async def open(self) -> None:
        self.pool = await asyncpg.create_pool(self.url, min_size=1, max_size=2)
        self.tx = await self.pool.acquire()

    async def close(self) -> None:
        await self.pool.release(self.tx)
        await self.pool.close()


class Psycopg(Caller):
    is_async = False

    async def open(self) -> None:
        self.tx = psycopg.connect(self.url)

    async def begin(self) -> None:
        """psycopg begins with the first statement."""

    async def sql(self, sql: str) -> list[tuple[Any, ...]]:
        with self.tx.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        self.tx.commit()

    async def rollback(self) -> None:
        self.tx.rollback()

    async def close(self) -> None:
        self.tx.close()


class PsycopgAsync(Psycopg):
    is_async = True

    async def open(self) -> None:
        self.tx = await psycopg.AsyncConnection.connect(self.url)

    async def sql(self, sql: str) -> list[tuple[Any, ...]]:
        async with self.tx.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(sql)
            return await cursor.fetchall() if cursor.description else []

    async def commit(self) -> None:
        await self.tx.commit()

    async def rollback(self) -> None:
        await self.tx.rollback()

    async def close(self) -> None:
        await self.tx.close()


class PsycopgBlock(Psycopg):
    """In autocommit mode, with `transaction()` blocks."""

    async def open(self) -> None:
        self.tx = psycopg.connect(self.url, autocommit=True)

    async def begin(self) -> None:
        self._block = self.tx.transaction()
        self._block.__enter__()

    async def commit(self) -> None:
        self._block.__exit__(None, None, None)

    async def rollback(self) -> None:
        self._block.__exit__(psycopg.Rollback, psycopg.Rollback(), None)


def _text(sql: str) -> Any:
    return sqlalchemy.text(sql.replace(":", r"\:"))


class AlchemyConnection(Caller):
    is_async = False
    driver = "psycopg"
    options: ClassVar[dict[str, Any]] = {}

    def _url(self) -> str:
        return self.url.replace("postgresql://", f"postgresql+{self.driver}://")

    async def open(self) -> None:
        self.engine = sqlalchemy.create_engine(self._url(), **self.options)
        self.tx = self.connect()

    def connect(self) -> Any:
        return self.engine.connect()

    async def begin(self) -> None:
        """SQLAlchemy begins with the first statement."""

    async def sql(self, sql: str) -> list[tuple[Any, ...]]:
        result = self.tx.execute(_text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    async def commit(self) -> None:
        self.tx.commit()

    async def rollback(self) -> None:
        self.tx.rollback()

    async def close(self) -> None:
        self.tx.close()
        self.engine.dispose()


class AlchemySession(AlchemyConnection):
    def connect(self) -> Any:
        return sqlalchemy.orm.Session(self.engine)


class AlchemyConnection2(AlchemyConnection):
    driver = "psycopg2"


class AlchemySession2(AlchemySession):
    driver = "psycopg2"


class AlchemyAsyncConnection(AlchemyConnection):
    is_async = True
    driver = "asyncpg"

    async def open(self) -> None:
        self.engine = sqlalchemy.ext.asyncio.create_async_engine(self._url(), **self.options)
        self.tx = self.connect()
        if isinstance(self.tx, sqlalchemy.ext.asyncio.AsyncConnection):
            await self.tx.start()

    async def sql(self, sql: str) -> list[tuple[Any, ...]]:
        result = await self.tx.execute(_text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    async def commit(self) -> None:
        await self.tx.commit()

    async def rollback(self) -> None:
        await self.tx.rollback()

    async def close(self) -> None:
        await self.tx.close()
        await self.engine.dispose()


class AlchemyAsyncSession(AlchemyAsyncConnection):
    def connect(self) -> Any:
        return sqlalchemy.ext.asyncio.AsyncSession(self.engine)


class AlchemyPsycopgAsyncConnection(AlchemyAsyncConnection):
    driver = "psycopg"


class AlchemyPsycopgAsyncSession(AlchemyAsyncSession):
    driver = "psycopg"


PLAIN: list[type[Caller]] = [Asyncpg, AsyncpgPool, Psycopg, PsycopgBlock, PsycopgAsync]
ALCHEMY: list[type[AlchemyConnection]] = [
    AlchemyConnection,
    AlchemySession,
    AlchemyAsyncConnection,
    AlchemyAsyncSession,
    AlchemyPsycopgAsyncConnection,
    AlchemyPsycopgAsyncSession,
]
if importlib.util.find_spec("psycopg2") is not None:
    ALCHEMY += [AlchemyConnection2, AlchemySession2]
CALLERS: list[type[Caller]] = [*PLAIN, *ALCHEMY]


def in_new_loop(work: Any) -> Any:
    """Run a coroutine on an event loop of its own, in a thread of its own."""
    return asyncio.to_thread(asyncio.run, work)
