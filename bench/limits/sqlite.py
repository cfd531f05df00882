"""The limits of SQLite through APSW: one file, a write-ahead log, synchronous=FULL."""

from __future__ import annotations

import json
import time
from typing import Any

import apsw

from bench.limits.times import middle_and_worst
from bench.place import arguments, url

BATCH = 100
_TABLE = """
CREATE TABLE job (
    id INTEGER PRIMARY KEY, queue TEXT NOT NULL DEFAULT 'default', state INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0, run_at REAL NOT NULL DEFAULT 0, locked_at REAL, args TEXT NOT NULL);
CREATE INDEX job_ready ON job (queue, run_at, id) WHERE state = 0"""
_INSERT = "INSERT INTO job (args) VALUES (?)"
CLAIM = """
UPDATE job SET state = 1, attempt = attempt + 1, locked_at = ?1 WHERE id IN (
    SELECT id FROM job WHERE queue = 'default' AND state = 0 AND run_at <= ?1 ORDER BY run_at, id LIMIT ?2)
RETURNING id, args"""
DELETE = "DELETE FROM job WHERE id = ?"


def enqueue_one(seconds: float, **_: Any) -> dict[str, Any]:
    """Insert one row, commit, repeat: also the store's own commit time, in milliseconds."""
    connection = connect()
    times, begin = [], time.perf_counter()
    while (before := time.perf_counter()) - begin < seconds:
        connection.execute(_INSERT, (json.dumps(arguments(len(times))),))
        times.append(1e3 * (time.perf_counter() - before))
    return {"rate": len(times) / (time.perf_counter() - begin), "jobs": len(times), **middle_and_worst(times)}


def enqueue_bulk(seconds: float, size: int, **_: Any) -> dict[str, Any]:
    connection = connect()
    done, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        fill(connection, size)
        done += size
    return {"rate": done / passed, "jobs": done, "size": size}


def drain(guess: float, seconds: float, **_: Any) -> dict[str, Any]:
    """Claim a batch, commit, delete it, commit."""
    connection, jobs = connect(), int(guess * seconds)
    fill(connection, jobs)
    connection.pragma("wal_checkpoint(truncate)")
    begin = time.perf_counter()
    while rows := connection.execute(CLAIM, (time.time(), BATCH)).fetchall():
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(DELETE, [(row[0],) for row in rows])
        connection.execute("COMMIT")
    passed = time.perf_counter() - begin
    return {"rate": jobs / passed, "jobs": jobs, "seconds": round(passed, 2), "batch": BATCH}


def connect() -> apsw.Connection:
    connection = apsw.Connection(url().removeprefix("sqlite:///"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute(_TABLE)
    return connection


def fill(connection: apsw.Connection, jobs: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(_INSERT, ((json.dumps(arguments(number)),) for number in range(jobs)))
    connection.execute("COMMIT")
