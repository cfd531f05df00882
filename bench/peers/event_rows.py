"""The rows that a producer and a handler write on PostgreSQL, when they shall: BENCH_ROWS."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import asyncpg

from bench.place import url

WITH_ROWS = bool(os.environ.get("BENCH_ROWS"))
CALLERS, HANDLERS = 20, 10  # connections
_TABLES = """
CREATE TABLE placed (number bigint NOT NULL, pad text NOT NULL);
CREATE TABLE handled (number bigint NOT NULL, pad text NOT NULL)"""


class Rows:
    """A pool of connections, where there is anything to write."""

    def __init__(self, size: int) -> None:
        self._size, self._pool = size, None

    async def open(self) -> None:
        if WITH_ROWS:
            self._pool: Any = await asyncpg.create_pool(url(), min_size=self._size, max_size=self._size)

    async def close(self) -> None:
        if WITH_ROWS:
            await self._pool.close()

    async def write(self, table: str, job: dict[str, Any]) -> None:
        """In a transaction, as whoever has more to write does."""
        if WITH_ROWS:
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(
                    f"INSERT INTO {table} (number, pad) VALUES ($1, $2)", job["number"], job["pad"]
                )

    async def write_alone(self, table: str, job: dict[str, Any]) -> None:
        """With the fewest round trips: one statement is a transaction of its own."""
        if WITH_ROWS:
            await self._pool.execute(
                f"INSERT INTO {table} (number, pad) VALUES ($1, $2)", job["number"], job["pad"]
            )


def prepare() -> None:
    if WITH_ROWS:
        asyncio.run(_make_tables())


async def _make_tables() -> None:
    connection = await asyncpg.connect(url())
    await connection.execute(_TABLES)
    await connection.close()


async def count() -> int:
    connection = await asyncpg.connect(url())
    try:
        return int(await connection.fetchval("SELECT count(*) FROM handled"))
    finally:
        await connection.close()
