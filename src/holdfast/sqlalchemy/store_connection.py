"""A connection over the store's own: it reads beside the writer, and writes in a transaction of the writer's queue."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import apsw

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import StoreError, WrongConnection
from holdfast.kernel.loops import new_lock
from holdfast.kernel.spawn import Reply, ThreadReply
from holdfast.kernel.telemetry import note
from holdfast.sqlalchemy.dbapi import errors, texts
from holdfast.sqlalchemy.dbapi.connection import Connection
from holdfast.sqlalchemy.dbapi.functions import add_functions
from holdfast.store.sqlite.carriers import Carrier
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.served import Work as Served
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.store.sqlite.writer import End
from holdfast.store.standing import goes_back

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]
LONG = 1.0  # seconds of holding the lock, of which a note tells: others wait
_SHOWN = 200  # characters of a statement
_HOW = "Roll it back. A statement that may fail belongs into `begin_nested()`; catch its error outside of that block."


class Interruptible(Generic[T]):
    """Work for a thread with a connection, that can be stopped while it is being done, and not a moment later."""

    def __init__(self, work: Work[T]) -> None:
        self._work = work
        self._lock = new_lock()
        self._at: apsw.Connection | None = None
        self._unwanted = False

    def __call__(self, connection: apsw.Connection) -> T:
        with self._lock:
            if self._unwanted:
                raise errors.OperationalError("interrupted")
            self._at = connection
        try:
            return self._work(connection)
        finally:
            with self._lock:  # from now on the connection does something for others
                self._at = None

    def interrupt(self) -> None:
        with self._lock:
            self._unwanted = True
            if self._at is not None:
                self._at.interrupt()


class StoreTx(SqliteTx):
    """The transaction of a session: statements of SQLAlchemy, and the store's verbs by `tx=session`."""

    def __init__(self, store: SqliteStore, reply: type[Reply[Any]]) -> None:
        super().__init__(store.open_session, store.path, store.wakeups.hint)
        self.store, self.reply = store, reply

    async def begin_with(self, work: Work[T]) -> Reply[T]:
        """Begin, and do this first: one journey to the writer's thread, not two. Its answer is still awaited."""
        session = self.store.ask_session(self.reply)
        session.standing.how = _HOW

        def run(db: Db) -> T:
            with session.standing.failing(Exception):
                return within(db, work)

        reply: Reply[T] = self.reply()
        reply.forget()  # when it never begins
        session.box.put(Served(run, reply))
        self._session = await self.store.open_session(self.reply, session)
        return reply

    async def do(self, work: Work[T], sql: str) -> T:
        """After one that fails nothing more is done, until a savepoint before it is rolled back to: as on PostgreSQL."""
        standing = self.standing
        standing.how = _HOW

        def run(db: Db) -> T:
            standing.check(sql)
            with standing.failing(Exception):
                answer = within(db, work)
            if goes_back(sql):
                standing.recover()
            return answer

        return await self._answer(run)

    def abandon(self) -> None:
        """Roll back, from anywhere; nobody waits for it."""
        if (session := self._session) is not None:
            session.owner = None
            session.box.put(End(ThreadReply(), commit=False))


def within(db: Db, work: Work[T]) -> T:
    add_functions(db.connection)
    return work(db.connection)


class StoreConnection(Connection, Carrier):
    reply: type[Reply[Any]]

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self._tx: StoreTx | None = None
        self._since, self._first = 0.0, ""  # when it took the lock, and by which statement

    @property
    def in_transaction(self) -> bool:
        return self._tx is not None

    @property
    def lent(self) -> SqliteTx | None:
        return self._tx

    async def lend(self) -> SqliteTx:
        if self.autocommits:
            raise WrongConnection(
                "This connection of SQLAlchemy has the isolation level AUTOCOMMIT: what is stored now would be committed "
                "alone. Use a connection or session with another isolation level."
            )
        return self._tx or await self._begin()

    async def _begin(self) -> StoreTx:
        tx = StoreTx(self.store, self.reply)
        await tx.__aenter__()
        self._hold(tx, "a verb of Holdfast with tx=")
        return tx

    async def _begin_with(self, work: Work[T], sql: str) -> T:
        tx = StoreTx(self.store, self.reply)
        reply = await tx.begin_with(work)
        self._hold(tx, sql)
        return await reply

    def _hold(self, tx: StoreTx, first: str) -> None:
        self._tx, self._since, self._first = tx, monotonic(), first

    def _let_go(self) -> StoreTx | None:
        tx, self._tx = self._tx, None
        if tx is not None and (held := monotonic() - self._since) > LONG:
            note("session.held_lock", seconds=round(held, 2), first=self._first[:_SHOWN])
        return tx

    def check_statement(self, sql: str) -> None:
        texts.refuse_end(sql)
        texts.refuse_what_stays(sql)

    async def _commit(self) -> None:
        self.end_streams()
        tx = self._let_go()  # at once: who is cancelled meanwhile has nothing to roll back any more
        if tx is None:
            return
        try:
            await tx.__aexit__(None, None, None)
        except StoreError as error:
            if isinstance(error.__cause__, apsw.ConstraintError):  # one that is checked only at COMMIT
                raise errors.translated(error.__cause__) from error
            raise

    def rollback(self) -> None:
        self.end_streams()
        if (tx := self._let_go()) is not None:
            tx.abandon()

    @abstractmethod
    def end_streams(self) -> None:
        """From anywhere, without waiting. Whoever gets this connection next would read what the oldest stream has seen."""

    @abstractmethod
    def shut(self) -> None:
        """From anywhere, without waiting: it will not be used any more."""


def alone(work: Work[T]) -> Callable[[Db], T]:
    """For the writer: in a commit that it may share with others."""
    return partial(_alone, work=work)


def _alone(db: Db, work: Work[T]) -> T:
    return within(db, work)
