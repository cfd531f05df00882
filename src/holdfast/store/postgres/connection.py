"""Run procedures on pooled connections: in one round trip or in a transaction, and say truthfully what happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar
from weakref import WeakSet

import asyncpg

from holdfast.kernel.clock import patient, recover
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import CommitUnknown, SchemaMissing, StoreError, TransactionEnded
from holdfast.kernel.forks import disown, keep, tell_child
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.store.blocks import Blocks
from holdfast.store.postgres.failures import FAILURES, is_fenced, is_lost, is_transient, is_unsent, translate
from holdfast.store.postgres.patience import Patience
from holdfast.store.postgres.pool import Pool
from holdfast.store.postgres.url import Target, without_password
from holdfast.store.statements import Procedure
from holdfast.store.unknown import still_unknown

T = TypeVar("T")

APPLICATION = "holdfast"  # what our sessions are called on the server
FIRST_DELAY, LONGEST_DELAY = 0.02, 0.5  # seconds before the second try, doubled for each one after
# Set for the transaction only, so that a pooler may give the next one to another session.
BEGIN = """BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL statement_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '10s'"""
# For what others wait behind: whoever is in the way of one of many is met by that one alone.
IMPATIENT = f"{BEGIN}; SET LOCAL lock_timeout = '200ms'"
# For what is simply done again when a crash of the server forgets it: nobody waits for the disk. Whatever builds on it is
# later in the server's log, so a commit that is kept keeps this too. But who has read it, and stores what comes of that after the
# crash, must look whether it is still there.
HASTY = f"{BEGIN}; SET LOCAL synchronous_commit = off"
# Plans are cached with the statement. One made while the table was empty walks through all of it, and would go on
# doing so when it has a million rows. Every statement of ours finds rows by an index, so the planner need not choose.
_PLANNING = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
FREE_PLANNING = "".join(f"SET LOCAL {name} = on;" for name in _PLANNING) + "SET LOCAL plan_cache_mode = auto;"
_OURS = {**_PLANNING, "plan_cache_mode": "force_generic_plan"}
OUR_PLANNING = "".join(f"SET LOCAL {name} = {value};" for name, value in _OURS.items())
# The same as columns of a SELECT, for a statement that is sent anyway.
PLANNED = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _OURS.items())
# Planning the claim anew takes longer than a small claim itself; compiling takes longer than any of our statements.
_STARTING = {**_OURS, "jit": "off"}
# What a caller's own statements may have left in a session. RESET ALL goes back to the settings we connected with.
# Not DISCARD ALL, which would also throw away the driver's prepared statements.
RESET = """SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET SESSION AUTHORIZATION; RESET ALL;
    DISCARD TEMP; DISCARD SEQUENCES"""
# Behind a pooler that refuses these settings, at least no plan grows old.
_PLAN_LIFETIME = {True: 300, False: 5}
_REFUSED = "08P01"


class AlreadyStored(StoreError):
    """A row with this id is there."""


class _Ours:
    """All connections of this process."""

    def __init__(self) -> None:
        self.open: WeakSet[Any] = WeakSet()
        tell_child(self)

    def forked(self) -> None:
        """In a child: asyncpg says good-bye to the server for a connection that is collected, and so it would end the parent's."""
        inherited, self.open = [*self.open], WeakSet()
        disown(*(each._transport for each in inherited))  # noqa: SLF001  asyncpg shows it nowhere else
        keep(inherited)


_CONNECTIONS = _Ours()


class Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg has no types
    """We leave no session state behind, so giving a connection back costs no round trip."""

    __slots__ = ()

    def get_reset_query(self) -> str:
        return ""


async def connect(target: Target) -> Any:
    try:
        connection = await _connect(target, planning=True)
    except asyncpg.PostgresError as error:
        if error.sqlstate != _REFUSED:
            raise
        connection = await _connect(target, planning=False)
    _CONNECTIONS.open.add(connection)
    return connection


async def _connect(target: Target, *, planning: bool) -> Any:
    return await asyncpg.connect(
        target.dsn,
        connection_class=Connection,
        timeout=target.connect_timeout,
        command_timeout=target.command_timeout,
        statement_cache_size=target.statement_cache_size,
        max_cached_statement_lifetime=_PLAN_LIFETIME[planning],
        server_settings={"application_name": APPLICATION, **(_STARTING if planning else {})},
    )


async def drive(connection: Any, procedure: Procedure[T]) -> T:
    """Run a procedure: execute what it yields, send it the rows, return its answer."""
    try:
        statement = procedure.send(None)  # type: ignore[arg-type]  # a generator starts with None
        while True:
            rows = await connection.fetch(statement.sql, *statement.params)
            statement = procedure.send(rows)
    except StopIteration as end:
        answer: T = end.value
        return answer
    finally:
        procedure.close()


