"""From sync code into the engine: on the loop that has opened it, else on one loop of our own in a thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar
from weakref import WeakValueDictionary

from holdfast.kernel.errands import BackCalls, Errand
from holdfast.kernel.errors import UsageError
from holdfast.kernel.forks import keep_loop, tell_child
from holdfast.kernel.loans import Guard, Loan
from holdfast.kernel.loops import LoopThread, call_from_thread, call_in_thread, new_lock
from holdfast.kernel.threads import sheltered
from holdfast.kernel.waits import at_once
from holdfast.store.ports import Store, Tx
from holdfast.store.reading import ReadTx

T = TypeVar("T")
P = ParamSpec("P")
_ASYNC_FORM = "the async form, with `await`,"
_OWN_TX = "`async with hf.transaction() as tx`"
_ASYNC_TX = "From sync code, tx is a sync connection or session (psycopg, SQLAlchemy). In an async function, use `await`."


_portals: WeakValueDictionary[int, Portal] = WeakValueDictionary()  # by store


def portal_of(store: Store) -> Portal:
    """How sync code comes to what is kept in this store."""
    if (found := _portals.get(id(store))) is None:
        raise UsageError("This store belongs to no Holdfast: sync code has no way to it.")
    return found


class Beside(Protocol):
    """What a program opens beside its store, on the same loop."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class Portal:
    """Runs coroutines for callers without a loop."""

    def __init__(self, store: Store, beside: Beside | None = None) -> None:
        self._store, self._beside = store, beside
        self.home: asyncio.AbstractEventLoop | None = None  # the loop on which the store was opened
        self._own: LoopThread | None = None
        _portals[id(store)] = self  # it keeps the store, so nothing else has this number meanwhile
        self._lock = new_lock()  # who opens, submits or closes: many threads may be the first
        tell_child(self)

    def forked(self) -> None:
        """A child has neither of the loops, and opens the store for itself when it needs it."""
        if self.home is not None:
            keep_loop(self.home)
        self._own = self.home = None

    def run(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        back: BackCalls | None = None,
        *,
        instead: str = _ASYNC_FORM,
    ) -> T:
        """Run it and wait for its end. An error where a loop is running: that one would stand still.

        Meanwhile this thread calls what the coroutine hands `back` to it. When the thread is asked to stop, the coroutine
        is cancelled, and its end is still waited for: nothing goes on behind a run that has ended.
        `instead` is what to use on a loop.
        """
        _refuse_loop(instead)
        errand = Errand(work)
        return sheltered(partial(self._run, errand, back), errand.cancel)

    def _run(self, errand: Errand[T], back: BackCalls | None) -> T:
        self.send(errand)
        return errand.result() if back is None else back.serve(errand)

    def open(self) -> None:
        """Open the store here, unless it is open."""
        self.run(_nothing)

    def send(self, errand: Errand[Any]) -> None:
        """Begin it on the loop."""
        with self._lock:
            errand.begin(self._loop())

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        return self._store.transaction()

    def entered(
        self, block: AbstractAsyncContextManager[Tx], *, instead: str = _ASYNC_FORM
    ) -> Entered[BlockingTx]:
        """The block of a transaction, for this thread."""
        return Entered(self, block, lambda tx: BlockingTx(tx, self), instead)

    def reading(
        self, block: AbstractAsyncContextManager[ReadTx], *, instead: str = _ASYNC_FORM
    ) -> Entered[BlockingReadTx]:
        """The block of a snapshot, for this thread."""
        return Entered(self, block, lambda tx: BlockingReadTx(tx, self), instead)

    def lent(self, block: AbstractAsyncContextManager[T], *, instead: str) -> Entered[T]:
        """Another block, for this thread."""
        return Entered(self, block, lambda thing: thing, instead)

    def run_here(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str = _ASYNC_FORM) -> T:
        """With a caller's sync connection, which belongs to this thread: nothing in it may wait for a loop."""
        self.run(self._prepare, instead=instead)
        return at_once(work(), _ASYNC_TX)

    def run_with(
        self, tx: object, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str = _ASYNC_FORM
    ) -> T:
        """In a transaction of ours, or in none, on the loop; with a caller's connection, here."""
        if tx is None or isinstance(tx, BlockingTx):
            return self.run(work, instead=instead)
        return self.run_here(work, instead=instead)

    def call(
        self,
        verb: Callable[..., Coroutine[Any, Any, T]],
        args: tuple[Any, ...],
        named: dict[str, Any],
        *,
        instead: str,
    ) -> T:
        """An async verb, whose `tx` may be one of sync code."""
        tx = named.get("tx")
        given = named if tx is None else {**named, "tx": inner(tx)}
        return self.run_with(tx, partial(verb, *args, **given), instead=instead)

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
            call_from_thread(own.loop, self._open())
        except BaseException:
            own.stop()
            raise
        return own

    async def _open(self) -> None:
        await self._store.open()
        try:
            if self._beside is not None:
                await self._beside.start()
        except BaseException:  # or nobody could open it again
            await self._store.close()
            raise

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
                    call_from_thread(own.loop, self._shut())
                finally:
                    own.stop()

    async def _shut(self) -> None:
        try:
            if self._beside is not None:
                await self._beside.stop()
        finally:
            await self._store.close()


