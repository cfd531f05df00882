"""PgQueuer on PostgreSQL through asyncpg, on uvloop as its command does, in batches of 500."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench import body
from bench.place import url


class Producer:
    async def open(self) -> None:
        self._connection = await asyncpg.connect(url())
        self._queries = Queries(AsyncpgDriver(self._connection))

    async def close(self) -> None:
        await self._connection.close()

    async def one(self, job: dict[str, Any]) -> None:
        await self._queries.enqueue("noop", json.dumps(job).encode())

    async def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        await self._queries.enqueue(
            ["noop"] * len(jobs), [json.dumps(job).encode() for job in jobs], [0] * len(jobs)
        )


def prepare() -> None:
    asyncio.run(_install())


async def _install() -> None:
    connection = await asyncpg.connect(url())
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


def left() -> int:
    return asyncio.run(_left())


async def _left() -> int:
    connection = await asyncpg.connect(url())
    try:
        return int(await connection.fetchval("SELECT count(*) FROM pgqueuer"))
    finally:
        await connection.close()


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.pgqueuer"]] * processes


async def serve() -> None:
    program = PgQueuer(AsyncpgDriver(await asyncpg.connect(url())))

    @program.entrypoint("noop")
    async def noop(job: Any) -> None:
        await body.run_async(json.loads(job.payload))

    await program.run(batch_size=10 if os.environ.get("BENCH_DEFAULTS") else 500)


if __name__ == "__main__":
    logging.getLogger("pgqueuer").setLevel(logging.WARNING)
    uvloop.run(serve())
