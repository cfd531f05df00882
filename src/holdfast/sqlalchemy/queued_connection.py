"""The connection of a sync engine while the store is open in this process: it reads here, and writes through the writer's queue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import apsw

from holdfast.kernel.forks import Turn
from holdfast.kernel.spawn import ThreadReply
from holdfast.kernel.threads import sheltered
from holdfast.kernel.waits import at_once
from holdfast.sqlalchemy.dbapi import errors
from holdfast.sqlalchemy.dbapi.functions import add_functions
from holdfast.sqlalchemy.dbapi.running import Description, Request, Row, Writes, stream
from holdfast.sqlalchemy.reading import ENDED, Open
from holdfast.sqlalchemy.store_connection import Interruptible, StoreConnection, Work, alone
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.store import SqliteStore

T = TypeVar("T")
_PATIENCE = 5_000  # milliseconds: another process may repair the log
_NEVER = "This waits for no loop."


class QueuedConnection(StoreConnection):
    reply = ThreadReply

    def __init__(self, store: SqliteStore, opened: Callable[[], None]) -> None:
        """`opened` opens the store when it is not."""
        super().__init__(store)
        self._opened = opened
        opened()
        self._db = self._new_reader()
        self._turn = Turn()
        self._streams: set[Open] = set()
        self._is_closed = False

    def _new_reader(self) -> Db:
        db = self.store.new_reader()
        db.connection.set_busy_timeout(_PATIENCE)
        add_functions(db.connection)
        return db

    def begin(self) -> None:
        self._opened()
        sheltered(partial(at_once, self._begin(), _NEVER))

    def begin_with(self, work: Work[T], sql: str) -> T:
        self._opened()
        return self._interruptible(work, lambda inner: at_once(self._begin_with(inner, sql), _NEVER))

    def read(self, work: Work[T]) -> T:
        self._check()
        return self._interruptible(work, self._read_here)

    def _read_here(self, work: Work[T]) -> T:
        with self._turn.lock:  # no fork in the middle of it
            if self._db.rests:  # one has closed it
                self._db = self._new_reader()
            return work(self._db.connection)

    def write(self, work: Work[T], sql: str = "") -> T:
        assert self._tx is not None
        tx = self._tx
        return self._interruptible(work, lambda inner: at_once(tx.do(inner, sql), _NEVER))

    def write_alone(self, work: Work[T]) -> T:
        self._opened()
        return self._interruptible(work, self._write_alone)

    def _write_alone(self, work: Work[T]) -> T:
        return at_once(self.store.write_from_thread(alone(work)), _NEVER)

    def commit(self) -> None:
        sheltered(partial(at_once, self._commit(), _NEVER))

    def _interruptible(self, work: Work[T], do: Callable[[Work[T]], T]) -> T:
        """A thread that is asked to stop hears of it when the statement has ended, and that ends early."""
        inner = Interruptible(work)
        return sheltered(partial(do, inner), inner.interrupt)

    def _check(self) -> None:
        if self._is_closed:
            raise errors.ProgrammingError("Cannot operate on a closed database.")

    def close(self) -> None:
        self.rollback()
        self.shut()

    def shut(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with self._turn.lock:
                for each in self._streams:
                    each.close()
                self._db.close()

    def stream(self, request: Request) -> QueuedStream | None:
        if self.in_transaction or request.many:
            return None
        self.check_statement(request.sql)
        try:
            opened = self.read(partial(_opened_stream, request=request))
        except Writes:
            return None
        self._streams.add(opened)
        return QueuedStream(self, opened)

    def end_streams(self) -> None:
        with self._turn.lock:
            while self._streams and not self._is_closed:
                self._streams.pop().close(ENDED)

    def end_stream(self, opened: Open) -> None:
        self._streams.discard(opened)
        if not self._is_closed:
            with self._turn.lock:
                opened.close()


class QueuedStream:
    def __init__(self, connection: QueuedConnection, opened: Open) -> None:
        self._connection, self._opened = connection, opened
        self.description: Description | None = opened.description

    def fetch(self, size: int | None) -> list[Row]:
        rows = self._connection.read(lambda _: self._opened.fetch(size))
        if size is None or len(rows) < size:
            self.close()
        return rows

    def close(self) -> None:
        self._connection.end_stream(self._opened)


def _opened_stream(connection: apsw.Connection, request: Request) -> Open:
    return Open(*stream(connection, request))
