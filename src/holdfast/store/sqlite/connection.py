"""One connection to the SQLite file: how it is opened, what it is asked, and what its errors mean."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from holdfast.kernel.clock import host_now
from holdfast.kernel.errors import StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from holdfast.kernel.forks import close_before, keep, tell_child
from holdfast.kernel.world import current
from holdfast.store.sqlite.refusals import carried, descriptor_closed, not_carried, our_descriptors
from holdfast.store.sqlite.rows import Row

# FULL: an answer to a caller means that the disk has it. The WAL file is cut back after a large transaction.
_WAL = "PRAGMA journal_mode = WAL"
_PRAGMAS = """
PRAGMA synchronous = {synchronous};
PRAGMA foreign_keys = ON;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16384;
PRAGMA temp_store = MEMORY;
"""


class Db:
    """A connection within one transaction. `now` is the database's clock, read after the lock was taken."""

    def __init__(self, path: str, *, synchronous: str = "FULL", reading: bool = False) -> None:
        self.path = path
        self._synchronous = synchronous
        self._is_hasty = False
        try:
            with our_descriptors(path):
                self.connection = apsw.Connection(path)
                self._set_up(synchronous, reading=reading)
        except apsw.CantOpenError as error:
            raise StoreUnavailable(f"SQLite cannot open {path!r}: {error}. Does its folder exist?") from error
        self._file = _identity(path)
        self._closed = current().owns(self.connection.close)
        self.now = 0.0
        self.rests = False  # closed before a fork: whoever has it opens another
        self._is_closed = False
        close_before(self)
        tell_child(self)

    def _set_up(self, synchronous: str, *, reading: bool) -> None:
        # Waiting for the lock goes through the kernel (see the writer), never inside SQLite.
        self.connection.set_busy_timeout(0)
        # A statement keeps its plan. Else SQLite looks at the values that are bound, and plans most statements again at each
        # call, which takes four times as long as running them.
        self.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        try:
            self.connection.execute("PRAGMA query_only = ON" if reading else _WAL)
            self.connection.execute(_PRAGMAS.format(synchronous=synchronous))
            self.connection.execute("PRAGMA schema_version")  # opens the file, which so far was only named
        except BaseException:
            self.connection.close()
            raise

    def begin(self, mode: str, *, hasty: bool = False) -> None:
        """BEGIN, or `apsw.BusyError` at once when another process is writing. `hasty`: the commit will not wait for the disk."""
        if _identity(self.path) != self._file:
            raise StoreUnavailable(
                f"The SQLite file {self.path!r} was deleted or replaced while it was open. Nothing was stored. "
                "Put it back, or open the store again."
            )
        if hasty is not self._is_hasty:
            self._hurry(hasty)
        self.connection.execute(f"BEGIN {mode}")
        self.now = host_now()

    def _hurry(self, hasty: bool) -> None:
        """A crash of the machine may forget a hasty commit; the next one that waits for the disk keeps it, too."""
        if self._synchronous == "FULL":
            self.connection.execute(f"PRAGMA synchronous = {'NORMAL' if hasty else 'FULL'}")
        self._is_hasty = hasty

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self._is_closed = True
        not_carried(self)
        self._closed()
        self.connection.close()
        descriptor_closed(self.path)

    def rest(self) -> None:
        """Before a fork. SQLite would believe in the child that this process has the locks of its parent, and take none itself.

        So the parent could delete the log under the child's commits. One in the middle of a transaction cannot be closed.
        """
        if self._is_closed:
            return
        try:
            can_rest = not self.connection.in_transaction
            if can_rest:
                self.close()
                self.rests = True
        except apsw.Error:  # its thread is in the middle of something
            can_rest = False
        if can_rest:
            not_carried(self)
        else:
            carried(self.path, self)

    def forked(self) -> None:
        """In a child: the end of an open transaction would undo it in the memory that is shared with the parent."""
        if not self._is_closed:
            keep([self, self.connection])
            self._is_closed = True

    def rows(self, sql: str, *params: Any) -> list[Row]:
        return self.connection.execute(sql, params).fetchall()

    @contextmanager
    def each(self, sql: str, *params: Any) -> Iterator[Iterator[Row]]:
        """One after the other, as they are asked for: the rest is not read, and holds no snapshot after that."""
        cursor = self.connection.execute(sql, params)
        try:
            yield cursor
        finally:
            cursor.close()

    def row(self, sql: str, *params: Any) -> Row | None:
        return self.connection.execute(sql, params).fetchone()

    def value(self, sql: str, *params: Any) -> Any:
        row = self.row(sql, *params)
        return None if row is None else row[0]

    def run(self, sql: str, *params: Any) -> int:
        """Run one statement; returns how many rows it changed."""
        self.connection.execute(sql, params)
        return self.connection.changes()

    def execute_all(self, sql: str) -> None:
        """Statements without values, one after the other."""
        self.connection.execute(sql)

    def run_many(self, sql: str, many: Iterable[Sequence[Any]]) -> None:
        self.connection.executemany(sql, many)

    def draw(self, counter: str, count: int = 1) -> int:
        """The first of `count` new numbers of a counter that only grows."""
        sql = "UPDATE holdfast_counter SET value = value + ? WHERE name = ? RETURNING value"
        last: int = self.value(sql, count, counter)
        return last - count + 1


def _identity(path: str) -> tuple[int, int] | None:
    """Which file is at this path now."""
    try:
        status = os.stat(path)  # noqa: PTH116  twice as fast, and it is asked before every transaction
    except OSError:
        return None
    return status.st_dev, status.st_ino


def numbers(rows: Iterable[int]) -> str:
    """Row numbers as one parameter, for `json_each`."""
    return f"[{','.join(map(str, rows))}]"


def explain(error: apsw.Error) -> StoreError:
    """What an error of SQLite means to the caller."""
    match error:
        case apsw.BusyError():
            return StoreBusy(
                f"Another process held the write lock of the SQLite file too long ({error}). Try again."
            )
        case apsw.FullError():
            return StoreFull(
                f"No space left for the SQLite file ({error}). Nothing was stored; free some and try again."
            )
        case apsw.ReadOnlyError():
            return StoreReadOnly(
                f"The SQLite file cannot be written ({error}). Check its owner and the mount."
            )
        case apsw.CantOpenError() | apsw.IOError() | apsw.InterruptError() | apsw.ProtocolError():
            return StoreUnavailable(
                f"SQLite could not do it: {error}. Nothing was stored; trying again is safe."
            )
        case _:
            return StoreError(f"SQLite refused: {error}.")
