"""What a store can do by itself for sagas of five steps: 100 at a time are claimed, each step is a row, and they are deleted.

With undos, each step's row is written before its call, and once more after it; each of these is one statement and one commit
for the 100.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

import apsw
import asyncpg

from bench.limits import postgres, sqlite
from bench.place import url
from bench.sagas.shape import STEPS
from bench.schema.model import Lap
from bench.schema.race import race

BATCH = 100
_TABLE = """
CREATE TABLE step (
    job BIGINT NOT NULL, name TEXT NOT NULL, progress TEXT NOT NULL, plan TEXT, result TEXT, PRIMARY KEY (job, name))"""
_PLAN = '{"undo":"cancel","does":"book"}'
_BEGIN = "INSERT INTO step (job, name, progress, plan) SELECT unnest($1::bigint[]), $2, 'begun', $3"
_END = "UPDATE step SET progress = 'done', result = $3 WHERE job = ANY($1::bigint[]) AND name = $2"
_RECORD = "INSERT INTO step (job, name, progress, result) SELECT unnest($1::bigint[]), $2, 'done', $3"
_SQLITE = {
    _BEGIN: "INSERT INTO step (job, name, progress, plan) VALUES (?1, ?2, 'begun', ?3)",
    _END: "UPDATE step SET progress = 'done', result = ?3 WHERE job = ?1 AND name = ?2",
    _RECORD: "INSERT INTO step (job, name, progress, result) VALUES (?1, ?2, 'done', ?3)",
}


def measure(measure: str, *, guess: float, seconds: float, processes: int, **_: Any) -> dict[str, Any]:
    sagas, writes = max(BATCH, int(guess * seconds)), _writes(undo=measure == "sagas")
    if url().startswith("postgres"):
        postgres.fill(sagas, _TABLE)
        (speed,) = race(_drain, processes, url(), writes)
        rate = speed.rate
    else:
        rate = _on_sqlite(sagas, writes)
    return {"rate": rate, "jobs": sagas, "seconds": round(sagas / rate, 2), "batch": BATCH}


def _writes(*, undo: bool) -> list[tuple[str, str, str]]:
    """What is written of one saga, one after the other: the statement, the name of the step, and a text."""
    found = []
    for place in range(STEPS):
        name = f"book:{place}"
        found += [(_BEGIN, name, _PLAN), (_END, name, str(place))] if undo else [(_RECORD, name, str(place))]
    return found


def _drain(barrier: Barrier, address: str, writes: Sequence[tuple[str, str, str]]) -> list[Lap]:
    return [asyncio.run(_empty(barrier, address, writes))]


async def _empty(barrier: Barrier, address: str, writes: Sequence[tuple[str, str, str]]) -> Lap:
    connection = await asyncpg.connect(address)
    barrier.wait()
    sagas, cpu, start = 0, time.process_time(), time.time()
    end = start
    while rows := await connection.fetch(postgres.CLAIM, BATCH):
        ids = [row[0] for row in rows]
        for sql, name, text in writes:
            await connection.execute(sql, ids, name, text)
        await connection.execute(postgres.DELETE, ids)
        sagas, end = sagas + len(ids), time.time()
    await connection.close()
    return Lap(sagas, start, end, time.process_time() - cpu)


def _on_sqlite(sagas: int, writes: Sequence[tuple[str, str, str]]) -> float:
    connection = sqlite.connect()
    connection.execute(_TABLE)
    sqlite.fill(connection, sagas)
    connection.pragma("wal_checkpoint(truncate)")
    begin = time.perf_counter()
    while rows := connection.execute(sqlite.CLAIM, (time.time(), BATCH)).fetchall():
        for sql, name, text in writes:
            _together(connection, _SQLITE[sql], [(row[0], name, text) for row in rows])
        _together(connection, sqlite.DELETE, [(row[0],) for row in rows])
    return sagas / (time.perf_counter() - begin)


def _together(connection: apsw.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(sql, rows)
    connection.execute("COMMIT")
