"""The engines of one Holdfast object: made when they are asked for, and at rest while the store is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.guards.ways import refuse_on_loop
from holdfast.kernel.errors import UsageError
from holdfast.kernel.forks import keep, new_lock, tell_child
from holdfast.store.ports import Store

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
    from sqlalchemy.orm import Session


class Maker(Protocol):
    """Makes engines for one kind of store."""

    def make(self) -> AsyncEngine: ...
    def make_blocking(self) -> Engine: ...
    def shut(self) -> None:
        """End what engines have given out and not got back."""

    def forked(self) -> None:
        """In a child of the process: leave what engines have given out to the parent."""


class Engines:
    """SQLAlchemy is imported when one of these is called, and not before."""

    def __init__(self, kind: str, address: str, store: Store, opened: Callable[[], None]) -> None:
        self.kind, self.address, self._store, self._opened = kind, address, store, opened
        self._lock = new_lock()
        self._maker: Maker | None = None
        self._engine: AsyncEngine | None = None
        self._blocking: Engine | None = None
        tell_child(self)

    def engine(self) -> AsyncEngine:
        with self._lock:
            if self._engine is None:
                self._engine = self._made().make()
            return self._engine

    def blocking(self) -> Engine:
        with self._lock:
            if self._blocking is None:
                self._blocking = self._made().make_blocking()
                _keep_from_loops(self._blocking)
            return self._blocking

    def session(self, **options: Any) -> AsyncSession:
        engine = self.engine()
        from holdfast.sqlalchemy.session import OwnSession  # noqa: PLC0415

        return OwnSession(engine, **{"expire_on_commit": False, **options})

    def blocking_session(self, **options: Any) -> Session:
        engine = self.blocking()
        from sqlalchemy.orm import Session  # noqa: PLC0415

        return Session(engine, **{"expire_on_commit": False, **options})

    def _made(self) -> Maker:
        if self._maker is None:
            self._maker = _maker(self.kind, self.address, self._store, self._opened)
        return self._maker

    async def close(self) -> None:
        """Before the store closes. They may be used again when it is open again."""
        if self._engine is not None:
            await self._engine.dispose()
        self.close_blocking()

    def close_blocking(self) -> None:
        if self._blocking is not None:
            self._blocking.dispose()
        if self._maker is not None:
            self._maker.shut()

    def forked(self) -> None:
        """This is a child of the process: connections are the parent's, and are left as they are."""
        if self._maker is not None:
            self._maker.forked()
        for engine in (self._engine and self._engine.sync_engine, self._blocking):
            if engine is not None:
                keep([engine.pool])  # or the collector would close connections that the parent uses
                engine.dispose(close=False)


def _keep_from_loops(engine: Engine) -> None:
    """A statement on a loop's thread would wait for what another task of that loop has to do: for the write lock, on SQLite."""
    from sqlalchemy import event  # noqa: PLC0415

    @event.listens_for(engine, "checkout")
    def check(*_: object) -> None:
        refuse_on_loop("A sync session or engine", "async with hf.session()")


def _maker(kind: str, address: str, store: Store, opened: Callable[[], None]) -> Maker:
    try:
        import sqlalchemy  # noqa: F401, PLC0415  an extra
        from sqlalchemy.ext import asyncio  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError("SQLAlchemy is not installed here: install holdfast[sqlalchemy].") from error
    if kind == "sqlite":
        from holdfast.sqlalchemy.sqlite import SqliteEngines  # noqa: PLC0415

        return SqliteEngines(store, opened)
    from holdfast.sqlalchemy.postgres import PostgresEngines  # noqa: PLC0415

    return PostgresEngines(address, store)
