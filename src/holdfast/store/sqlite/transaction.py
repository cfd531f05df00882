"""A caller's own transaction on SQLite: it holds the write lock, so it is short or it is cut off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.kernel.errors import TransactionEnded, UsageError
from holdfast.kernel.spawn import Reply
from holdfast.store.checks import check_sql
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.served import Work
from holdfast.store.sqlite.writer import End, Session
from holdfast.store.statements import ONE_AT_A_TIME, may_be_several, refuse_what_stays

T = TypeVar("T")


class SqliteTx:
    """`tx.execute`, `tx.fetch`, and what the verbs write through `tx=`: all of it commits together, or none."""

    def __init__(
        self, begin: Callable[[], Awaitable[Session]], path: str, hint: Callable[[set[str]], None]
    ) -> None:
        self._begin, self._hint = begin, hint
        self.news: set[str] = set()  # queues in which it has stored jobs
        self.path = path
        self._session: Session | None = None

    async def __aenter__(self) -> Self:
        if self._session is not None:
            raise UsageError("A transaction is entered once. Ask for another with hf.transaction().")
        self._session = await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.owner = None
        reply: Reply[None] = Reply()
        self._put(End(reply, commit=kind is None), reply)
        if kind is None:
            await reply
            if self.news:
                self._hint(self.news)
        else:
            reply.forget()

    async def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement with `$1`, `$2` …; returns how many rows it changed."""
        _check(sql)
        return await self.run(lambda db: _execute(db, sql, params))

    async def fetch(self, sql: str, /, *params: Any) -> list[Row]:
        _check(sql)
        return await self.run(lambda db: _rows(db, sql, params))

    async def run(self, call: Callable[[Db], T]) -> T:
        """Do one of the store's verbs in this transaction."""
        reply: Reply[T] = Reply()
        self._put(Work(call, reply), reply)
        return await reply

    def _put(self, item: Work[Any] | End, reply: Reply[Any]) -> None:
        if self._session is None:
            raise UsageError("The transaction has not begun. Use it as `async with hf.transaction() as tx`.")
        self._session.box.put(item)
        # The thread sets `ended` before it looks into the box for the last time: one of us answers. When it is this
        # very item that has ended the transaction, the thread answers, or a commit would be told as a failure.
        if self._session.ended is not None and self._session.answering is not item:
            reply.fill(TransactionEnded(self._session.ended))


def _execute(db: Db, sql: str, params: tuple[Any, ...]) -> int:
    before = db.connection.total_changes()
    _rows(db, sql, params)
    # changes() leaves out what triggers wrote, and stays as it was when a statement writes nothing.
    return db.connection.changes() if db.connection.total_changes() != before else 0


def _check(sql: str) -> None:
    check_sql(sql)
    refuse_what_stays(sql)


def _rows(db: Db, sql: str, params: tuple[Any, ...]) -> list[Row]:
    cursor = db.connection.cursor()
    if may_be_several(sql):
        cursor.exec_trace = _only_one()
    rows: list[Row] = cursor.execute(sql, _named(params)).fetchall()
    return rows


def _only_one() -> Callable[..., bool]:
    """Refuses the second statement of one text: a COMMIT could be hidden there."""
    seen: list[str] = []

    def before_each(_: object, sql: str, __: object) -> bool:
        if seen:
            raise UsageError(ONE_AT_A_TIME)
        seen.append(sql)
        return True

    return before_each


def _named(params: tuple[Any, ...]) -> dict[str, Any]:
    """SQLite takes `$1` for a parameter called `1`."""
    return {str(place): value for place, value in enumerate(params, 1)}