class Entered(Generic[T]):
    """`with` a block that is entered on the loop. It is lent to the thread, and ends also when this is never left."""

    def __init__(
        self,
        portal: Portal,
        block: AbstractAsyncContextManager[Any],
        lend: Callable[[Any], T],
        instead: str,
    ) -> None:
        self._portal, self._loan, self._lend, self._instead = portal, Loan(block), lend, instead
        self._guard: Guard | None = None

    def __enter__(self) -> T:
        _refuse_loop(self._instead)
        try:
            self._guard = Guard.of(self._loan)
            return self._lend(self._loan.begin(self._portal.send))
        except BaseException:
            self._loan.abandon()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loan.end(error)


class BlockingTx:
    """A transaction for sync code: `$1`, `$2` on both stores, rows are tuples."""

    def __init__(self, tx: Tx, portal: Portal) -> None:
        self.inner, self._portal = tx, portal
        self.awaits = getattr(tx, "awaits", None)

    def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement; returns how many rows it changed."""
        return self._portal.run(lambda: self.inner.execute(sql, *params), instead=_OWN_TX)

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each of these rows of values, in their order."""
        return self._portal.run(lambda: self.inner.execute_many(sql, rows), instead=_OWN_TX)

    def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        return self._portal.run(lambda: self.inner.fetch(sql, *params), instead=_OWN_TX)

    def savepoint(self) -> AbstractContextManager[None]:
        """`with tx.savepoint():` an exception takes back what the block has done, and the transaction goes on."""
        return self._savepoint()

    @contextmanager
    def _savepoint(self) -> Generator[None, None, None]:
        point = self.inner.savepoint()
        self._portal.run(point.__aenter__)
        try:
            yield
        except BaseException as error:
            self._portal.run(partial(point.__aexit__, type(error), error, error.__traceback__))
            raise
        self._portal.run(partial(point.__aexit__, None, None, None))


class BlockingReadTx:
    """A snapshot for sync code: all that it reads is of one moment."""

    def __init__(self, tx: ReadTx, portal: Portal) -> None:
        self._inner, self._portal = tx, portal

    def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]:
        """Run one statement that reads; its rows."""
        return self._portal.run(lambda: self._inner.fetch(sql, *params), instead=_OWN_TX)


async def _nothing() -> None:
    """The way to the loop opens the store."""


def inner(tx: object) -> object:
    """What the store takes for a transaction, whoever has been given it."""
    return tx.inner if isinstance(tx, BlockingTx) else tx


class InStore(Protocol):
    """What has async verbs on a store."""

    @property
    def _kept_in(self) -> Store: ...


Kept = TypeVar("Kept", bound=InStore)


def twin(
    verb: Callable[Concatenate[Kept, P], Coroutine[Any, Any, T]], of: str
) -> Callable[Concatenate[Kept, P], T]:
    """The method for code without an event loop beside an async one: `status_sync = twin(status, "handle")`."""

    @functools.wraps(verb)
    def sync(self: Kept, /, *args: P.args, **named: P.kwargs) -> T:
        work = partial(verb, self)
        return portal_of(self._kept_in).call(work, args, named, instead=f"`await {of}.{verb.__name__}(…)`")

    sync.__name__ = f"{verb.__name__}_sync"
    sync.__qualname__ = f"{verb.__qualname__}_sync"
    sync.__doc__ = f"`{verb.__name__}` for code without an event loop; an error on a running one."
    return sync


class Blocks:
    """Makes the verbs of `hf.blocking` from those of `hf`: `get = Blocks(portal, "hf.jobs")(jobs.get)`."""

    def __init__(self, portal: Portal, of: str) -> None:
        self._portal, self._of = portal, of

    def __call__(self, verb: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
        """The same, and it returns when it is done."""

        @functools.wraps(verb)
        def sync(*args: P.args, **named: P.kwargs) -> T:
            return self._portal.call(verb, args, named, instead=f"`await {self._of}.{verb.__name__}(…)`")

        return sync


def _refuse_loop(instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(f"This thread runs an event loop, which would stand still. Use {instead} here.")
