"""A transaction on our own connection, and what a caller's own connection must be able to do to stand in for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import asyncpg

from holdfast.kernel.awaits import Awaits, must_await, of_tx
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import TransactionEnded, UsageError
from holdfast.store.checks import check_rows, check_sql
from holdfast.store.postgres.connection import FREE_PLANNING, OUR_PLANNING, RESET, Database, commit, drive
from holdfast.store.postgres.failures import FAILURES, is_fenced, is_lost, is_unsent, translate
from holdfast.store.postgres.meanings import WRONG_VALUES, meaning
from holdfast.store.standing import ROLLED_BACK, Savepoint, Standing, goes_back
from holdfast.store.statements import Procedure, may_be_several, refuse_end

T = TypeVar("T")

# The caller's own statements are planned as anywhere else.
_BEGIN = f"""BEGIN ISOLATION LEVEL READ COMMITTED; {FREE_PLANNING}
    SET LOCAL idle_in_transaction_session_timeout = '60s'"""
_CHANGING = ("INSERT", "UPDATE", "DELETE", "MERGE", "COPY")
_BY_HAND = "was ended by a COMMIT or ROLLBACK in it; leave that to the end of the `async with` block"


class Executor(Protocol):
    """Whatever runs the store's verbs inside a transaction that is already open."""

    async def run(self, procedure: Procedure[T]) -> T: ...


