"""Finish-and-claim loops on SQLite through APSW, as one worker process runs them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.synchronize import Barrier
from typing import Any

import apsw

from .model import Lap, Phase, Work
from .pace import Pacer
from .sqlite_designs import NEXT_TOKEN, SqliteDesign

Rows = Sequence[Any]
Step = Callable[[Rows], Rows]


def connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(60_000)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    return connection


def number(connection: apsw.Connection, sql: str, *arguments: int) -> int:
    ((value,),) = connection.execute(sql, arguments).fetchall()
    assert isinstance(value, int)
    return value


def drain(barrier: Barrier, path: str, design: SqliteDesign, work: Work) -> list[Lap]:
    connection = connect(path)
    step = (
        _fenced(connection, design, work.batch)
        if design.fenced
        else _unfenced(connection, design, work.batch)
    )
    barrier.wait()
    laps: list[Lap] = []
    rows: Rows = []
    for phase in work.phases:
        lap, rows = _phase(phase, step, rows)
        laps.append(lap)
    step(rows)
    connection.close()
    return laps


def _phase(phase: Phase, step: Step, rows: Rows) -> tuple[Lap, Rows]:
    pacer = Pacer(phase, time.process_time())
    while not pacer.over:
        rows = step(rows)
        if not rows:
            break
        pacer.add(len(rows))
        time.sleep(pacer.rest)
    return pacer.lap(time.process_time()), rows


def _fenced(connection: apsw.Connection, design: SqliteDesign, batch: int) -> Step:
    finish = _finish_each if design.each else _finish_set
    pick = _keys if not design.blob or design.key == "seq" else None
    token = 0

    def step(rows: Rows) -> Rows:
        nonlocal token
        now = time.time()
        connection.execute("BEGIN IMMEDIATE")
        if rows:
            finish(connection, design, rows, token, now)
        token = number(connection, NEXT_TOKEN)
        claimed = connection.execute(design.select, ("default", batch)).fetchall()
        lease = (token, now + 30, now, "worker-1:4242")
        if pick:
            connection.execute(design.mark, (*lease, pick(claimed)))
        else:
            one = design.mark.replace("IN (SELECT value FROM json_each(?5))", "= ?5")
            connection.executemany(one, [(*lease, row[0]) for row in claimed])
        connection.execute("COMMIT")
        return claimed

    return step


def _keys(rows: Rows) -> str:
    return json.dumps([row[0] for row in rows])


def _finish_set(
    connection: apsw.Connection, design: SqliteDesign, rows: Rows, token: int, now: float
) -> None:
    given = json.dumps([(row[0], "null") for row in rows])
    for statement in design.finish_set:
        connection.execute(statement, (given, token, now)[: _width(statement)])


def _finish_each(
    connection: apsw.Connection, design: SqliteDesign, rows: Rows, token: int, now: float
) -> None:
    for statement in design.finish_each:
        width = _width(statement)
        connection.executemany(statement, [(row[0], token, now, "null")[:width] for row in rows])


@cache
def _width(statement: str) -> int:
    return max(int(number) for number in re.findall(r"\?(\d)", statement))


def _unfenced(connection: apsw.Connection, design: SqliteDesign, batch: int) -> Step:
    (delete,) = design.finish_each

    def ack(rows: Rows) -> None:
        connection.executemany(delete, [(row[0],) for row in rows])

    def step(rows: Rows) -> Rows:
        connection.execute("BEGIN IMMEDIATE")
        if not design.apart:
            ack(rows)
        claimed = connection.execute(design.mark, (time.time(), batch)).fetchall()
        connection.execute("COMMIT")
        if design.apart:
            connection.execute("BEGIN IMMEDIATE")
            ack(claimed)
            connection.execute("COMMIT")
        return claimed

    return step
