"""What a store can do by itself for who emits: a row and an event, two bare inserts in one transaction."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any

import apsw
import asyncpg

from bench.place import arguments, url

CONNECTIONS = 20
_PLACED = "CREATE TABLE placed (number BIGINT NOT NULL, pad TEXT NOT NULL)"
_OUTBOX_POSTGRES = """
CREATE TABLE outbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL UNIQUE, type text NOT NULL, key text NOT NULL,
    time timestamptz NOT NULL DEFAULT now(), data text NOT NULL)"""
_OUTBOX_SQLITE = """
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, key TEXT NOT NULL,
    time REAL NOT NULL DEFAULT (unixepoch()), data TEXT NOT NULL)"""
_ROW = "INSERT INTO placed (number, pad) VALUES ($1, $2)"
_EVENT = "INSERT INTO outbox (id, type, key, data) VALUES ($1, 'order.placed', $2, $3)"


def measure(measure: str, *, seconds: float, callers: int, **_: Any) -> dict[str, Any]:
    many = callers if measure == "emit_concurrent" else 1
    if url().startswith("postgres"):
        return asyncio.run(_on_postgres(seconds, many))
    return _on_sqlite(seconds, many)


def _event(number: int) -> tuple[dict[str, Any], tuple[Any, ...]]:
    job = arguments(number)
    return job, (str(uuid.uuid4()), f"order:{number}", json.dumps(job))


async def _on_postgres(seconds: float, callers: int) -> dict[str, Any]:
    size = min(callers, CONNECTIONS)
    async with asyncpg.create_pool(url(), min_size=size, max_size=size) as pool:
        await pool.execute(f"{_PLACED}; {_OUTBOX_POSTGRES}")
        numbers = iter(range(1 << 60))

        async def call(until: float) -> int:
            done = 0
            while time.perf_counter() < until:
                job, event = _event(next(numbers))
                async with pool.acquire() as connection, connection.transaction():
                    await connection.execute(_ROW, job["number"], job["pad"])
                    await connection.execute(_EVENT, *event)
                done += 1
            return done

        await asyncio.gather(*(call(time.perf_counter() + 0.1) for _ in range(callers)))
        begin = time.perf_counter()
        done = sum(await asyncio.gather(*(call(begin + seconds) for _ in range(callers))))
        return {"rate": done / (time.perf_counter() - begin), "events": done, "callers": callers}


def _on_sqlite(seconds: float, callers: int) -> dict[str, Any]:
    """There is one writer, whoever calls: more callers are no faster."""
    connection = apsw.Connection(url().removeprefix("sqlite:///"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute(f"{_PLACED}; {_OUTBOX_SQLITE}")
    done, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        job, event = _event(done)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_ROW, (job["number"], job["pad"]))
        connection.execute(_EVENT, event)
        connection.execute("COMMIT")
        done += 1
    return {"rate": done / passed, "events": done, "callers": callers}
