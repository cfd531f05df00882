"""Savepoints: a part of a transaction that may fail, after which the rest goes on."""

from __future__ import annotations

import asyncio

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import StatementError, TransactionEnded, UniqueViolation, UsageError
from holdfast.kernel.spawn import start
from holdfast.store.ports import Store, Tx
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, job, raises, total

_INSERT = "INSERT INTO conformance_row (id, name) VALUES ($1, $2)"


class SavepointsConformance(Conformance):
    async def _make_rows(self, store: Store) -> None:
        async with store.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS conformance_row")
            await tx.execute("CREATE TABLE conformance_row (id INTEGER PRIMARY KEY, name TEXT)")
            await tx.execute(_INSERT, 1, "first")

    async def _row_list(self, store: Store) -> list[tuple[object, ...]]:
        async with store.transaction() as tx:
            return await tx.fetch("SELECT id, name FROM conformance_row ORDER BY id")

    async def test_insert_or_else_update(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx:
            for number in (1, 2):
                try:
                    async with tx.savepoint():
                        await tx.execute(_INSERT, number, "new")
                except UniqueViolation:
                    await tx.execute("UPDATE conformance_row SET name = 'again' WHERE id = $1", number)
        assert await self._row_list(store) == [(1, "again"), (2, "new")]

    async def test_what_it_has_done_is_kept_with_the_transaction_or_not_at_all(self, store: Store) -> None:
        await self._make_rows(store)
        with raises(Rollback):
            async with store.transaction() as tx:
                async with tx.savepoint():
                    await tx.execute(_INSERT, 2, "a")
                    await store.jobs.enqueue([job()], tx=tx)
                raise Rollback
        assert len(await self._row_list(store)) == 1
        assert await total(store) == 0

    async def test_verbs_in_it_are_taken_back_too(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx:
            kept = (await store.jobs.enqueue([job()], tx=tx))[0].id
            with raises(Rollback):
                async with tx.savepoint():
                    await store.jobs.enqueue([job(), job()], tx=tx)
                    await tx.execute(_INSERT, 2, "a")
                    raise Rollback
            await tx.execute(_INSERT, 3, "b")
        assert await self._row_list(store) == [(1, "first"), (3, "b")]
        assert await total(store) == 1
        assert await store.jobs.get(kept) is not None

    async def test_they_nest(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx, tx.savepoint():
            await tx.execute(_INSERT, 2, "outer")
            with raises(UniqueViolation):
                async with tx.savepoint():
                    await tx.execute(_INSERT, 3, "inner")
                    async with tx.savepoint():
                        await tx.execute(_INSERT, 4, "innermost")
                    await tx.execute(_INSERT, 1, "taken")
            async with tx.savepoint():
                await tx.execute(_INSERT, 5, "after")
        assert [row[0] for row in await self._row_list(store)] == [1, 2, 5]

    async def test_an_error_that_was_swallowed_in_it_takes_it_back(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx:
            with raises(TransactionEnded, "savepoint", "UniqueViolation"):
                async with tx.savepoint():
                    await tx.execute(_INSERT, 2, "a")
                    with raises(UniqueViolation):
                        await tx.execute(_INSERT, 1, "taken")
                    with raises(TransactionEnded, "UniqueViolation"):
                        await tx.fetch("SELECT 1")
            await tx.execute(_INSERT, 3, "b")
        assert [row[0] for row in await self._row_list(store)] == [1, 3]

    async def test_savepoints_by_hand_work_too(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx:
            await tx.execute("SAVEPOINT mine")
            with raises(UniqueViolation):
                await tx.execute(_INSERT, 1, "taken")
            await tx.execute("ROLLBACK TO SAVEPOINT mine")
            await tx.execute(_INSERT, 2, "a")
        assert [row[0] for row in await self._row_list(store)] == [1, 2]

    async def test_a_time_limit_in_it_leaves_the_transaction_usable(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx:
            with raises(TimeoutError):
                async with tx.savepoint(), asyncio.timeout(0.01):
                    await tx.execute(_INSERT, 2, "a")
                    await asyncio.sleep(0.02)
            await tx.execute(_INSERT, 3, "b")
        assert [row[0] for row in await self._row_list(store)] == [1, 3]

    async def test_who_is_cancelled_in_a_statement_cannot_commit(self, store: Store) -> None:
        """Nobody knows whether it was done."""
        await self._make_rows(store)

        async def cancelled(tx: Tx) -> None:
            task = start(tx.execute(_INSERT, 2, "a"), name="cancelled")
            await sleep(0)  # it has asked
            task.cancel()
            with raises(asyncio.CancelledError):
                await task

        with raises(TransactionEnded, "cancelled"):
            async with store.transaction() as tx:
                await cancelled(tx)
        assert len(await self._row_list(store)) == 1
        async with store.transaction() as tx:
            with raises(Rollback):
                async with tx.savepoint():
                    await cancelled(tx)
                    raise Rollback
            await tx.execute(_INSERT, 3, "b")
        assert [row[0] for row in await self._row_list(store)] == [1, 3]

    async def test_they_end_in_the_reverse_order(self, store: Store) -> None:
        await self._make_rows(store)
        with raises(UsageError, "reverse order"):
            async with store.transaction() as tx:
                outer, inner = tx.savepoint(), tx.savepoint()
                await outer.__aenter__()
                await inner.__aenter__()
                await tx.execute(_INSERT, 2, "a")
                try:
                    await outer.__aexit__(None, None, None)
                finally:
                    with raises(TransactionEnded):
                        await inner.__aexit__(None, None, None)
        assert len(await self._row_list(store)) == 1

    async def test_one_is_entered_once_and_not_after_the_end(self, store: Store) -> None:
        async with store.transaction() as tx:
            point = tx.savepoint()
            async with point:
                pass
            with raises(UsageError, "once"):
                await point.__aenter__()
        with raises(TransactionEnded):
            await tx.savepoint().__aenter__()

    async def test_a_statement_that_is_wrong_in_it_leaves_the_rest(self, store: Store) -> None:
        await self._make_rows(store)
        async with store.transaction() as tx:
            with raises(StatementError):
                async with tx.savepoint():
                    await tx.execute("SELEC 1")
            await tx.execute(_INSERT, 2, "a")
        assert len(await self._row_list(store)) == 2
