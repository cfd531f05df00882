"""Holdfast: the one object that wires everything. It does no I/O until it is entered."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

from holdfast.kernel.errors import UsageError
from holdfast.runtime.config import Location, locate
from holdfast.store.ports import Store, Tx
from holdfast.store.records import JobRecord


class Holdfast:
    """Work that must not be lost and must not be done twice.

    `Holdfast()` uses HOLDFAST_URL, else DATABASE_URL, else `sqlite:///holdfast.db`. Enter it with `async with`:
    that opens the store, and leaving closes it. A SQLite file brings its tables up to date by itself; on PostgreSQL
    that is done by `migrate`, once for each version.
    """

    def __init__(self, url: str | None = None) -> None:
        self.location = locate(url)
        self.store: Store = open_store(self.location)
        self.jobs = JobsView(self.store)
        self._entered = False

    async def __aenter__(self) -> Self:
        if self._entered:
            raise UsageError("This Holdfast is open already. Enter it once; tasks and requests share it.")
        await self.store.open()
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered = False
        await self.store.close()

    async def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the names of the migrations that were applied."""
        return await self.store.migrate()

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of the store's database: the block's end commits, an exception rolls back."""
        return self.store.transaction()

    def __repr__(self) -> str:
        return f"Holdfast({self.location!r})"


class JobsView:
    """Look at jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, job_id: str) -> JobRecord | None:
        """The job as it is stored, or None."""
        return await self._store.jobs.get(job_id)


def open_store(location: Location) -> Store:
    """The store for a location; the driver is imported only when it is needed."""
    if location.kind == "sqlite":
        from holdfast.store.sqlite.store import SqliteStore  # noqa: PLC0415

        return SqliteStore(location.address)
    try:
        from holdfast.store.postgres.store import PostgresStore  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("PostgreSQL needs its driver: install holdfast[postgres].") from error
    return PostgresStore(location.address)
