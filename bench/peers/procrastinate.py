"""Procrastinate on PostgreSQL. Finished jobs stay in its table, as they do by themselves."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector

from bench import body
from bench.place import url

app = App(connector=PsycopgConnector(conninfo=url()))


@app.task(name="noop")
async def noop(job: dict[str, Any]) -> None:
    await body.run_async(job)


class Producer:
    async def open(self) -> None:
        await app.open_async()

    async def close(self) -> None:
        await app.close_async()

    async def one(self, job: dict[str, Any]) -> None:
        await noop.defer_async(job=job)

    async def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        await noop.batch_defer_async(*[{"job": job} for job in jobs])


def prepare() -> None:
    asyncio.run(_apply_schema())


async def _apply_schema() -> None:
    other = App(connector=PsycopgConnector(conninfo=url()))
    async with other.open_async():
        await other.schema_manager.apply_schema_async()


def left() -> int:
    with psycopg.connect(url()) as connection:
        row = connection.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        ).fetchone()
        return 0 if row is None else int(row[0])


def workers(processes: int) -> list[list[str]]:
    program = str(Path(sys.executable).parent / "procrastinate")
    start = [program, "--log-level", "warning", "--app", "bench.peers.procrastinate.app", "worker"]
    return [[*start, "-c", "10"]] * processes