class PostgresTx:
    """`tx.execute`, `tx.fetch`, and what the verbs write through `tx=`: all of it commits together, or none."""

    begins = _BEGIN

    def __init__(self, database: Database, hint: Callable[[set[str]], None]) -> None:
        self.database, self._hint = database, hint
        self.news: set[str] = set()  # queues in which it has stored jobs
        self.awaits = Awaits()  # what was asked for in it
        self._connection: Any = None
        self._owner: object = None
        self._used = False  # by statements of the caller's own
        self._plans_freely = True
        self._fenced = False  # it leads to a server that takes no writes: the next one shall look for another
        self.standing = Standing()
        self._ended: str | None = "has not begun: use it as `async with store.transaction() as tx`"
        self._turn = asyncio.Lock()  # tasks that share it: a connection takes one statement at a time

    async def __aenter__(self) -> Self:
        if self._connection is not None:
            raise UsageError("A transaction is entered once. Ask for another with transaction().")
        self.database.blocks.check_free()
        self._connection = await self.database.begin(self.begins)
        self._ended, self._owner = None, self._enter_block()
        return self

    def _enter_block(self) -> object:
        return self.database.blocks.enter(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.database.blocks.leave(self._owner)
        broken, soiled = True, False
        forgotten = self.awaits.at_end(well=kind is None)
        try:
            ended = await self._last_turn(waits=kind is None)
            if ended is not None:
                if kind is None:
                    raise TransactionEnded(f"The transaction {ended}.")
            elif kind is None and self.standing.failure is not None:
                await self._connection.execute("ROLLBACK")
                broken, soiled = await self._clean()
                broken = broken or self._fenced
                raise self.standing.ended(ROLLED_BACK)
            elif kind is None and forgotten is None:
                crashpoint("transaction.before_commit")
                await self._commit()
                crashpoint("transaction.after_commit")
                if self.news:
                    self._hint(self.news)
                broken, soiled = await self._clean()
            else:
                await self._connection.execute("ROLLBACK")
                broken, soiled = await self._clean()
                broken = broken or self._fenced
        except FAILURES as failure:
            if kind is None:
                raise self._failed(failure) if is_unsent(failure) else meaning(failure) from failure
            # The caller's own error matters more; the server rolls back when the connection is closed.
        finally:
            self.database.pool.release(self._connection, broken=broken, soiled=soiled)
        if forgotten is not None:
            raise forgotten

    async def _last_turn(self, *, waits: bool) -> str | None:
        """What was asked for before the end of the block is in it, and what comes later is refused. Who leaves by an error waits for nobody."""
        try:
            self.database.pool.check_process()
            if waits:
                await self._turn.acquire()
                self._turn.release()
            return self._ended
        finally:
            self._ended = "has ended"

    @must_await("tx.execute", to=of_tx)
    async def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement with `$1`, `$2` …; returns how many rows it changed."""
        async with self._own_statement(sql):
            status = await self._run_one(sql, params)
        verb, _, number = status.rpartition(" ")
        return int(number) if verb.partition(" ")[0] in _CHANGING else 0

    @must_await("tx.execute_many", to=of_tx)
    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each of these rows of values, in their order; all of them are sent in one go."""
        many = check_rows(rows)
        async with self._own_statement(sql):
            if many:
                await self._connection.executemany(sql, many)

    async def _run_one(self, sql: str, params: tuple[Any, ...]) -> str:
        """A prepared statement is one: a COMMIT hidden behind it is refused by the server."""
        if params or not may_be_several(sql):
            status: str = await self._connection.execute(sql, *params)
            return status
        statement = await self._connection.prepare(sql)
        await statement.fetch()
        return str(statement.get_statusmsg())

    @must_await("tx.fetch", to=of_tx)
    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        async with self._own_statement(sql):
            rows = await self._connection.fetch(sql, *params)
        return [tuple(row) for row in rows]

    def savepoint(self) -> Savepoint:
        """`async with tx.savepoint():` an exception takes back what the block has done, and the transaction goes on."""
        return Savepoint(self)

    @asynccontextmanager
    async def _own_statement(self, sql: str) -> AsyncGenerator[None, None]:
        """One of the caller's own, in its turn."""
        check_sql(sql)
        refuse_end(sql)
        async with self._in_turn(sql):
            self._used = True
            with self.standing.failing(Exception, asyncio.CancelledError):
                try:
                    await self._plan(freely=True)
                    yield
                except (*FAILURES, *WRONG_VALUES) as error:
                    raise self._failed(error) from error
                finally:
                    self._look_for_end()
            if goes_back(sql):
                self.standing.recover()

    @asynccontextmanager
    async def _in_turn(self, sql: str = "") -> AsyncGenerator[None, None]:
        self._check(sql)
        async with self._turn:
            self._check(sql)
            yield

    async def run(self, procedure: Procedure[T], *, is_large: bool = False, plans: bool = False) -> T:
        """Do one of the store's verbs in this transaction. To plan a large one each time takes longer than to run it.

        `plans`: it says so itself, with its first statement.
        """
        async with self._in_turn():
            with self.standing.failing(asyncio.CancelledError):
                try:
                    if is_large:
                        await self._plan(freely=False)
                    self._plans_freely = self._plans_freely and not plans
                    return await drive(self._connection, procedure)
                except FAILURES as error:
                    self.standing.fail(failed := self._failed_verb(error))
                    raise failed from error

    def _failed_verb(self, error: BaseException) -> BaseException:
        return self._failed(error) if is_lost(error) or is_unsent(error) else translate(error)

    async def save(self, name: str) -> bool:
        async with self._in_turn():
            await self._command(f"SAVEPOINT {name}")
            return self._plans_freely

    async def release(self, name: str) -> None:
        async with self._in_turn():
            await self._command(f"RELEASE SAVEPOINT {name}")

    async def undo(self, name: str, memo: bool) -> None:
        """Also after a failure, which is over then. The settings of the planner go back with it."""
        self._check_open()
        async with self._turn:
            self._check_open()
            await self._command(f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}")
            self._plans_freely = memo
            self.standing.recover()

    async def _command(self, sql: str) -> None:
        with self.standing.failing(Exception, asyncio.CancelledError):
            try:
                await self._connection.execute(sql)
            except FAILURES as error:
                raise self._failed(error) from error

    async def _plan(self, *, freely: bool) -> None:
        if freely != self._plans_freely:
            await self._connection.execute(FREE_PLANNING if freely else OUR_PLANNING)
            self._plans_freely = freely

    @property
    def is_open(self) -> bool:
        return self._ended is None

    def _check(self, sql: str = "") -> None:
        self._check_open()
        self.standing.check(sql)

    def _check_open(self) -> None:
        if self._ended is not None:
            raise TransactionEnded(f"The transaction {self._ended}.")
        self.database.pool.check_process()

    def _look_for_end(self) -> None:
        if (
            self._ended is None
            and not self._connection.is_closed()
            and not self._connection.is_in_transaction()
        ):
            self._ended = _BY_HAND

    async def _clean(self) -> tuple[bool, bool]:
        """Whether the connection is broken, and whether the next one must clean it. Our own verbs leave nothing behind.

        Who waits for it cleans it together with his own beginning. Nobody: then it is cleaned now, and holds no lock until somebody comes.
        """
        if not self._used:
            return False, False
        if self.database.pool.is_awaited:
            return False, True
        try:
            await self._connection.execute(RESET)
        except FAILURES:
            return True, False
        return False, False

    async def _commit(self) -> None:
        await commit(self._connection)

    def _failed(self, error: BaseException) -> BaseException:
        """What an error of the caller's own SQL means; a broken connection is the end of the transaction."""
        self._fenced = self._fenced or is_fenced(error)
        misused = (
            is_unsent(error)
            and isinstance(error, asyncpg.InterfaceError)
            and not self._connection.is_closed()
        )
        if misused or not (is_lost(error) or is_unsent(error)):
            return meaning(error)
        self._ended = f"was cut off ({error!r}); its writes are rolled back"
        return TransactionEnded(f"The transaction {self._ended}.")
