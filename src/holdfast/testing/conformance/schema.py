"""Tables, clock and epoch: what a store says of itself."""

from __future__ import annotations

import asyncio

from holdfast.kernel.errors import NotOpen, SchemaChanged, SchemaTooNew
from holdfast.store.ports import Store
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import put, raises, take_one, the, total


class SchemaConformance(Conformance):
    async def test_tables_that_are_up_to_date_need_no_migration(self, store: Store) -> None:
        assert await store.pending() == []
        assert await store.migrate() == []

    async def test_migrating_keeps_what_is_stored(self, store: Store) -> None:
        job_id = await put(store)
        other = await self.second(store)
        assert await other.migrate() == []
        await the(other, job_id)

    async def test_migrating_at_once_is_no_error(self, store: Store) -> None:
        other = await self.second(store)
        assert await asyncio.gather(*(client.migrate() for client in [store, other] * 3)) == [[]] * 6

    async def test_tables_of_a_newer_version_are_refused(self, store: Store) -> None:
        async with store.transaction() as tx:
            await tx.execute(
                f"INSERT INTO {self.bench.tables}migration (number, name, checksum, applied_at) "  # noqa: S608
                f"SELECT 9999, '9999_future', 'x', applied_at FROM {self.bench.tables}migration WHERE number = 1"
            )
        with raises(SchemaTooNew, "9999"):
            await store.pending()
        with raises(SchemaTooNew, "9999"):
            await store.migrate()

    async def test_a_migration_that_was_edited_is_refused(self, store: Store) -> None:
        table = f"{self.bench.tables}migration"
        async with store.transaction() as tx:
            ((checksum,),) = await tx.fetch(f"SELECT checksum FROM {table} WHERE number = 1")  # noqa: S608
            await tx.execute(f"UPDATE {table} SET checksum = 'x' WHERE number = 1")  # noqa: S608
        with raises(SchemaChanged, "0001_jobs"):
            await store.pending()
        with raises(SchemaChanged, "0001_jobs"):
            await store.migrate()
        async with store.transaction() as tx:  # a harness may use the database again
            await tx.execute(f"UPDATE {table} SET checksum = $1 WHERE number = 1", checksum)  # noqa: S608
        assert await store.pending() == []

    async def test_now_is_the_clock_of_the_database(self, store: Store) -> None:
        before = await store.now()
        await self.advance(store, 12.5)
        assert await store.now() == before + 12.5

    async def test_raise_epoch_makes_every_later_token_larger(self, store: Store) -> None:
        await put(store)
        await put(store)
        before = (await take_one(store)).token
        other = await self.second(store)
        epoch = await other.raise_epoch()
        assert before < epoch * 2**40 <= (await take_one(store)).token

    async def test_a_store_that_is_closed_says_so(self, store: Store) -> None:
        other = await self.second(store)
        await other.close()
        with raises(NotOpen):
            await put(other)
        with raises(NotOpen):
            await other.jobs.count()
        await other.close()
        assert await total(store) == 0
