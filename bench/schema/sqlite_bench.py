"""The SQLite side of the shared measures: every space is a file of its own, so that designs can take turns."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from .model import Speed, Work
from .payload import arguments, uuid7
from .race import race
from .sqlite_designs import DESIGNS, FORMS, LAYOUTS, NEXT_RANK, SqliteDesign
from .sqlite_drain import connect, drain, number

CHUNK = 500_000
# Ids shaped like UUIDv7: their first half grows with n, so the index on them grows at its end.
MADE = """
CREATE TEMP TABLE made AS
WITH RECURSIVE numbers(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
SELECT n, format('%08x-%04x-7%s-8%s-%s', n >> 8, n & 255, substr(r, 1, 3), substr(r, 4, 3), substr(r, 7, 12)) AS id,
       '{"seq": ' || n || ', "t": 1763179200000000000, "s": 0.0, "pad": "' || printf('%.40c', 'x') || '"}' AS args,
       1763179200.0 + n AS t
  FROM (SELECT n, lower(hex(randomblob(9))) AS r FROM numbers)
"""


class SqliteBench:
    store = "sqlite"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="schema-bench-sqlite-"))
        self._spaces: dict[str, SqliteDesign] = {}

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def designs(self) -> list[str]:
        return list(DESIGNS)

    def layouts(self) -> list[str]:
        return list(LAYOUTS)

    def forms(self) -> list[str]:
        return list(FORMS)

    def create(self, space: str, design: str) -> None:
        self.drop(space)
        self._spaces[space] = (DESIGNS | LAYOUTS | FORMS)[design]
        connection = connect(self._path(space))
        connection.execute(self._spaces[space].tables)
        connection.close()

    def fill(self, space: str, jobs: int, tidy: bool = True) -> None:
        connection = connect(self._path(space))
        for start in range(0, jobs, CHUNK):
            self._insert(connection, self._spaces[space], min(CHUNK, jobs - start))
        if tidy:
            connection.execute("ANALYZE")
            connection.pragma("wal_checkpoint(truncate)")
        connection.close()
        os.sync()

    def load_finished(self, space: str, rows: int) -> None:
        connection = connect(self._path(space))
        for start in range(1, rows + 1, CHUNK):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(MADE, (start, min(start + CHUNK - 1, rows)))
            for statement in self._spaces[space].finished:
                connection.execute(statement)
            connection.execute("DROP TABLE temp.made; COMMIT")
        connection.pragma("wal_checkpoint(truncate)")
        connection.close()
        os.sync()

    def drain(self, space: str, work: Work) -> list[Speed]:
        return race(drain, work.procs, self._path(space), self._spaces[space], work)

    def enqueue(self, space: str, batch: int, batches: int) -> Speed:
        connection = connect(self._path(space))
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(batches):
            self._insert(connection, self._spaces[space], batch)
        jobs = batch * batches
        speed = Speed(jobs / (time.perf_counter() - start), 1e6 * (time.process_time() - cpu) / jobs)
        connection.close()
        return speed

    @contextmanager
    def snapshot(self, space: str) -> Iterator[None]:
        """A reader that never ends its transaction: the log cannot be reset while it sees the old pages."""
        connection = connect(self._path(space))
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        try:
            yield
        finally:
            connection.close()

    def size(self, space: str) -> int:
        return sum(path.stat().st_size for path in self._folder.glob(f"{space}.db*"))

    def drop(self, space: str) -> None:
        self._spaces.pop(space, None)
        for path in self._folder.glob(f"{space}.db*"):
            path.unlink()

    def _path(self, space: str) -> str:
        return str(self._folder / f"{space}.db")

    def _insert(self, connection: apsw.Connection, design: SqliteDesign, jobs: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        rank = number(connection, NEXT_RANK, jobs) if design.fenced else 0
        rows = [_row(rank + offset, design.blob) for offset in range(jobs)]
        for statement in design.insert:
            connection.executemany(statement, rows)
        connection.execute("COMMIT")


def _row(rank: int, blob: bool) -> dict[str, str | bytes | int | float]:
    made = uuid7()
    return {
        "id": made.bytes if blob else str(made),
        "text": str(made),
        "rank": rank,
        "args": arguments(rank),
        "now": time.time(),
    }
