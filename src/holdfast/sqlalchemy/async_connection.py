"""The connection of an async engine: each statement is awaited in SQLAlchemy's greenlet, and stopped when that is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import apsw

from holdfast.kernel.spawn import Reply, ThreadReply
from holdfast.sqlalchemy.dbapi import errors
from holdfast.sqlalchemy.dbapi.running import Description, Outcome, Request, Row, Writes
from holdfast.sqlalchemy.reading import Open, SessionReader
from holdfast.sqlalchemy.store_connection import Interruptible, StoreConnection, Work, alone
from holdfast.sqlalchemy.waiting import wait
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.store import SqliteStore

T = TypeVar("T")


class AsyncConnection(StoreConnection):
    reply = Reply

    def __init__(self, store: SqliteStore, reader: SessionReader) -> None:
        super().__init__(store)
        self._reader = reader
        self._is_busy = self._streams = False

    @classmethod
    async def open(cls, store: SqliteStore) -> AsyncConnection:
        reader = SessionReader(store.new_reader)
        store.check()
        await reader.start()
        return cls(store, reader)

    def perform(self, request: Request, *, takes_lock: bool) -> Outcome:
        if self._is_busy:
            raise errors.InterfaceError(
                "Another task is using this connection. A session or connection is for one task at a time."
            )
        self._is_busy = True
        try:
            return super().perform(request, takes_lock=takes_lock)
        finally:
            self._is_busy = False

    def begin(self) -> None:
        wait(self._begin())

    def begin_with(self, work: Work[T], sql: str) -> T:
        return self._wait(lambda inner: self._begin_with(inner, sql), work)

    def read(self, work: Work[T]) -> T:
        return self._wait(lambda inner: _read(self._reader, inner), work)

    def write(self, work: Work[T], sql: str = "") -> T:
        assert self._tx is not None
        tx = self._tx
        return self._wait(lambda inner: tx.do(inner, sql), work)

    def write_alone(self, work: Work[T]) -> T:
        return self._wait(lambda inner: self.store.write(alone(inner)), work)

    def _wait(self, send: Callable[[Work[T]], Coroutine[Any, Any, T]], work: Work[T]) -> T:
        inner = Interruptible(work)
        try:
            return wait(send(inner))
        except asyncio.CancelledError:
            inner.interrupt()
            raise

    def commit(self) -> None:
        wait(self._commit())

    def close(self) -> None:
        self.rollback()
        wait(self._reader.stop())

    def terminate(self) -> None:
        """Also where no loop runs: SQLAlchemy calls it for what the collector has found."""
        self.rollback()
        self.shut()

    def shut(self) -> None:
        self._reader.dismiss(ThreadReply)

    def stream(self, request: Request) -> AsyncStream | None:
        if self.in_transaction or request.many:
            return None  # what the transaction has written is not seen from outside
        self.check_statement(request.sql)
        try:
            opened = self.read(partial(self._reader.begin_stream, request=request))
        except Writes:
            return None
        self._streams = True
        return AsyncStream(self, self._reader, opened)

    def end_streams(self) -> None:
        if self._streams:
            self._streams = False
            self._reader.tell(lambda _: self._reader.end_streams())


class AsyncStream:
    def __init__(self, connection: AsyncConnection, reader: SessionReader, opened: Open) -> None:
        self._connection, self._reader, self._opened = connection, reader, opened
        self.description: Description | None = opened.description

    def fetch(self, size: int | None) -> list[Row]:
        opened = self._opened
        rows = self._connection.read(lambda _: opened.fetch(size))
        if size is None or len(rows) < size:
            self.close()
        return rows

    def close(self) -> None:
        """Without waiting: the collector may call it."""
        self._reader.tell(partial(self._end, opened=self._opened))

    def _end(self, _: Db, opened: Open) -> None:
        self._reader.end_stream(opened)


async def _read(reader: SessionReader, work: Callable[[apsw.Connection], T]) -> T:
    return await reader.run(lambda db: work(db.connection))
