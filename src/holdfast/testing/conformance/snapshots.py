"""Snapshots: all of one moment, in nobody's way, and no way to write."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.kernel.errors import (
    NeverAwaited,
    StatementError,
    TransactionEnded,
    UsageError,
    WrongConnection,
)
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, job, put, raises, total

_SELECT = "SELECT id, name FROM conformance_page ORDER BY id"


class SnapshotsConformance(Conformance):
    async def _pages(self, store: Store, *ids: int) -> None:
        async with store.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS conformance_page")
            await tx.execute("CREATE TABLE conformance_page (id INTEGER PRIMARY KEY, name TEXT)")
            await self._add(tx, *ids)

    async def _add(self, tx: Any, *ids: int) -> None:
        await tx.execute_many("INSERT INTO conformance_page VALUES ($1, $2)", [(each, "a") for each in ids])

    async def test_a_snapshot_is_of_the_moment_in_which_it_began(self, store: Store) -> None:
        await self._pages(store, 1)
        async with store.snapshot() as old:
            async with store.transaction() as tx:
                await self._add(tx, 2)
            async with store.snapshot() as new:
                assert await old.fetch(_SELECT) == [(1, "a")]
                assert await new.fetch(_SELECT) == [(1, "a"), (2, "a")]
                assert await new.fetch("SELECT id FROM conformance_page WHERE id = ANY($1)", [2, 3]) == [(2,)]
            assert await old.fetch(_SELECT) == [(1, "a")]
        async with store.snapshot() as tx:
            assert await tx.fetch("SELECT id FROM conformance_page WHERE id = $1", 2) == [(2,)]

    async def test_it_waits_for_no_transaction_and_none_for_it(self, store: Store) -> None:
        await self._pages(store, 1)
        async with store.snapshot() as before, asyncio.timeout(60):
            async with store.transaction() as tx:
                await self._add(tx, 2)
                await asyncio.create_task(self._reads(store, [(1, "a")]))
            await put(store)
            assert await before.fetch(_SELECT) == [(1, "a")]
        assert await total(store) == 1

    async def _reads(self, store: Store, rows: list[tuple[Any, ...]]) -> None:
        async with store.snapshot() as tx:
            assert await tx.fetch(_SELECT) == rows

    async def test_many_are_open_at_once(self, store: Store) -> None:
        await self._pages(store, 1)
        await asyncio.gather(*(self._reads(store, [(1, "a")]) for _ in range(30)))

    async def test_nothing_is_written_in_it(self, store: Store) -> None:
        await self._pages(store, 1)
        for sql in (
            "INSERT INTO conformance_page VALUES (2, 'b') RETURNING id",
            "DELETE FROM conformance_page",
        ):
            with raises(StatementError, "snapshot"):
                async with store.snapshot() as tx:
                    await tx.fetch(sql)
        async with store.snapshot() as tx:
            with raises(WrongConnection):
                await store.jobs.enqueue([job()], tx=tx)
        for sql in ("COMMIT", "ROLLBACK", "SELECT 1; SELECT 2"):
            with raises(UsageError):
                async with store.snapshot() as tx:
                    await tx.fetch(sql)
        await self._reads(store, [(1, "a")])
        assert await total(store) == 0

    async def test_after_a_statement_that_failed_nothing_more_is_read(self, store: Store) -> None:
        await self._pages(store, 1)
        async with store.snapshot() as tx:
            with raises(StatementError):
                await tx.fetch("SELECT * FROM there_is_no_such_table")
            with raises(TransactionEnded, "hf.snapshot()"):
                await tx.fetch(_SELECT)
        await self._reads(store, [(1, "a")])

    async def test_a_snapshot_that_has_ended_reads_no_more(self, store: Store) -> None:
        await self._pages(store, 1)
        with raises(Rollback):
            async with store.snapshot() as tx:
                raise Rollback
        with raises(TransactionEnded):
            await tx.fetch(_SELECT)
        block = store.snapshot()
        async with block:
            with raises(UsageError, "once"):
                await block.__aenter__()

    async def test_a_read_that_nobody_awaits_is_noticed(self, store: Store) -> None:
        with raises(NeverAwaited, "SELECT 1"):
            async with store.snapshot() as tx:
                tx.fetch("SELECT 1")  # type: ignore[unused-coroutine]

    async def test_others_may_be_written_beside_it(self, store: Store) -> None:
        async with store.snapshot():
            await store.jobs.enqueue([job()])
            async with store.transaction() as tx:
                await store.jobs.enqueue([job()], tx=tx)
        assert await total(store) == 2

    async def test_who_gives_up_leaves_none_open(self, store: Store) -> None:
        async def read() -> None:
            async with store.snapshot() as tx:
                while True:
                    await tx.fetch("SELECT 1")

        for _ in range(150):
            task = asyncio.create_task(read())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        async with store.snapshot() as tx:
            assert await tx.fetch("SELECT 1") == [(1,)]
