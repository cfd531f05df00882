"""A snapshot: a transaction that only reads, of one moment, on the primary or on a replica of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType

import asyncpg

from holdfast.kernel.clock import look_after, monotonic
from holdfast.kernel.errors import ReplicaBehind, StatementError, TransactionEnded, UsageError
from holdfast.kernel.randomness import jittered
from holdfast.store.postgres.connection import FREE_PLANNING, Database
from holdfast.store.postgres.transaction import PostgresTx
from holdfast.store.reading import FAILED, LIMIT, NEW, ONLY_READS, ReadTx

# The first query takes the snapshot; it goes along, so that the moment is that of the block's beginning.
_BEGIN = f"""BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {FREE_PLANNING}
    SET LOCAL idle_in_transaction_session_timeout = '{LIMIT:g}s'; SELECT 1"""
_HAS = "SELECT 1 FROM holdfast.outbox WHERE id = $1::text::uuid"
_LOOK = 0.02  # seconds between looks at a replica that is behind


class Snapshot:
    """`at_least`: the id of an event that a replica must have before anything is read of it."""

    def __init__(
        self,
        database: Database,
        *,
        check: Callable[[], Awaitable[None]] | None = None,
        at_least: str | None,
        wait: float,
    ) -> None:
        self._database, self._check, self._at_least, self._wait = database, check, at_least, wait
        self._reading: _Reading | None = None

    async def __aenter__(self) -> ReadTx:
        if self._reading is not None:
            raise UsageError(NEW)
        if self._check is not None:
            await self._check()
        give_up = monotonic() + self._wait
        while (reading := await self._begun()) is None:
            if monotonic() >= give_up:
                raise ReplicaBehind(
                    f"The replica has not got event {self._at_least} after {self._wait:g} s. "
                    "Read without at_least=, or wait longer."
                )
            await look_after(jittered(_LOOK))
        self._reading = reading
        return ReadTx(reading, reading.awaits)

    async def _begun(self) -> _Reading | None:
        """None: it is too old."""
        reading = _Reading(self._database)
        async with _ended_unless_wanted(reading) as wanted:
            if self._at_least is None or await reading.fetch(_HAS, self._at_least):
                wanted.append(reading)
                return reading
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._reading is not None
        await self._reading.__aexit__(kind, error, trace)


class _ended_unless_wanted:  # noqa: N801  a block
    def __init__(self, reading: _Reading) -> None:
        self._reading, self._wanted = reading, list[object]()

    async def __aenter__(self) -> list[object]:
        await self._reading.__aenter__()
        return self._wanted

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._wanted:
            await self._reading.__aexit__(kind, error, trace)


class _Reading(PostgresTx):
    """Nothing is in its way, and it is in nobody's: others may be written beside it."""

    begins = _BEGIN

    def __init__(self, database: Database) -> None:
        super().__init__(database, lambda _: None)
        self.standing.how = FAILED

    def _enter_block(self) -> object:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.standing.recover()  # nothing of it was to be stored
        await super().__aexit__(kind, error, trace)

    async def _commit(self) -> None:
        await self._connection.execute("ROLLBACK")

    def _failed(self, error: BaseException) -> BaseException:
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            return StatementError(ONLY_READS)
        failed = super()._failed(error)
        if isinstance(failed, TransactionEnded):
            self._ended = f"was cut off ({error!r})"
            return TransactionEnded(f"The snapshot {self._ended}. {FAILED}")
        return failed
