"""The limits of PostgreSQL through asyncpg."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import asyncpg

from bench.limits.times import middle_and_worst
from bench.place import arguments, url
from bench.schema.model import Lap
from bench.schema.race import race

BATCH = 500
_TABLE = """
CREATE TABLE IF NOT EXISTS job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL DEFAULT 'default',
    state smallint NOT NULL DEFAULT 0, attempt int NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT now(),
    locked_at timestamptz, args text NOT NULL);
CREATE INDEX IF NOT EXISTS job_ready ON job (queue, run_at, id) WHERE state = 0"""
_INSERT = "INSERT INTO job (args) VALUES ($1)"
CLAIM = """
UPDATE job SET state = 1, attempt = attempt + 1, locked_at = now() WHERE id IN (
    SELECT id FROM job WHERE queue = 'default' AND state = 0 AND run_at <= now()
    ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING id, args"""
DELETE = "DELETE FROM job WHERE id = ANY($1::bigint[])"

Connection = Any  # asyncpg has no types


def enqueue_one(seconds: float, **_: Any) -> dict[str, Any]:
    """Insert one row, commit, repeat: also the store's own commit time, in milliseconds."""

    async def run(connection: Connection) -> dict[str, Any]:
        statement = await connection.prepare(_INSERT)
        times, begin = [], time.perf_counter()
        while (before := time.perf_counter()) - begin < seconds:
            await statement.fetch(json.dumps(arguments(len(times))))
            times.append(1e3 * (time.perf_counter() - before))
        return {
            "rate": len(times) / (time.perf_counter() - begin),
            "jobs": len(times),
            **middle_and_worst(times),
        }

    return _with_table(run)


def enqueue_bulk(seconds: float, size: int, **_: Any) -> dict[str, Any]:
    """COPY."""

    async def run(connection: Connection) -> dict[str, Any]:
        done, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < seconds:
            await _copy(connection, size)
            done += size
        return {"rate": done / passed, "jobs": done, "size": size}

    return _with_table(run)


def drain(guess: float, seconds: float, processes: int, **_: Any) -> dict[str, Any]:
    """Claim a batch, then delete it, in several processes with a connection each."""
    jobs = int(guess * seconds)
    fill(jobs)
    (speed,) = race(_drain, processes, url())
    return {"rate": speed.rate, "jobs": jobs, "seconds": round(jobs / speed.rate, 2), "batch": BATCH}


def fill(jobs: int, more: str = "") -> None:
    """A table with so many jobs, and whatever else is to be there."""

    async def run(connection: Connection) -> dict[str, Any]:
        if more:
            await connection.execute(more)
        await _copy(connection, jobs)
        await connection.execute("VACUUM ANALYZE job")
        return {}

    _with_table(run)


def _drain(barrier: Barrier, address: str) -> list[Lap]:
    return [asyncio.run(_empty(barrier, address))]


async def _empty(barrier: Barrier, address: str) -> Lap:
    connection = await asyncpg.connect(address)
    claim, delete = await connection.prepare(CLAIM), await connection.prepare(DELETE)
    barrier.wait()
    jobs, cpu, start = 0, time.process_time(), time.time()
    end = start
    while rows := await claim.fetch(BATCH):
        await delete.fetch([row[0] for row in rows])
        jobs, end = jobs + len(rows), time.time()
    await connection.close()
    return Lap(jobs, start, end, time.process_time() - cpu)


async def _copy(connection: Connection, jobs: int) -> None:
    rows = ((json.dumps(arguments(number)),) for number in range(jobs))
    await connection.copy_records_to_table("job", columns=["args"], records=rows)


def _with_table(work: Callable[[Connection], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        connection = await asyncpg.connect(url())
        try:
            await connection.execute(_TABLE)
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(run())
