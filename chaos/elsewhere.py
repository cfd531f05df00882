"""The second database: every run of a task, and effects that no transaction of the store can take back.

It is a SQLite file of its own for both stores, so that it keeps counting while the store is cut off, killed or full. Times are
those of the monotonic clock, which is one for all processes of the machine and is not moved with the others.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import apsw
import msgspec

_TABLES = """
CREATE TABLE IF NOT EXISTS run (job TEXT, token INTEGER, task TEXT, item TEXT, pid INTEGER, began REAL, ended REAL, how TEXT);
CREATE INDEX IF NOT EXISTS run_job ON run (job);
CREATE INDEX IF NOT EXISTS run_pid ON run (pid);
CREATE TABLE IF NOT EXISTS tally (job TEXT, token INTEGER, item TEXT);
CREATE INDEX IF NOT EXISTS tally_item ON tally (item);
CREATE TABLE IF NOT EXISTS charge (key TEXT PRIMARY KEY, item TEXT, calls INTEGER);
CREATE TABLE IF NOT EXISTS lookup (item TEXT, found INTEGER);
"""
_BUSY = 20_000  # milliseconds: a frozen process may hold the lock for as long as it is frozen


class Run(msgspec.Struct, frozen=True):
    """One execution of a task, by job and token."""

    job: str
    token: int
    task: str
    item: str
    pid: int
    began: float
    ended: float | None  # None: nobody came back to say so
    how: str | None


class Elsewhere:
    def __init__(self, file: Path) -> None:
        self._db = apsw.Connection(str(file))
        self._db.set_busy_timeout(_BUSY)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")  # processes are killed here, and the machine is not

    def prepare(self) -> None:
        self._db.execute(_TABLES)

    def began(self, job: str, token: int, task: str, item: str, pid: int) -> int:
        sql = "INSERT INTO run (job, token, task, item, pid, began) VALUES (?, ?, ?, ?, ?, ?) RETURNING rowid"
        return int(self._ask(sql, job, token, task, item, pid, time.monotonic())[0][0])

    def ended(self, run: int, how: str) -> None:
        self._ask("UPDATE run SET ended = ?, how = ? WHERE rowid = ?", time.monotonic(), how, run)

    def tally(self, job: str, token: int, item: str) -> None:
        """A bare effect: nothing here recognises a second one."""
        self._ask("INSERT INTO tally VALUES (?, ?, ?)", job, token, item)

    def is_tallied(self, item: str) -> bool:
        return bool(self._ask("SELECT 1 FROM tally WHERE item = ? LIMIT 1", item))

    def charge(self, key: str, item: str) -> None:
        """A keyed effect: a second call with the same key changes nothing but the count of calls."""
        sql = "INSERT INTO charge VALUES (?, ?, 1) ON CONFLICT (key) DO UPDATE SET calls = calls + 1"
        self._ask(sql, key, item)

    def looked_up(self, item: str, *, found: bool) -> None:
        self._ask("INSERT INTO lookup VALUES (?, ?)", item, found)

    def runs(self) -> list[Run]:
        """All of them, by job, in the order of their tokens."""
        rows = self._ask("SELECT job, token, task, item, pid, began, ended, how FROM run ORDER BY job, token")
        return [Run(*row) for row in rows]

    def fetch(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._ask(sql, *values)

    def close(self) -> None:
        self._db.close()

    def _ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return list(self._db.execute(sql, values))
