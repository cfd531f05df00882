"""Engines over a SQLite store: their connections are the store's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from holdfast.sqlalchemy.async_connection import AsyncConnection
from holdfast.sqlalchemy.dialect_sync import DRIVER
from holdfast.sqlalchemy.queued_connection import QueuedConnection
from holdfast.sqlalchemy.store_connection import StoreConnection
from holdfast.sqlalchemy.waiting import wait

if TYPE_CHECKING:
    from holdfast.store.sqlite.store import SqliteStore


def register() -> None:
    """Let SQLAlchemy know `sqlite+holdfast://`."""
    registry.register(f"sqlite.{DRIVER}", "holdfast.sqlalchemy.dialect_sync", "dialect")
    registry.register(f"sqlite.{DRIVER}_async", "holdfast.sqlalchemy.dialect_async", "dialect")


def url_of_file(path: str, driver: str = DRIVER) -> URL:
    register()
    return URL.create(f"sqlite+{driver}", database=path)


class SqliteEngines:
    def __init__(self, store: Any, opened: Callable[[], None]) -> None:
        self._store: SqliteStore = store
        self._opened = opened
        self._given: WeakSet[StoreConnection] = WeakSet()

    def make(self) -> AsyncEngine:
        return create_async_engine(url_of_file(self._store.path, f"{DRIVER}_async"), creator=self._connect)

    def make_blocking(self) -> Engine:
        return create_engine(url_of_file(self._store.path), creator=self._connect_blocking)

    def _connect(self) -> AsyncConnection:
        connection = wait(AsyncConnection.open(self._store))
        self._given.add(connection)
        return connection

    def _connect_blocking(self) -> QueuedConnection:
        connection = QueuedConnection(self._store, self._open)
        self._given.add(connection)
        return connection

    def _open(self) -> None:
        if not self._store.is_open_here:
            self._opened()

    def shut(self) -> None:
        for each in tuple(self._given):
            each.rollback()
            each.shut()

    def forked(self) -> None:
        """The store has closed its connections before the fork, or has the child refused."""
