"""A caller's own transaction on SQLite: it holds the write lock, so it is short or it is cut off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import apsw

from holdfast.kernel.awaits import Awaits, must_await, of_tx
from holdfast.kernel.errors import NotOpen, StatementError, TransactionEnded, UsageError
from holdfast.kernel.spawn import Reply
from holdfast.store.checks import check_rows, check_sql
from holdfast.store.forked import FORKED
from holdfast.store.sqlite.arrays import with_arrays
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.meanings import NO_MATCH, meaning
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.served import Work
from holdfast.store.sqlite.writer import End, Session
from holdfast.store.standing import Savepoint, Standing, goes_back
from holdfast.store.statements import ONE_AT_A_TIME, refuse_end, refuse_what_stays

T = TypeVar("T")
_PART = 1_000  # rows of many that are done in one go: the thread serves nobody else meanwhile


class Begin(Protocol):
    async def __call__(
        self, reply: type[Reply[Any]], *, first: Work[Any] | None = None
    ) -> Session: ...  # that has begun


class SqliteTx:
    """`tx.execute`, `tx.fetch`, and what the verbs write through `tx=`: all of it commits together, or none."""

    reply: type[Reply[Any]] = Reply

    def __init__(
        self,
        begin: Begin,
        path: str,
        hint: Callable[[set[str]], None],
    ) -> None:
        self._begin, self._hint = begin, hint
        self.news: set[str] = set()  # queues in which it has stored jobs
        self.path = path
        self.awaits = Awaits()  # what was asked for in it
        self._session: Session | None = None
        self._last: Callable[[Db], None] | None = None

    async def __aenter__(self) -> Self:
        self._check_new()
        self._session = await self._begin(self.reply)
        return self

    async def enter_with(self, call: Callable[[Db], T]) -> T:
        """Enter it and do this in it, asked for in one breath: nobody holds the write lock while the answer to the first is on its way."""
        self._check_new()
        reply: Reply[T] = self.reply()
        self._session = await self._begin(self.reply, first=Work(call, reply))
        try:
            return await reply
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    def do_last(self, call: Callable[[Db], None]) -> None:
        """With the commit, in one breath. When it raises, all is rolled back, and the block's end says so."""
        self._last = call

    def _check_new(self) -> None:
        if self._session is not None:
            raise UsageError("A transaction is entered once. Ask for another with hf.transaction().")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.owner = None
        reply: Reply[None] = self.reply()
        forgotten = self.awaits.at_end(well=kind is None)
        commits = kind is None and forgotten is None
        self._put(End(reply, commit=commits, last=self._last), reply)
        if commits:
            await reply
            if self.news:
                self._hint(self.news)
        else:
            reply.forget()
        if forgotten is not None:
            raise forgotten

    @must_await("tx.execute", to=of_tx)
    async def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement with `$1`, `$2` …; returns how many rows it changed."""
        return await self._own_statement(_execute, sql, params)

    @must_await("tx.execute_many", to=of_tx)
    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each of these rows of values, in their order."""
        many = check_rows(rows)
        for start in range(0, max(1, len(many)), _PART):
            await self._own_statement(_many, sql, tuple(many[start : start + _PART]))

    @must_await("tx.fetch", to=of_tx)
    async def fetch(self, sql: str, /, *params: Any) -> list[Row]:
        return await self._own_statement(rows_of, sql, params)

    def savepoint(self) -> Savepoint:
        """`async with tx.savepoint():` an exception takes back what the block has done, and the transaction goes on."""
        return Savepoint(self)

    @property
    def standing(self) -> Standing:
        return self._begun().standing

    async def run(self, call: Callable[[Db], T]) -> T:
        """Do one of the store's verbs in this transaction."""
        return await self._run(call, "")

    async def _own_statement(
        self, call: Callable[[Db, str, tuple[Any, ...]], T], sql: str, params: tuple[Any, ...]
    ) -> T:
        check_sql(sql)
        refuse_end(sql)
        refuse_what_stays(sql)
        return await self._run(lambda db: call(db, sql, params), sql)

    async def _run(self, call: Callable[[Db], T], sql: str) -> T:
        """On the thread, where what was asked for before has failed or not."""
        standing = self.standing

        def run(db: Db) -> T:
            standing.check(sql)
            with standing.failing(apsw.Error if not sql else Exception):
                answer = call(db)
            if goes_back(sql):
                standing.recover()
            return answer

        return await self._answer(run)

    async def _answer(self, call: Callable[[Db], T]) -> T:
        reply: Reply[T] = self.reply()
        self._put(Work(call, reply), reply)
        with self.standing.failing(asyncio.CancelledError):
            return await reply

    async def save(self, name: str) -> None:
        await self._run(lambda db: db.execute_all(f"SAVEPOINT {name}"), "")

    async def release(self, name: str) -> None:
        await self._run(lambda db: db.execute_all(f"RELEASE {name}"), "")

    async def undo(self, name: str, memo: object) -> None:  # noqa: ARG002
        """Also after a failure, which is over then."""

        def run(db: Db) -> None:
            db.execute_all(f"ROLLBACK TO {name}; RELEASE {name}")
            self.standing.recover()

        await self._answer(run)

    def _begun(self) -> Session:
        if self._session is None:
            raise UsageError("The transaction has not begun. Use it as `async with hf.transaction() as tx`.")
        return self._session

    def _put(self, item: Work[Any] | End, reply: Reply[Any]) -> None:
        session = self._begun()
        if session.process != os.getpid():
            raise NotOpen(FORKED)
        session.box.put(item)
        # The thread sets `ended` before it looks into the box for the last time: one of us answers. When it is this
        # very item that has ended the transaction, the thread answers, or a commit would be told as a failure.
        if session.ended is not None and session.answering is not item:
            reply.fill(TransactionEnded(session.ended))


def _execute(db: Db, sql: str, params: tuple[Any, ...]) -> int:
    before = db.connection.total_changes()
    rows_of(db, sql, params)
    # changes() leaves out what triggers wrote, and stays as it was when a statement writes nothing.
    return db.connection.changes() if db.connection.total_changes() != before else 0


def _many(db: Db, sql: str, rows: tuple[tuple[Any, ...], ...]) -> None:
    for row in rows:
        rows_of(db, sql, row)


def rows_of(db: Db, sql: str, params: tuple[Any, ...]) -> list[Row]:
    sql, params = with_arrays(sql, params)
    cursor, named = db.connection.cursor(), _named(params)
    cursor.exec_trace = _only_one(frozenset(named))
    try:
        rows: list[Row] = cursor.execute(sql, named).fetchall()
    except Exception as error:
        if (meant := meaning(error, db, sql, named)) is error:
            raise
        raise meant from error
    return rows


def _only_one(expected: frozenset[str]) -> Callable[..., bool]:
    """Refuses the second statement of one text: a COMMIT could be hidden there; and values that nothing asks for."""
    seen: list[str] = []

    def before_each(cursor: apsw.Cursor, sql: str, _: object) -> bool:
        if seen:
            raise UsageError(ONE_AT_A_TIME)
        seen.append(sql)
        if frozenset(cursor.bindings_names) != expected:
            raise StatementError(NO_MATCH)
        return True

    return before_each


def _named(params: tuple[Any, ...]) -> dict[str, Any]:
    """SQLite takes `$1` for a parameter called `1`."""
    return {str(place): value for place, value in enumerate(params, 1)}
