"""What the suite needs of a store's author: an empty database, its clock in our hands, and a second client."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from holdfast.kernel.world import World, inhabit
from holdfast.store.cache_ports import SharedCache
from holdfast.store.fleet_ports import SharedGuards
from holdfast.store.ports import Store
from holdfast.testing.clock import ManualClock

S = TypeVar("S")


class StoreHarness(Protocol):
    """One database for one test. `open` again starts over with an empty one."""

    world: World  # the test runs in it, and so do the stores
    tables: str  # what stands before the names of tables: `holdfast_` or `holdfast.`

    async def open(self) -> Store:
        """An open store on an empty database with all tables."""

    async def second(self, store: Store) -> Store:
        """Another client of the same database, such as another process would have."""

    async def advance(self, store: Store, seconds: float) -> None:
        """Move the database's clock. It stands still between two calls."""

    async def tear_out(self, store: Store, job_id: str) -> None:
        """Delete a queued job behind the store's back, with all that it holds: nobody is promoted in its place."""

    async def close(self) -> None:
        """Close every client and forget the database."""


class SharesGuards(Protocol):
    """All that the tests of `SharedGuards` need of a store, so that what is no store can be tested by them too."""

    @property
    def guards(self) -> SharedGuards: ...
    async def now(self) -> float: ...


class KeepsValues(Protocol):
    """The same for the tests of `SharedCache`."""

    @property
    def cache(self) -> SharedCache: ...
    async def now(self) -> float: ...


class Timed(Protocol):
    """Whatever has a clock that a harness can move."""

    async def now(self) -> float: ...


class SqliteHarness:
    """SQLite files in a folder. Durability is not what is tested here, so nothing is flushed to the disk."""

    tables = "holdfast_"

    def __init__(self, folder: Path) -> None:
        self.world = ManualClock()
        self._folder = folder
        self._number = 0
        self._clients: list[Store] = []

    async def open(self) -> Store:
        await self.close()
        self._number += 1
        return await self._client()

    async def second(self, store: Store) -> Store:
        return await self._client()

    async def advance(self, store: Store, seconds: float) -> None:
        self.world.advance(seconds)

    async def tear_out(self, store: Store, job_id: str) -> None:
        async with store.transaction() as tx:
            ((seq,),) = await tx.fetch("SELECT seq FROM holdfast_job WHERE id = $1", job_id)
            for table in ("job", "queued", "turn", "slot"):
                await tx.execute(f"DELETE FROM holdfast_{table} WHERE seq = $1", seq)  # noqa: S608

    async def close(self) -> None:
        while self._clients:
            await self._clients.pop().close()

    async def _client(self) -> Store:
        from holdfast.store.sqlite.store import SqliteStore  # noqa: PLC0415  only who tests SQLite needs its driver

        store = SqliteStore(self._folder / f"{self._number}.db", synchronous="OFF")
        await store.open()
        self._clients.append(store)
        return store


@contextmanager
def event_loop(harness: StoreHarness) -> Generator[asyncio.Runner, None, None]:
    """A loop whose tasks, and the threads they start, live in the harness's world."""
    with inhabit(harness.world), asyncio.Runner() as runner:
        yield runner


class Conformance:
    """A subject's promises as tests. A subclass gives the fixture `harness`."""

    harness: ClassVar[Any]  # the fixture
    bench: Any  # what it returned, for the test that runs: a StoreHarness, or one that opens what only `SharesGuards`

    def __init_subclass__(cls) -> None:
        """Every `async def test_…(self, store)` becomes a plain test that takes the fixture."""
        super().__init_subclass__()
        _refuse_twins(cls)
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _plain(test))

    async def advance(self, store: Timed, seconds: float) -> None:
        await self.bench.advance(store, seconds)

    async def second(self, store: S) -> S:
        found: S = await self.bench.second(store)
        return found


def _refuse_twins(cls: type[Conformance]) -> None:
    """Two subjects with a test of one name would silently test only one of the promises."""
    seen: dict[str, type] = {}
    for base in cls.__mro__:
        for name in vars(base):
            if name.startswith("test_") or (name.startswith("_") and not name.startswith("__")):
                first = seen.setdefault(name, base)
                if first is not base and not issubclass(first, base):
                    raise TypeError(f"{name} is in {first.__name__} and in {base.__name__}: rename one.")


def _plain(test: Callable[[Any, Any], Coroutine[Any, Any, None]]) -> Callable[[Any, StoreHarness], None]:
    @functools.wraps(test)
    def run(self: Conformance, harness: StoreHarness) -> None:
        __tracebackhide__ = True
        self.bench = harness
        with event_loop(harness) as runner:
            runner.run(_with_store(self, harness))

    async def _with_store(self: Conformance, harness: StoreHarness) -> None:
        __tracebackhide__ = True
        try:
            await test(self, await harness.open())
        finally:
            await harness.close()

    del run.__dict__["__wrapped__"]  # or pytest would look for a fixture `store`
    return run