class Database:
    """The store's own connections. Verbs are given as functions that make the procedure, so that it can be repeated."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.blocks = Blocks()
        self.missing: list[str] = []  # migrations that the tables lack; nothing works until they are applied
        self.patience = Patience(max(1, target.pool_size // 4))
        self.pool = Pool(lambda: connect(target), size=target.pool_size, wait=target.pool_wait)

    async def read(self, make: Callable[[], Procedure[T]]) -> T:
        """Every statement by itself; a broken connection is no reason to give up."""
        return await self._persist(lambda: self._once(lambda connection: drive(connection, make())))

    async def write(
        self, make: Callable[[], Procedure[T]], *, urgent: bool = False, repeatable: bool = False
    ) -> T:
        """One statement that commits itself: one round trip. `repeatable`: doing it twice is as good as once."""
        return await self._settled(
            lambda: self._once(lambda connection: _alone(connection, make()), urgent=urgent),
            repeatable=repeatable,
        )

    async def atomic(
        self,
        make: Callable[[], Procedure[T]],
        *,
        urgent: bool = False,
        repeatable: bool = False,
        begin: str = BEGIN,
    ) -> T:
        """Several statements in one transaction."""
        return await self._settled(
            lambda: self._once(lambda connection: _together(connection, make(), begin), urgent=urgent),
            repeatable=repeatable,
        )

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Store many rows by COPY, all or none; a row that is there already is an error."""

        async def send(connection: Any) -> None:
            try:
                await connection.copy_records_to_table(
                    table, schema_name="holdfast", columns=columns, records=rows
                )
            except asyncpg.UniqueViolationError as error:
                raise AlreadyStored(str(error)) from error

        await self._persist(lambda: self._once(lambda connection: _committing(lambda: send(connection))))

    async def begin(self, sql: str) -> Any:
        """A connection with an open transaction; whoever gets it gives it back to the pool."""
        return await self._persist(lambda: self._begin(sql))

    async def _begin(self, sql: str) -> Any:
        if self.missing:
            raise behind(self.missing, self.target.dsn)
        connection = await self.pool.acquire()
        is_soiled = self.pool.cleans(connection)
        try:
            # Committed by itself: else it would be undone when what follows is rolled back.
            await connection.execute(f"BEGIN; {RESET}; COMMIT; {sql}" if is_soiled else sql)
        except BaseException as error:
            self.pool.release(connection, broken=True)
            if is_soiled and isinstance(error, FAILURES):
                return await self._begin(sql)
            raise
        return connection

    async def _settled(self, once: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
        try:
            return await self._persist(once)
        except CommitUnknown as unknown:
            if not repeatable:
                raise
            first = unknown
        return await still_unknown(first, self._persist(once))

    async def _persist(self, once: Callable[[], Awaitable[T]]) -> T:
        """Try again, for a while, when it is certain that nothing was stored."""
        give_up, delay = patient() + self.target.patience, FIRST_DELAY
        while True:
            try:
                return await once()
            except FAILURES as error:
                if not (is_lost(error) or is_transient(error)) or patient() >= give_up:
                    raise translate(error) from error
                note("store.tried_again", store="postgres", error=repr(error))
            await recover(jittered(delay, 0.5))
            delay = min(delay * 2, LONGEST_DELAY)

    async def _once(self, attempt: Callable[[Any], Awaitable[T]], *, urgent: bool = False) -> T:
        if self.missing:
            raise behind(self.missing, self.target.dsn)
        connection = await self._clean_one(urgent=urgent)
        broken = True
        try:
            answer = await attempt(connection)
            broken = False
        except Exception as error:
            broken = _is_spoilt(connection, error)
            raise
        finally:
            self.pool.release(connection, broken=broken)
        return answer

    async def _clean_one(self, *, urgent: bool) -> Any:
        """What the one before has left may be such that it cannot be cleaned: then another, and nobody hears of it."""
        while True:
            connection = await self.pool.acquire(urgent=urgent)
            if not self.pool.cleans(connection):
                return connection
            try:
                await connection.execute(RESET)
            except BaseException as error:
                self.pool.release(connection, broken=True)
                if not isinstance(error, FAILURES):
                    raise
            else:
                return connection


def _is_spoilt(connection: Any, error: Exception) -> bool:
    """Whether nobody should use this connection again."""
    if connection.is_closed() or connection.is_in_transaction() or isinstance(error, CommitUnknown):
        return True
    return is_lost(error) or is_unsent(error) or is_fenced(error)


async def _alone(connection: Any, procedure: Procedure[T]) -> T:
    return await _committing(lambda: drive(connection, procedure))


async def _committing(act: Callable[[], Awaitable[T]]) -> T:
    """For what commits itself: when its answer is lost, nobody knows whether it has."""
    try:
        crashpoint("store.before_commit")
        answer = await act()
    except FAILURES as error:
        if is_lost(error):
            raise unknown(error) from error
        raise
    crashpoint("store.after_commit")
    return answer


async def _together(connection: Any, procedure: Procedure[T], begin: str) -> T:
    await connection.execute(begin)
    try:
        answer = await drive(connection, procedure)
        crashpoint("store.before_commit")
    except Exception as error:
        if not (is_lost(error) or is_unsent(error)):
            await connection.execute("ROLLBACK")
        raise
    await commit(connection)
    crashpoint("store.after_commit")
    return answer


async def commit(connection: Any) -> None:
    """COMMIT, and be honest about an answer that never came."""
    try:
        done = await connection.execute("COMMIT")
    except FAILURES as error:
        if is_lost(error):
            raise unknown(error) from error
        raise
    if done != "COMMIT":  # the server answers ROLLBACK when a statement of the transaction has failed
        raise TransactionEnded(
            "The transaction was rolled back, because a statement in it had failed before. Nothing was stored."
        )


def behind(missing: list[str], url: str) -> SchemaMissing:
    where = without_password(url)
    return SchemaMissing(
        f"The tables lack the migrations {', '.join(missing)}. Run `holdfast migrate --url {where}`, then open the store again."
    )


def unknown(error: BaseException) -> CommitUnknown:
    return CommitUnknown(
        f"PostgreSQL's answer to a commit was lost ({error!r}): it happened or it did not. "
        "Look before doing it again; jobs may be enqueued with the same ids and again=True."
    )
