"""The conformance suite's hold on PostgreSQL: a database for each test, and its clock standing still."""

from __future__ import annotations

from clocks import freeze
from databases import Databases

from holdfast.store.postgres.store import PostgresStore
from holdfast.testing.clock import ManualClock


class PostgresHarness:
    tables = "holdfast."

    def __init__(self, databases: Databases) -> None:
        self.world = ManualClock()
        self._databases = databases
        self._url: str | None = None
        self._clients: list[PostgresStore] = []

    async def blank(self) -> PostgresStore:
        await self.close()
        self._url = await self._databases.create(migrated=False)
        return await self._client()

    async def open(self) -> PostgresStore:
        await self.close()
        self._url = await self._databases.create()
        store = await self._client()
        await freeze(store, self.world.now())
        return store

    async def second(self, store: PostgresStore) -> PostgresStore:
        return await self._client()

    async def advance(self, store: PostgresStore, seconds: float) -> None:
        self.world.advance(seconds)
        await freeze(store, self.world.now())

    async def tear_out(self, store: PostgresStore, job_id: str) -> None:
        async with store.transaction() as tx:
            await tx.execute("DELETE FROM holdfast.job WHERE id = $1::uuid", job_id)

    async def close(self) -> None:
        while self._clients:
            await self._clients.pop().close()
        if self._url is not None:
            url, self._url = self._url, None
            await self._databases.give_back(url)

    async def _client(self) -> PostgresStore:
        store = PostgresStore(f"{self._url}?pool_size=5")
        await store.open()
        self._clients.append(store)
        return store
