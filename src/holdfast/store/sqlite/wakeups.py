"""Wake-ups on SQLite: this process tells itself; others touch the file, and their jobs are seen in it every 5 milliseconds."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

import apsw

from holdfast.kernel.clock import monotonic, patience
from holdfast.kernel.errors import NotOpen, StoreError
from holdfast.kernel.forks import Turn
from holdfast.kernel.spawn import cancel, spawn
from holdfast.kernel.touches import touch, watch
from holdfast.store.bell import EVERYONE, LOG, OUTBOX, VIEWS, Bell, names_of
from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db

EVERY = 0.005  # seconds between two looks at the file
_LINGER = 20  # looks after the last who waited: most will wait again
_NAMES = (EVERYONE, OUTBOX, LOG, VIEWS)  # who is told when these numbers have changed
_LOOK = """
    SELECT (SELECT value FROM holdfast_counter WHERE name = 'rank'), (SELECT max(seq) FROM holdfast_outbox),
        (SELECT value FROM holdfast_counter WHERE name = 'position'),
        (SELECT total(position + generation) FROM holdfast_view WHERE state = 'serving')"""
_NOTHING = (-1, -1, -1, -1)


@checked
class Wakeups:
    def __init__(self, path: str, opened: Callable[[], Db], check: Callable[[], None]) -> None:
        # It is there while anyone has the file open, and its times mean nothing. SQLite has it beside the file itself, not beside a link.
        self._log = f"{os.path.realpath(path)}-wal"
        self._touched = -math.inf
        self._check = check  # raises when the store is not open in this process
        self._bell = Bell()
        self._watch = Watch(opened, check)
        # Each loop that waits has one.
        self._watching: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    def hint(self, queues: Iterable[str]) -> None:
        self.tell(names_of(queues))

    def tell(self, queues: Collection[str]) -> None:
        """A hint of our own, so its names need no look."""
        if queues:
            self._bell.ring(queues)
            if monotonic() - self._touched > EVERY:  # or they look soon anyway
                self._touched = monotonic()
                touch(self._log)

    async def wait(self, queues: Collection[str], timeout: float) -> bool:  # noqa: ASYNC109  its end is an answer
        self._check()
        self._look()
        self._keep_watching()
        if not await self._bell.wait(queues, timeout):
            return False
        self._look()  # what was stored up to now is seen by the claim that follows
        self._bell.take(queues)
        return True

    def _keep_watching(self) -> None:
        """On this loop: that of another may stand still, or be gone."""
        here = asyncio.get_running_loop()
        if (watching := self._watching.get(here)) is None or watching.done():
            for loop in [each for each in tuple(self._watching) if each.is_closed()]:
                self._watching.pop(loop, None)
            self._watching[here] = spawn(self._watch_file(), name="wakeups:watch")

    async def _watch_file(self) -> None:
        """One look serves all who wait; it ends when nobody has waited for a while."""
        idle, never = 0, asyncio.Event()
        unwatch = watch(self._log, self._look)
        try:
            while idle < _LINGER:
                with suppress(TimeoutError):
                    async with patience(EVERY):
                        await never.wait()
                self._look()
                idle = 0 if self._bell.is_awaited else idle + 1
        finally:
            if unwatch is not None:
                unwatch()

    def _look(self) -> None:
        if news := self._watch.news():
            self._bell.ring(news)

    def stop(self) -> None:
        watching, self._watching = self._watching, {}
        for task in tuple(watching.values()):
            cancel(task)
        self._watch.close()
        self._bell.ring((EVERYONE,))


class Watch:
    """A connection that sees what others have stored. Looking is so cheap that it is done on the event loop."""

    def __init__(self, opened: Callable[[], Db], check: Callable[[], None]) -> None:
        self._opened, self._check = opened, check
        self._turn = Turn()  # several loops may look at once, and one of them may close
        self._db: Db | None = None
        self._version = -1
        self._seen = _NOTHING

    def news(self) -> set[str]:
        """A rank drawn since the last look, as each job does that is queued; events stored, published or read by a view. At first all."""
        with self._turn.lock:
            try:
                return self._look()
            except (apsw.Error, StoreError, NotOpen):  # busy, or worse: whoever polls is told
                return set()

    def _look(self) -> set[str]:
        if self._db is None or self._db.rests:
            self._version = -1
            self._check()  # or it would be opened after the close, and stay
            self._db = self._opened()
        [[version]] = self._db.rows("PRAGMA data_version")  # no page is read for this
        if version == self._version:
            return set()
        [found] = self._db.rows(_LOOK)
        news = {name for name, now, before in zip(_NAMES, found, self._seen, strict=True) if now != before}
        self._version, self._seen = version, found
        return news

    def close(self) -> None:
        with self._turn.lock:
            if self._db is not None:
                self._db.close()
                self._db, self._version, self._seen = None, -1, _NOTHING
