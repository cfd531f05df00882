"""Snapshots: transactions that only read, each on a connection of its own, all on one thread beside reader and writer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar, cast

import apsw

from holdfast.kernel.awaits import Awaits
from holdfast.kernel.clock import monotonic, recover
from holdfast.kernel.errors import (
    NotOpen,
    StatementError,
    StoreBusy,
    StoreReadOnly,
    TransactionEnded,
    UsageError,
)
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import Reply, deliver
from holdfast.kernel.world import Body, Take
from holdfast.store.checks import check_sql
from holdfast.store.forked import FORKED
from holdfast.store.reading import FAILED, LIMIT, NEW, ONLY_READS, ReadTx
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.served import CLOSED, LOCK_WAIT, Served, Stop, Work, explained
from holdfast.store.sqlite.transaction import rows_of
from holdfast.store.standing import Standing, goes_back
from holdfast.store.statements import refuse_end, refuse_what_stays

T = TypeVar("T")
MOST = 100  # open at a time
_IDLE = 4  # connections that are kept for the next ones
_CUT = (
    f"The snapshot was cut off after {LIMIT:g} seconds, since it keeps the file from being tidied. {FAILED}"
)


class View:
    """One open snapshot, on the thread."""

    def __init__(self) -> None:
        self.db: Db | None = None
        self.until = 0.0
        self.ended: str | None = None
        self.standing = Standing()
        self.standing.how = FAILED


class _Nothing:
    def close(self) -> None: ...


class Snapshots(Served):
    """The thread. It is started with the first snapshot, and ends with the store."""

    name = "holdfast-snapshots"

    def __init__(self, opened: Callable[[], Db]) -> None:
        super().__init__(opened)
        self._views: set[View] = set()
        self._idle: list[Db] = []
        self._works: list[Work[Any]] = []

    def _open(self) -> None:
        """Each snapshot has a connection of its own."""
        self._db = cast("Db", _Nothing())

    async def asked(self, call: Callable[[], T]) -> T:
        """Also while the thread is about to start: on whichever loop that was begun."""
        if not self.is_of_this_process:
            raise NotOpen(FORKED)
        reply: Reply[T] = Reply()
        if not self._hand_over(Work(lambda _: call(), reply)):
            raise NotOpen(CLOSED)
        return await reply

    def tell(self, call: Callable[[], None]) -> None:
        """Nobody waits for it; when the thread has ended, there is nothing to do."""
        reply: Reply[None] = Reply()
        if self.is_of_this_process:
            self._hand_over(Work(lambda _: call(), reply))
        reply.forget()

    def _body(self) -> Body:
        try:
            while not self._stops:
                items = yield Take(self._inbox, self._patience())
                self._stops += [item for item in items if isinstance(item, Stop)]
                self._works += [item for item in items if isinstance(item, Work)]
                while self._works:
                    work = self._works[0]
                    deliver([(work.reply, self._answer(work))])
                    del self._works[0]
                self._cut_off()
        finally:
            for view in [*self._views]:
                self.leave(view, "The store was closed.")
            for db in self._idle:
                db.close()

    def _unanswered(self) -> list[Reply[Any]]:
        return [work.reply for work in self._works]

    def _answer(self, work: Work[Any]) -> Any:
        try:
            return work.call(self._db)
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            return explained(error)

    def _patience(self) -> float | None:
        if not self._views:
            return None
        return max(0.0, min(view.until for view in self._views) - monotonic())

    def _cut_off(self) -> None:
        for view in [view for view in self._views if view.until <= monotonic()]:
            self.leave(view, _CUT)

    # --- on the thread ---

    def enter(self, view: View) -> None:
        """The first read takes the snapshot: so the moment is that of the block's beginning."""
        if view.ended is not None:
            return
        if len(self._views) >= MOST:
            raise StoreBusy(f"{MOST} snapshots of the SQLite file are open here. Try again.")
        db = self._connected()
        try:
            db.begin("DEFERRED")
            db.value("SELECT value FROM holdfast_counter WHERE name = 'position'")
        except BaseException:
            db.close()
            raise
        view.db, view.until = db, monotonic() + LIMIT
        self._views.add(view)

    def _connected(self) -> Db:
        while self._idle:
            if not (db := self._idle.pop()).rests:  # closed for a fork
                return db
        return self._opened()

    def leave(self, view: View, why: str) -> None:
        view.ended = view.ended or why
        self._views.discard(view)
        db, view.db = view.db, None
        if db is None:
            return
        with suppress(apsw.Error):
            db.rollback()
        if len(self._idle) < _IDLE and not self._stops:
            self._idle.append(db)
        else:
            db.close()


class Snapshot:
    """`async with hf.snapshot() as tx:`"""

    def __init__(self, serving: Callable[[], Snapshots]) -> None:
        self._serving = serving
        self._view = View()
        self._thread: Snapshots | None = None
        self.awaits = Awaits()

    async def __aenter__(self) -> ReadTx:
        if self._thread is not None:
            raise UsageError(NEW)
        self._thread = self._serving()
        try:
            await self._begin(self._thread)
        except BaseException:
            self._end()
            raise
        return ReadTx(self, self.awaits)

    async def _begin(self, thread: Snapshots) -> None:
        """Another process may tidy the file at this moment."""
        waited = 0.0
        while True:
            try:
                await thread.asked(lambda: thread.enter(self._view))
            except StoreBusy:
                if waited > LOCK_WAIT:
                    raise
                pause = jittered(0.01, 0.5)
                await recover(pause)
                waited += pause
            else:
                return

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        forgotten = self.awaits.at_end(well=kind is None)
        self._end()
        if forgotten is not None:
            raise forgotten

    def _end(self) -> None:
        """Nobody waits for it."""
        assert self._thread is not None
        thread = self._thread
        thread.tell(lambda: thread.leave(self._view, "The snapshot has ended."))

    async def fetch(self, sql: str, /, *params: Any) -> list[Row]:
        check_sql(sql)
        refuse_end(sql)
        refuse_what_stays(sql)
        assert self._thread is not None
        return await self._thread.asked(lambda: _fetch(self._view, sql, params))


def _fetch(view: View, sql: str, params: tuple[Any, ...]) -> list[Row]:
    if view.ended is not None or view.db is None:
        raise TransactionEnded(view.ended or "The snapshot has not begun.")
    view.standing.check(sql)
    with view.standing.failing(Exception):
        try:
            rows = rows_of(view.db, sql, params)
        except StoreReadOnly as error:
            raise StatementError(ONLY_READS) from error
    if goes_back(sql):
        view.standing.recover()
    return rows
