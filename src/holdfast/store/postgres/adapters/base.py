"""What every adopted transaction can do; a driver's adapter adds how its connection runs one statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar, cast

from holdfast.kernel.errors import UsageError
from holdfast.store.checks import check_rows
from holdfast.store.postgres.adapters.failures import explained
from holdfast.store.postgres.adapters.identity import belongs, known, remember
from holdfast.store.statements import Procedure

T = TypeVar("T")
_numbers = count(1)  # of savepoints

NEEDS_AWAIT = (
    "This connection is async and its transaction belongs to an event loop; sync code cannot use it. "
    "Await the async call there, or pass a sync connection or session."
)


class Adopted(ABC):
    """The caller's transaction. Nothing here begins, commits, rolls back or closes anything.

    Text, numbers, booleans, times, and arrays of them come back alike from every driver; cast JSON and UUIDs to text.
    """

    @abstractmethod
    async def check(self, store_id: str) -> None:
        """Raise WrongConnection unless it is in a transaction of this store's database."""

    @abstractmethod
    def check_sync(self, store_id: str) -> None: ...

    @abstractmethod
    async def run(self, procedure: Procedure[T]) -> T:
        """Execute what the procedure yields, send it the rows, and return its answer."""

    @abstractmethod
    def run_sync(self, procedure: Procedure[T]) -> T: ...

    @abstractmethod
    async def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement; returns how many rows it changed."""

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each of these rows of values, in their order."""
        for row in check_rows(rows):
            await self.execute(sql, *row)

    @abstractmethod
    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]: ...

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None, None]:
        """An exception takes back what the block has done, and the caller's transaction goes on."""
        name = f"holdfast_joined_{next(_numbers)}"
        await self.execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            await self.execute(f"ROLLBACK TO SAVEPOINT {name}")
            await self.execute(f"RELEASE SAVEPOINT {name}")
            raise
        await self.execute(f"RELEASE SAVEPOINT {name}")


class SyncAdopted(Adopted):
    """A sync connection: it runs on the thread that calls, also under `await`."""

    @abstractmethod
    def ready(self) -> object:
        """Raise WrongConnection unless a statement would run in a transaction; returns the driver's connection."""

    @abstractmethod
    def rows(self, sql: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def count(self, sql: str, params: tuple[Any, ...]) -> int: ...

    def check_sync(self, store_id: str) -> None:
        connection = self.ready()
        if not known(connection, store_id):
            self.run_sync(belongs(store_id))
            remember(connection, store_id)

    def run_sync(self, procedure: Procedure[T]) -> T:
        try:
            statement = next(procedure)
            while True:
                with explained():
                    rows = self.rows(statement.sql, statement.params)
                statement = procedure.send(rows)
        except StopIteration as done:
            return cast(T, done.value)
        finally:
            procedure.close()

    async def check(self, store_id: str) -> None:
        self.check_sync(store_id)

    async def run(self, procedure: Procedure[T]) -> T:
        return self.run_sync(procedure)

    async def execute(self, sql: str, /, *params: Any) -> int:
        return self.count(sql, params)

    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        return self.rows(sql, params)


class AsyncAdopted(Adopted):
    """An async connection: it runs on the event loop it belongs to."""

    @abstractmethod
    def ready(self) -> object:
        """Raise WrongConnection unless a statement would run in a transaction; returns the driver's connection."""

    @abstractmethod
    async def rows(self, sql: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    async def count(self, sql: str, params: tuple[Any, ...]) -> int: ...

    async def check(self, store_id: str) -> None:
        connection = self.ready()
        if not known(connection, store_id):
            await self.run(belongs(store_id))
            remember(connection, store_id)

    async def run(self, procedure: Procedure[T]) -> T:
        try:
            statement = next(procedure)
            while True:
                with explained():
                    rows = await self.rows(statement.sql, statement.params)
                statement = procedure.send(rows)
        except StopIteration as done:
            return cast(T, done.value)
        finally:
            procedure.close()

    async def execute(self, sql: str, /, *params: Any) -> int:
        return await self.count(sql, params)

    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        return await self.rows(sql, params)

    def check_sync(self, store_id: str) -> None:  # noqa: ARG002
        raise UsageError(NEEDS_AWAIT)

    def run_sync(self, procedure: Procedure[T]) -> T:
        procedure.close()
        raise UsageError(NEEDS_AWAIT)
