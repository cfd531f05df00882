"""SAQ on Redis or PostgreSQL, as the URL says."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psycopg
from saq import Queue

from bench import body
from bench.place import url


async def noop(_: dict[str, Any], *, job: dict[str, Any]) -> None:
    await body.run_async(job)


def settings() -> dict[str, Any]:
    concurrency = 10 if os.environ.get("BENCH_DEFAULTS") else 50
    return {"queue": Queue.from_url(url()), "functions": [("noop", noop)], "concurrency": concurrency}


class Producer:
    async def open(self) -> None:
        self._queue = Queue.from_url(url())
        await self._queue.connect()

    async def close(self) -> None:
        await self._queue.disconnect()

    async def one(self, job: dict[str, Any]) -> None:
        await self._queue.enqueue("noop", job=job)


def prepare() -> None:
    """It makes its tables when it connects."""
    asyncio.run(_connect())


async def _connect() -> None:
    producer = Producer()
    await producer.open()
    await producer.close()


def workers(processes: int) -> list[list[str]]:
    program = str(Path(sys.executable).parent / "saq")
    return [[program, "bench.peers.saq.settings", "--workers", str(processes)]]


if url().startswith("postgres"):

    def left() -> int:
        with psycopg.connect(url()) as connection:
            row = connection.execute(
                "SELECT count(*) FROM saq_jobs WHERE status IN ('queued', 'active')"
            ).fetchone()
            return 0 if row is None else int(row[0])
