"""A cursor of PEP 249: it hands statements to its connection, and gives out the rows that came back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast.sqlalchemy.dbapi.errors import ProgrammingError
from holdfast.sqlalchemy.dbapi.running import Description, Request, Row

if TYPE_CHECKING:
    from holdfast.sqlalchemy.dbapi.connection import Connection, Stream

_PORTION = 500  # rows that a stream reads at once


class Cursor:
    def __init__(self, connection: Connection, *, streams: bool = False) -> None:
        self.connection = connection
        self.arraysize = 1
        self.takes_lock = False  # it is known that what comes next writes
        self._streams = streams
        self._closed = False
        self._clear()

    def _clear(self) -> None:
        self._rows: deque[Row] = deque()
        self._stream: Stream | None = None
        self.description: Description | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    def execute(self, sql: str, params: Sequence[Any] | None = None, /) -> Self:
        return self._execute(Request(sql, params or ()))

    def executemany(self, sql: str, many: Sequence[Sequence[Any]], /) -> Self:
        return self._execute(Request(sql, many, many=True))

    def _execute(self, request: Request) -> Self:
        self._check()
        self._end_stream()
        self._clear()
        if self._streams and not self.takes_lock:
            self._stream = self.connection.stream(request)
        if self._stream is not None:
            self.description = self._stream.description
            return self
        outcome = self.connection.perform(request, takes_lock=self.takes_lock)
        self.description, self.rowcount = outcome.description, outcome.rowcount
        self.lastrowid, self._rows = outcome.lastrowid, deque(outcome.rows)
        return self

    def fetchone(self) -> Row | None:
        self._check()
        self._fill(1)
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        self._check()
        size = self.arraysize if size is None else size
        self._fill(size)
        return [self._rows.popleft() for _ in range(min(size, len(self._rows)))]

    def fetchall(self) -> list[Row]:
        self._check()
        self._fill(None)
        rows = list(self._rows)
        self._rows.clear()
        return rows

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def _fill(self, size: int | None) -> None:
        if self._stream is not None and (size is None or len(self._rows) < size):
            wanted = None if size is None else max(size, _PORTION)
            rows = self._stream.fetch(wanted)
            self._rows.extend(rows)
            if wanted is None or len(rows) < wanted:
                self._stream = None

    def setinputsizes(self, *_: Any) -> None:
        pass

    def setoutputsize(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        self._closed = True
        self._end_stream()
        self._rows.clear()

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    async def _async_soft_close(self) -> None:
        """SQLAlchemy's asyncio calls it before rows are read where nothing can be awaited. All of them are here."""

    def _check(self) -> None:
        if self._closed:
            raise ProgrammingError("Cannot operate on a closed cursor.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
