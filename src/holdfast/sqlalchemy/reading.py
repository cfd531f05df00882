"""The thread of a pooled connection: it reads what is committed, statement by statement, and streams."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import apsw

from holdfast.kernel.clock import monotonic
from holdfast.kernel.spawn import Reply, ThreadReply, deliver
from holdfast.kernel.world import Body, Pause, Take
from holdfast.sqlalchemy.dbapi.errors import OperationalError
from holdfast.sqlalchemy.dbapi.functions import add_functions
from holdfast.sqlalchemy.dbapi.running import Description, Request, Row, portion, stream
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.served import Served, Stop, Work, explained

STREAM_LIMIT = 300.0  # seconds: an open stream keeps the write-ahead log from being cut back
ENDED = "This stream was closed by the commit or rollback of its session, as on PostgreSQL. Read it to its end before."
_LATE = (
    f"This stream was open for more than {STREAM_LIMIT:g} seconds, and was closed: it keeps SQLite's write-ahead log "
    "from being cut back. Read in portions by key, such as WHERE id > … LIMIT 1000."
)


class SessionReader(Served):
    name = "holdfast-session"

    def __init__(self, opened: Callable[[], Db]) -> None:
        super().__init__(opened)
        self._works: list[Work[Any]] = []
        self._streams: set[Open] = set()

    def _open(self) -> None:
        super()._open()
        add_functions(self._db.connection)

    def _body(self) -> Body:
        while not self._stops:
            items = yield Take(self._inbox, self._patience())
            self._stops += [item for item in items if isinstance(item, Stop)]
            self._works += [item for item in items if isinstance(item, Work)]
            while self._works:
                work = self._works[0]
                if not work.reply.given_up:
                    deliver([(work.reply, (yield from self._read(work)))])
                del self._works[0]
            self._end_late()
        for each in self._streams:
            each.close()

    def _unanswered(self) -> list[Reply[Any]]:
        return [work.reply for work in self._works]

    def _read(self, work: Work[Any]) -> Generator[Take[Any] | Pause, Any, Any]:
        try:
            yield from self._awake()
            return work.call(self._db)
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            return explained(error)

    def tell(self, call: Callable[[Db], object]) -> None:
        """Have this done, without waiting for it; from anywhere."""
        self._hand_over(Work(call, ThreadReply()))

    # Streams. All of this is done on the thread.

    def begin_stream(self, connection: apsw.Connection, request: Request) -> Open:
        opened = Open(*stream(connection, request))
        self._streams.add(opened)
        return opened

    def end_stream(self, opened: Open) -> None:
        self._streams.discard(opened)
        opened.close()

    def end_streams(self) -> None:
        while self._streams:
            self._streams.pop().close(ENDED)

    def _patience(self) -> float | None:
        if not self._streams:
            return None
        return max(0.0, min(each.until for each in self._streams) - monotonic())

    def _end_late(self) -> None:
        for each in [one for one in self._streams if one.until <= monotonic()]:
            self.end_stream(each)


class Open:
    """A statement whose rows are read one portion after the other. Its cursor has a snapshot."""

    def __init__(self, description: Description | None, cursor: apsw.Cursor) -> None:
        self.description, self._cursor = description, cursor
        self.until = monotonic() + STREAM_LIMIT
        self._closed = ""

    def fetch(self, size: int | None) -> list[Row]:
        if monotonic() >= self.until:
            self.close()
        if self._closed:
            raise OperationalError(self._closed)
        return portion(self._cursor, size)

    def close(self, why: str = _LATE) -> None:
        if not self._closed:
            self._closed = why
            self._cursor.close(True)
