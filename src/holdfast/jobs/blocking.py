"""From sync code into the engine: on the loop that has opened it, else on one loop of our own in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import (
    BackCalls,
    LoopThread,
    call_from_thread,
    call_in_thread,
    new_lock,
    result_of,
    submit,
)
from holdfast.store.ports import Store, Tx

T = TypeVar("T")


class Portal:
    """Runs coroutines for callers without a loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.home: asyncio.AbstractEventLoop | None = None  # the loop on which the store was opened
        self._own: LoopThread | None = None
        self._lock = new_lock()  # who opens, submits or closes: many threads may be the first

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], back: BackCalls | None = None) -> T:
        """Run it and wait for its end. An error where a loop is running: that one would stand still.

        Meanwhile this thread calls what the coroutine hands `back` to it.
        """
        _refuse_loop()
        with self._lock:
            ending = submit(self._loop(), work())
        return result_of(ending) if back is None else back.serve(ending)

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        return self._store.transaction()

    @contextmanager
    def entered(self, block: AbstractAsyncContextManager[Tx]) -> Generator[BlockingTx, None, None]:
        """The block of a transaction, for this thread."""
        tx = self.run(lambda: _entered(block))
        try:
            yield BlockingTx(tx, self)
        except BaseException as error:
            self.run(partial(_left, block, error))
            raise
        self.run(partial(_left, block, None))

    def run_here(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """With a caller's sync connection, which belongs to this thread: nothing in it may wait for a loop."""
        _refuse_loop()
        self.run(self._prepare)
        coroutine = work()
        try:
            coroutine.send(None)
        except StopIteration as end:
            found: T = end.value
            return found
        coroutine.close()
        raise UsageError(
            "From sync code, tx is a sync connection or session (psycopg, SQLAlchemy). In an async function, use `await`."
        )

    async def _prepare(self) -> None:
        """What the store asks once, before it takes a caller's connection."""
        if (identify := getattr(self._store, "id", None)) is not None:
            await identify()

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self.home is not None and self.home.is_running():
            return self.home
        if self._own is None:
            self._own = self._opened()
        return self._own.loop

    def _opened(self) -> LoopThread:
        own = LoopThread("holdfast-blocking")
        try:
            call_from_thread(own.loop, self._store.open())
        except BaseException:
            own.stop()
            raise
        return own

    async def take_over(self) -> None:
        """This loop opens the store next. What sync code has opened is closed first: a store is open on one loop."""
        await call_in_thread(partial(self._close, asyncio.get_running_loop()))

    def close(self) -> None:
        """Close the store when it was opened here."""
        self._close(self.home)

    def _close(self, home: asyncio.AbstractEventLoop | None) -> None:
        """Who comes meanwhile waits, and then finds the new home."""
        with self._lock:
            own, self._own, self.home = self._own, None, home
            if own is not None:
                try:
                    call_from_thread(own.loop, self._store.close())
                finally:
                    own.stop()


class BlockingTx:
    """A transaction for sync code: `$1`, `$2` on both stores, rows are tuples."""

    def __init__(self, tx: Tx, portal: Portal) -> None:
        self.inner, self._portal = tx, portal

    def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement; returns how many rows it changed."""
        return self._portal.run(lambda: self.inner.execute(sql, *params))

    def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        return self._portal.run(lambda: self.inner.fetch(sql, *params))


async def _entered(block: AbstractAsyncContextManager[Tx]) -> Tx:
    return await block.__aenter__()


async def _left(block: AbstractAsyncContextManager[Tx], error: BaseException | None) -> None:
    """An exception of the block is raised again where it came from."""
    try:
        await block.__aexit__(None if error is None else type(error), error, None)
    except BaseException as raised:
        if raised is not error:
            raise


def _refuse_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        "This thread runs an event loop, which would stand still. Use `await task.enqueue(…)` here."
    )
