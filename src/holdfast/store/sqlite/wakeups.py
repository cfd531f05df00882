"""Wake-ups on SQLite: this process is told by itself, and others are seen in the file, about every 5 milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import apsw

from holdfast.kernel.clock import timeout as time_limit
from holdfast.kernel.errors import StoreError
from holdfast.store.bell import EVERYONE, Bell, names_of
from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db

EVERY = 0.005  # seconds between two looks at the file


@checked
class Wakeups:
    def __init__(self, opened: Callable[[], Db], check: Callable[[], None]) -> None:
        self._check = check  # raises when the store is not open in this process
        self._bell = Bell()
        self._watch = Watch(opened)

    def hint(self, queues: Iterable[str]) -> None:
        self.tell(names_of(queues))

    def tell(self, queues: Collection[str]) -> None:
        """A hint of our own, so its names need no look."""
        if queues:
            self._bell.ring(queues)

    async def wait(self, queues: Collection[str], timeout: float) -> bool:  # noqa: ASYNC109  its end is an answer
        self._check()
        try:
            async with time_limit(timeout):
                self._look()
                while not await self._bell.wait(queues, EVERY):
                    self._look()
        except TimeoutError:
            return False
        self._look()  # what was stored up to now is seen by the claim that follows
        self._bell.take(queues)
        return True

    def _look(self) -> None:
        if self._watch.has_news():
            self._bell.ring((EVERYONE,))

    def stop(self) -> None:
        self._watch.close()
        self._bell.ring((EVERYONE,))


class Watch:
    """A connection that sees whether jobs were queued. Looking is so cheap that it is done on the event loop."""

    def __init__(self, opened: Callable[[], Db]) -> None:
        self._opened = opened
        self._db: Db | None = None
        self._version = self._rank = -1

    def has_news(self) -> bool:
        """Whether a rank was drawn since the last look, as each job does that is queued. The first look says yes."""
        try:
            if self._db is None:
                self._db = self._opened()
            [[version]] = self._db.rows("PRAGMA data_version")  # no page is read for this
            if version == self._version:
                return False
            [[rank]] = self._db.rows("SELECT value FROM holdfast_counter WHERE name = 'rank'")
        except (apsw.Error, StoreError):  # busy, or worse: whoever polls is told
            return False
        is_new: bool = rank != self._rank
        self._version, self._rank = version, rank
        return is_new

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db, self._version, self._rank = None, -1, -1
