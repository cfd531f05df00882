"""Wake-ups on PostgreSQL: hints go out by NOTIFY, one at a time for all that were given meanwhile."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial

from holdfast.kernel.clock import monotonic, patience
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.spawn import cancel, over, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.bell import EVERYONE, Bell, names_of
from holdfast.store.edge import checked
from holdfast.store.postgres.connection import Database
from holdfast.store.postgres.listener import CHANNEL, Listener
from holdfast.store.postgres.url import Target
from holdfast.store.statements import Procedure, Statement

BETWEEN = 0.01  # seconds between two NOTIFYs: each costs the server a commit, and all listeners a look
TELLING = (
    0x686F6C6466617374  # the advisory lock of who sends a NOTIFY along with a commit that waits for the disk
)
_LAST = 1.0  # seconds that a closing store gives its last hint
_LONGEST = 7_900  # bytes; the server takes less than 8,000

# It is no loss when a crash forgets it, so it need not wait for the disk.
_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1::text, $2::text)"


def notify(payload: str) -> Procedure[None]:
    yield Statement(_NOTIFY, (CHANNEL, payload))


def payload_of(queues: Collection[str]) -> str:
    """Names have no line breaks. Too many of them are news for everyone."""
    text = "\n".join(sorted(queues))
    return text if len(text.encode(errors="replace")) <= _LONGEST else EVERYONE


@checked
class Wakeups:
    def __init__(self, database: Database, listen: Target) -> None:
        self._database = database
        self._bell = Bell()
        self._listener = Listener(listen, self._bell.ring, self._probe)
        self._unsent: set[str] = set()
        self._sending: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._last = -math.inf  # when the last NOTIFY was sent

    def hint(self, queues: Iterable[str]) -> None:
        self.tell(names_of(queues))

    def tell(self, queues: Collection[str]) -> None:
        """A hint of our own, so its names need no look."""
        if queues:
            self._bell.ring(queues)
            self._unsent.update(queues)
            if self._sending is None and self._is_open_here():
                self._send_soon()

    def may_tell(self) -> bool:
        """Whether it is time for the next NOTIFY, for who can send it along with something else."""
        if self._sending is not None or monotonic() - self._last < BETWEEN:
            return False
        self._last = monotonic()
        return True

    def told(self, queues: Collection[str]) -> None:
        """All other processes have been told."""
        self._bell.ring(queues)

    async def wait(self, queues: Collection[str], timeout: float) -> bool:  # noqa: ASYNC109  its end is an answer
        self._database.pool.check()
        self._listener.start()
        return await self._bell.wait(queues, timeout)

    async def stop(self) -> None:
        pool = self._database.pool
        if pool.is_inherited:
            pool.keep_inherited(self._sending, self._listener.abandon())
            self._sending = None
            return
        if self._sending is not None and self._is_open_here():
            self._closing.set()  # the last hint need not wait for its turn
            with suppress(TimeoutError):
                async with patience(_LAST):
                    await over(self._sending)
        await self._listener.stop()
        if self._sending is not None:
            cancel(self._sending)
            self._sending = None
        self._bell.ring((EVERYONE,))

    def _is_open_here(self) -> bool:
        try:
            self._database.pool.check()
        except (HoldfastError, RuntimeError):  # closed, another process, another loop, or none
            return False
        return True

    async def _send(self) -> None:
        while self._unsent:
            names, self._unsent = self._unsent, set()
            self._last = monotonic()
            await self._notify(names)
            with suppress(TimeoutError):
                async with patience(BETWEEN):
                    await self._closing.wait()

    def _send_soon(self) -> None:
        self._closing = asyncio.Event()  # of this loop
        self._sending = spawn(self._send(), name="wakeups:notify")
        self._sending.add_done_callback(self._sent)  # one that is cancelled before its first step has no end

    def _sent(self, task: asyncio.Task[None]) -> None:
        if self._sending is task:
            self._sending = None
            if self._unsent and not task.cancelled() and self._is_open_here():
                self._send_soon()  # it was told of in between

    async def _notify(self, names: set[str]) -> None:
        try:
            await self._database.read(partial(notify, payload_of(names)))
        except Exception as error:  # noqa: BLE001  nobody waits for it, and polling is the truth
            note("wakeups.hint_lost", error=repr(error))

    async def _probe(self) -> None:
        """Names no queue: it only shows that listening works."""
        await self._database.read(partial(notify, ""))
