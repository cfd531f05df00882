"""A thread with a connection of its own that serves callers, and what they hand to it."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import apsw

from holdfast.kernel.errors import NotOpen, StoreError, UsageError
from holdfast.kernel.loops import new_lock
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import Reply, deliver, mailbox, start_thread
from holdfast.kernel.telemetry import note
from holdfast.kernel.world import Body, Pause, Take, Thread
from holdfast.store.forked import FORKED
from holdfast.store.sqlite.connection import Db, explain

T = TypeVar("T")

CLOSED = "The store was closed before this was done. Nothing was stored."
_NOT_OPEN = "The store is not open. Use it inside `async with`, or call open() first."
LOCK_WAIT = 10.0  # seconds: longer than any transaction of ours may hold the lock


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """Something to do in a transaction, alone or with others; done again when the first try was rolled back."""

    call: Callable[[Db], T]
    reply: Reply[T]
    urgent: bool = False
    hasty: bool = False  # its commit need not wait for the disk


@dataclass(frozen=True, slots=True)
class Stop:
    reply: Reply[None]


class Served:
    """One thread, from its start to its end: asked from coroutines, on any loop; the body runs on the thread.

    It is started once. Whoever opens again makes another: what two threads share, one takes from the other.
    """

    name: str

    def __init__(self, opened: Callable[[], Db]) -> None:
        self._opened = opened
        self._inbox = mailbox()
        self._stops: list[Stop] = []  # taken from the inbox, to be answered at the end
        self._lock = new_lock()  # who puts something into the inbox, and the thread before its last look
        self._db: Db
        self._thread: Thread | None = None
        self._process = 0
        self._ready: Reply[None]
        self._serves = self._dismissed = self._over = False
        self.is_forked = False  # the parent of this process had one, which served
        self.leaving = False  # it will be stopped: whoever opens waits for the end

    async def start(self) -> None:
        self.begin()
        await self.ready()

    def begin(self) -> None:
        if self._thread is not None:
            raise UsageError(f"The thread {self.name} was started before. It is started once.")
        self._process, self._ready = os.getpid(), Reply()
        self._thread = start_thread(self.name, self._whole_body(self._ready))

    async def ready(self) -> None:
        """Return when it serves. Whoever gives up waiting, or is told of a failure, stops it."""
        await self._ready
        if self._dismissed:
            raise NotOpen(CLOSED)

    async def stop(self) -> None:
        """What was asked before is still done. Whoever asks again waits for the same end."""
        await self.dismiss()

    def dismiss(self, kind: type[Reply[Any]] = Reply) -> Reply[None]:
        """Ask it to stop. It does so whether anyone waits for the reply or not."""
        self.leaving = self._dismissed = True
        reply: Reply[None] = kind()
        # A forked child has no such thread.
        if self._thread is None or not self.is_of_this_process or not self._hand_over(Stop(reply)):
            reply.fill(None)
        return reply

    async def run(
        self,
        call: Callable[[Db], T],
        *,
        urgent: bool = False,
        hasty: bool = False,
        kind: type[Reply[Any]] = Reply,
    ) -> T:
        """The answer comes after the commit. `kind` is how the caller waits: on its loop, or as a thread without one."""
        reply: Reply[T] = kind()
        self._put(Work(call, reply, urgent, hasty))
        return await reply

    def _put(self, item: object) -> None:
        self.check()
        if not self._hand_over(item):
            raise NotOpen(CLOSED)

    def _hand_over(self, item: object) -> bool:
        """Whether the thread will answer. It is either given the item or not: what is refused here is never done."""
        with self._lock:
            if not self._over:
                self._inbox.put(item)
            return not self._over

    @property
    def running(self) -> bool:
        return self._serves and not self._dismissed and not self._over

    @property
    def is_begun(self) -> bool:
        return self._thread is not None

    @property
    def is_of_this_process(self) -> bool:
        return self._process == os.getpid()

    @property
    def is_spent(self) -> bool:
        """Whether it has ended, or will."""
        return self.leaving or self._over

    def check(self) -> None:
        """Raise unless it runs, and in this process."""
        if self._process not in (0, os.getpid()) or (self.is_forked and not self.running):
            raise NotOpen(FORKED)
        if not self.running:
            raise NotOpen(_NOT_OPEN)

    def _whole_body(self, ready: Reply[None]) -> Body:
        try:
            yield from self._patient_open()
        except Exception as error:  # noqa: BLE001  whoever waits for the store is told
            yield from self._leave(NotOpen(CLOSED))
            deliver([(ready, explained(error))])
            return
        self._serves = True
        deliver([(ready, None)])
        try:
            yield from self._body()
            self._db.close()
        except Exception as error:
            yield from self._die(error)
            raise
        yield from self._leave(NotOpen(CLOSED))

    def _patient_open(self) -> Body:
        waited = 0.0  # really, whatever clock a test holds: another process has the lock
        while True:
            try:
                self._open()
            except apsw.BusyError:
                if self._dismissed or waited > LOCK_WAIT:
                    raise
                pause = jittered(0.01, 0.5)
                yield Pause(pause)
                waited += pause
            else:
                return

    def _awake(self) -> Body:
        """Open the connection again that was closed for a fork."""
        if self._db.rests:
            yield from self._patient_open()

    def _leave(self, told: Exception) -> Body:
        """The last look into the inbox: nothing comes after it, and nothing that it finds was begun."""
        with self._lock:
            self._over = True
        left = [*self._stops, *(yield Take(self._inbox, 0))]
        deliver([(reply_of(item), None if isinstance(item, Stop) else told) for item in left])

    def _die(self, error: Exception) -> Body:
        """A mistake of ours ended the thread: nobody may wait for ever for what it will not do."""
        note("store.thread_died", thread=self.name, error=repr(error))
        with suppress(apsw.Error):
            self._db.close()  # or its transaction would keep the lock
        died = StoreError(
            f"The thread {self.name} has ended by a mistake of its own: {error!r}. Open the store again."
        )
        yield from self._leave(died)
        answer_all(self._unanswered(), died)

    def _unanswered(self) -> list[Reply[Any]]:
        return []

    def _open(self) -> None:
        self._db = self._opened()

    @abstractmethod
    def _body(self) -> Body:
        """Serve until it is told to stop: until there is something in `_stops`."""


def reply_of(item: Any) -> Reply[Any]:
    """Of a piece of work, or of whatever else a thread is given that begins something."""
    found: Reply[Any] = item.begun if hasattr(item, "begun") else item.reply
    return found


def explained(error: Exception) -> Exception:
    """The error as the caller shall see it."""
    if not isinstance(error, apsw.Error):
        return error
    meaning = explain(error)
    meaning.__cause__ = error
    return meaning


def answer_all(replies: list[Reply[Any]], answer: Any) -> None:
    deliver([(reply, answer) for reply in replies])
