"""A connection of PEP 249. It reads without a lock; what writes first begins the transaction. Where it runs, subclasses say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import apsw

from holdfast.sqlalchemy.dbapi import errors, texts
from holdfast.sqlalchemy.dbapi.cursor import Cursor
from holdfast.sqlalchemy.dbapi.running import Description, Outcome, Request, Row, Writes, run

T = TypeVar("T")


class Stream(Protocol):
    """Rows that are read portion by portion."""

    description: Description | None

    def fetch(self, size: int | None) -> list[Row]: ...
    def close(self) -> None: ...


class Connection(ABC):
    """Autobegin without a lock: until something writes, each statement reads what is committed then."""

    Warning, Error, InterfaceError = errors.Warning, errors.Error, errors.InterfaceError
    DatabaseError, DataError, OperationalError = (
        errors.DatabaseError,
        errors.DataError,
        errors.OperationalError,
    )
    IntegrityError, InternalError = errors.IntegrityError, errors.InternalError
    ProgrammingError, NotSupportedError = errors.ProgrammingError, errors.NotSupportedError

    autocommits = False  # each statement that writes has a transaction of its own

    def cursor(self, *, streams: bool = False) -> Cursor:
        return Cursor(self, streams=streams)

    def execute(self, sql: str, params: Sequence[Any] | None = None, /) -> Cursor:
        return self.cursor().execute(sql, params)

    def executemany(self, sql: str, many: Sequence[Sequence[Any]], /) -> Cursor:
        return self.cursor().executemany(sql, many)

    def perform(self, request: Request, *, takes_lock: bool) -> Outcome:
        self.check_statement(request.sql)
        if not (takes_lock or self.in_transaction or texts.is_savepoint(request.sql)):
            try:
                return self.read(partial(run, request=request, reads_only=True))
            except Writes:
                pass
        if self.autocommits and not self.in_transaction and not texts.is_savepoint(request.sql):
            return self.write_alone(partial(run, request=request))
        if not self.in_transaction:
            return self.begin_with(partial(run, request=request), request.sql)
        return self.write(partial(run, request=request), request.sql)

    def begin_with(self, work: Callable[[apsw.Connection], T], sql: str) -> T:
        """Begin, and do this first."""
        self.begin()
        return self.write(work, sql)

    def stream(self, request: Request) -> Stream | None:  # noqa: ARG002
        """None: it cannot be streamed now."""
        return None

    def check_statement(self, sql: str) -> None:
        """Raise for what this connection does not take."""
        texts.refuse_end(sql)

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether it holds the write lock, or did until it was cut off."""

    @abstractmethod
    def begin(self) -> None:
        """Take the write lock."""

    @abstractmethod
    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """Outside of a transaction."""

    @abstractmethod
    def write(self, work: Callable[[apsw.Connection], T], sql: str = "") -> T:
        """In the transaction. `sql` is the statement that the work runs."""

    @abstractmethod
    def write_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """In a transaction of its own."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} at {id(self):#x}>"
