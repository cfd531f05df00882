"""Has a test's PostgreSQL go by the test's clock. Its clock is one function of the schema, which is replaced meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import LoopThread, call_from_thread
from holdfast.kernel.world import current
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.ports import Store
from holdfast.testing.clock import ManualClock

_ITS_OWN = "SELECT clock_timestamp()"
_NOW = """CREATE OR REPLACE FUNCTION holdfast.now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $now$ {} $now$"""
_LOOK = "SELECT trim(prosrc) FROM pg_proc WHERE oid = 'holdfast.now()'::regprocedure"
# Leases of an earlier test may end in years: its clock was years ahead.
_IN_USE = """SELECT name, owner FROM holdfast.lease
    WHERE until BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 hour' ORDER BY name LIMIT 1"""


@contextmanager
def database_clock(hf: Holdfast) -> Generator[None, None, None]:
    """While the block lasts the program's database goes by the clock that rules here, unless it does so in any case."""
    clock = current()
    if inside(hf).location.kind == "sqlite":
        yield
        return
    database = _Database(hf.store.twin())
    try:
        if not isinstance(clock, ManualClock):
            database.restore()  # a test that was killed may have left its clock
            yield
            return
        database.check_is_ours(inside(hf).location)
        unfollow, is_busy = clock.follow(database.show), _is_busy(hf.store)
        clock.busy.append(is_busy)
        try:
            yield
        finally:
            clock.busy.remove(is_busy)
            unfollow()
            database.restore()
    finally:
        database.close()


def _is_busy(store: Store) -> Callable[[], bool]:
    from holdfast.store.postgres.store import PostgresStore  # noqa: PLC0415  its driver may not be there

    assert isinstance(store, PostgresStore)
    return lambda: store.database.pool.is_in_use


class _Database:
    """A connection of its own, on a loop of its own: a test moves its clock in plain code, and goes on when all have heard of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = LoopThread("holdfast-database-clock")
        try:
            call_from_thread(self._thread.loop, store.open())
        except BaseException:
            self._thread.stop()
            raise

    def show(self, now: float) -> None:
        self._do(_NOW.format(f"SELECT to_timestamp({now!r}::float8)"))

    def restore(self) -> None:
        if not self._is_its_own():
            self._do(_NOW.format(_ITS_OWN))

    def check_is_ours(self, where: object) -> None:
        """Others would lose their leases, and see years go by."""
        if self._is_its_own() and (found := self._do(_IN_USE)):
            [(name, owner)] = found
            raise UsageError(
                f"{where!r} is in use: {owner} holds the lease {name!r}. A test moves the clock of the whole database. "
                "Give it one of its own, or stop what works there."
            )

    def _is_its_own(self) -> bool:
        return bool(self._do(_LOOK) == [(_ITS_OWN,)])

    def _do(self, sql: str) -> Any:
        async def done() -> Any:
            async with self._store.transaction() as tx:
                return await tx.fetch(sql) if sql.startswith("SELECT") else await tx.execute(sql)

        return call_from_thread(self._thread.loop, done())

    def close(self) -> None:
        try:
            call_from_thread(self._thread.loop, self._store.close())
        finally:
            self._thread.stop()
