"""A thread with a connection of its own that serves callers, and what they hand to it."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import apsw

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import NotOpen, StoreError, UsageError
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import Reply, deliver, mailbox, start_thread
from holdfast.kernel.telemetry import note
from holdfast.kernel.world import Body, Pause, Take
from holdfast.store.sqlite.connection import Db, explain

T = TypeVar("T")

_CLOSED = "The store was closed before this was done. Nothing was stored."
LOCK_WAIT = 10.0  # seconds: longer than any transaction of ours may hold the lock


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """Something to do in a transaction, alone or with others; done again when the first try was rolled back."""

    call: Callable[[Db], T]
    reply: Reply[T]
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    reply: Reply[None]


class Served:
    """Started, asked and stopped from coroutines; the body runs on the thread."""

    name: str

    def __init__(self, opened: Callable[[], Db]) -> None:
        self._opened = opened
        self._inbox = mailbox()
        self._db: Db
        self._process = 0
        self.running = self._over = False

    async def start(self) -> None:
        if self.running:
            raise UsageError("The store is open already. Open it once; tasks and requests share it.")
        self._process, self._over = os.getpid(), False
        ready: Reply[None] = Reply()
        self._thread = start_thread(self.name, self._whole_body(ready))
        try:
            await ready
        except asyncio.CancelledError:  # or its thread would stay, beside that of the next start
            stopped: Reply[None] = Reply()
            self._inbox.put(Stop(stopped))
            await asyncio.shield(_heard(stopped))
            raise
        self.running = True

    async def stop(self) -> None:
        """What was asked before is still done."""
        if self.running:
            self.running = False
            if self._process != os.getpid():
                return  # a forked child has no such thread
            reply: Reply[None] = Reply()
            self._inbox.put(Stop(reply))
            await reply

    async def run(self, call: Callable[[Db], T], *, urgent: bool = False) -> T:
        """The answer comes after the commit."""
        reply: Reply[T] = Reply()
        self._put(Work(call, reply, urgent))
        return await reply

    def _put(self, item: object) -> None:
        self.check()
        self._inbox.put(item)
        # The thread sets `_over` before it looks into its inbox for the last time: one of us answers.
        if self._over:
            reply_of(item).fill(NotOpen(_CLOSED))

    def check(self) -> None:
        """Raise unless it runs, and in this process."""
        if not self.running:
            raise NotOpen("The store is not open. Use it inside `async with`, or call open() first.")
        if self._process != os.getpid():
            raise NotOpen(
                "The store was opened before this process was forked. Open a store of its own here."
            )

    def _whole_body(self, ready: Reply[None]) -> Body:
        until = monotonic() + LOCK_WAIT
        while True:
            try:
                self._open()
            except apsw.BusyError as busy:
                if monotonic() > until:
                    yield from self._give_up(ready, busy)
                    return
                yield Pause(jittered(0.01, 0.5))
            except Exception as error:  # noqa: BLE001  whoever waits for the store is told
                yield from self._give_up(ready, error)
                return
            else:
                break
        deliver([(ready, None)])
        try:
            stop = yield from self._body()
        except Exception as error:
            yield from self._die(error)
            raise
        self._over = True
        answer_all([reply_of(item) for item in (yield Take(self._inbox, 0))], NotOpen(_CLOSED))
        deliver([(stop.reply, None)])

    def _give_up(self, ready: Reply[None], error: Exception) -> Body:
        """It cannot be opened."""
        deliver([(ready, explained(error))])
        answer_all([reply_of(item) for item in (yield Take(self._inbox, 0))], NotOpen(_CLOSED))

    def _die(self, error: Exception) -> Body:
        """A mistake of ours ended the thread: nobody may wait for ever for what it will not do."""
        self.running, self._over = False, True
        note("store.thread_died", thread=self.name, error=repr(error))
        died = StoreError(
            f"The thread {self.name} has ended by a mistake of its own: {error!r}. Open the store again."
        )
        answer_all([*self._unanswered(), *(reply_of(item) for item in (yield Take(self._inbox, 0)))], died)

    def _unanswered(self) -> list[Reply[Any]]:
        return []

    def _open(self) -> None:
        self._db = self._opened()

    @abstractmethod
    def _body(self) -> Generator[Take[Any] | Pause, Any, Stop]:
        """Serve until it is told to stop."""


async def _heard(reply: Reply[None]) -> None:
    with suppress(NotOpen):
        await reply


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
