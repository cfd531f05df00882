"""One extra connection that hears NOTIFY. When it is lost it comes back by itself, and says that news may have been missed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from holdfast.kernel.clock import patience, recover
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import cancel, end, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.bell import EVERYONE
from holdfast.store.postgres.connection import connect
from holdfast.store.postgres.failures import FAILURES
from holdfast.store.postgres.url import Target

CHANNEL = "holdfast_wake"
FIRST_DELAY, LONGEST_DELAY = 0.1, 30.0  # seconds before the connection is made again
_PROOF = 5.0  # seconds in which our own NOTIFY must be heard
_PING = 30.0  # seconds between two signs of life: a connection that was cut off silently tells nobody
_POOLER = "a NOTIFY of our own was not heard: is a pooler in between? Let HOLDFAST_LISTEN_URL lead to the server itself"


class Listener:
    def __init__(
        self, target: Target, ring: Callable[[Collection[str]], None], probe: Callable[[], Awaitable[None]]
    ) -> None:
        self._target, self._ring, self._probe = target, ring, probe
        self._task: asyncio.Task[None] | None = None
        self._is_noted = False

    def start(self) -> None:
        """Listen from now on; once is enough."""
        if self._task is None or self._task.done():
            self._task = spawn(self._run(), name="wakeups:listen")

    async def stop(self) -> None:
        if (task := self.abandon()) is not None:
            if task.get_loop() is asyncio.get_running_loop():
                await end(task)
            else:
                cancel(task)

    def abandon(self) -> asyncio.Task[None] | None:
        task, self._task = self._task, None
        return task

    async def _run(self) -> None:
        delay = FIRST_DELAY
        while True:
            try:
                connection = await connect(self._target)
                delay = FIRST_DELAY
                try:
                    await self._listen(connection)
                finally:
                    connection.terminate()
            except FAILURES as error:
                self._note(repr(error))
            await recover(jittered(delay, 0.5))
            delay = min(delay * 2, LONGEST_DELAY)

    async def _listen(self, connection: Any) -> None:
        """Return when the connection is lost."""
        lost, heard = asyncio.Event(), asyncio.Event()

        def hear(connection: object, process: int, channel: str, payload: str) -> None:  # noqa: ARG001
            heard.set()
            self._ring([name for name in payload.split("\n") if name])

        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(CHANNEL, hear)
        self._ring((EVERYONE,))  # whatever was said while nobody listened
        await self._prove(heard)
        while not lost.is_set():
            try:
                async with patience(_PING):
                    await lost.wait()
            except TimeoutError:
                await connection.execute("SELECT 1")

    async def _prove(self, heard: asyncio.Event) -> None:
        try:
            await self._probe()
            async with patience(_PROOF):
                await heard.wait()
        except TimeoutError:
            self._note(_POOLER)
        except HoldfastError:
            return  # the store has other worries

    def _note(self, reason: str) -> None:
        """Once: from now on whoever waits does so in vain, and polls."""
        if not self._is_noted:
            self._is_noted = True
            note("wakeups.polling", store="postgres", reason=reason)
