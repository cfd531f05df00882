"""Finish-and-claim loops on PostgreSQL through asyncpg, as one worker process runs them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.synchronize import Barrier
from typing import Any

import asyncpg

from .model import Lap, Phase, Work
from .noise import process_cpu
from .pace import Mark, Pacer
from .pg_designs import PgDesign

Rows = Sequence[Any]
Step = Callable[[Rows], Awaitable[Rows]]


def drain(barrier: Barrier, url: str, space: str, design: PgDesign, work: Work) -> list[Lap]:
    return asyncio.run(_drain(barrier, url, space, design, work))


async def connect(url: str, space: str) -> asyncpg.Connection[Any]:
    return await asyncpg.connect(url, server_settings={"search_path": f'"{space}"'})


async def _drain(barrier: Barrier, url: str, space: str, design: PgDesign, work: Work) -> list[Lap]:
    connection = await connect(url, space)
    step = await _prepare(connection, design, work)
    backend = connection.get_server_pid()
    barrier.wait()
    laps: list[Lap] = []
    rows: Rows = []
    for phase in work.phases:
        lap, rows = await _phase(phase, step, rows, backend)
        laps.append(lap)
    if rows and not design.claim:
        await connection.execute(design.finish, *_finish_arguments(design, rows))
    await connection.close()
    return laps


async def _phase(phase: Phase, step: Step, rows: Rows, backend: int) -> tuple[Lap, Rows]:
    pacer = Pacer(phase, _cpu(backend))
    while not pacer.over:
        rows = await step(rows)
        if not rows:
            break
        pacer.add(len(rows))
        if pacer.rest:
            await asyncio.sleep(pacer.rest)
    return pacer.lap(_cpu(backend)), rows


async def _prepare(connection: asyncpg.Connection[Any], design: PgDesign, work: Work) -> Step:
    if design.claim:
        return await _apart(connection, design, work.batch)
    if not design.fenced:
        return await _unfenced(connection, design, work.batch)
    return await _fenced(connection, design, work)


async def _fenced(connection: asyncpg.Connection[Any], design: PgDesign, work: Work) -> Step:
    prepared = await connection.prepare(design.step.replace("{batch}", str(work.batch)))
    mark = Mark(work.mark)
    bound = (work.batch,) if "$7" in design.step else ()

    async def step(rows: Rows) -> Rows:
        claimed: Rows = await prepared.fetch(
            *_finish_arguments(design, rows), "default", "worker-1:4242", mark.low, *bound
        )
        mark.see([row[2] for row in claimed], work.batch)
        return claimed

    return step


async def _unfenced(connection: asyncpg.Connection[Any], design: PgDesign, batch: int) -> Step:
    prepared = await connection.prepare(design.step)

    async def step(rows: Rows) -> Rows:
        claimed: Rows = await prepared.fetch([row[0] for row in rows], batch)
        return claimed

    return step


async def _apart(connection: asyncpg.Connection[Any], design: PgDesign, batch: int) -> Step:
    claim, finish = await connection.prepare(design.claim), await connection.prepare(design.finish)

    async def step(_: Rows) -> Rows:
        rows: Rows = await claim.fetch(batch)
        if rows:
            await finish.fetch([row[0] for row in rows])
        return rows

    return step


def _finish_arguments(design: PgDesign, rows: Rows) -> tuple[list[Any], ...]:
    ids = [row[0] for row in rows]
    return (ids, [row[1] for row in rows], ["null"] * len(ids)) if design.fenced else (ids,)


def _cpu(backend: int) -> float:
    return time.process_time() + process_cpu(backend)
