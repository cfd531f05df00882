"""The PostgreSQL side of the shared measures: every space is a schema of its own, so that designs can take turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from .model import Speed, Work
from .noise import process_cpu
from .payload import arguments, uuid7
from .pg_designs import DESIGNS, PgDesign
from .pg_drain import connect, drain
from .pg_steps import STEPS
from .pg_variants import RENEW, VARIANTS
from .race import race


class PgBench:
    store = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url
        self._spaces: dict[str, PgDesign] = {}

    def designs(self) -> list[str]:
        return list(DESIGNS)

    def variants(self) -> list[str]:
        return list(VARIANTS)

    def steps(self) -> list[str]:
        return list(STEPS)

    def create(self, space: str, design: str) -> None:
        chosen = (DESIGNS | VARIANTS | STEPS)[design]
        self.drop(space)
        self._spaces[space] = chosen
        self._run(space, f'CREATE SCHEMA "{space}"', chosen.tables)

    def fill(self, space: str, jobs: int, tidy: bool = True) -> None:
        asyncio.run(self._insert(space, self._spaces[space].fill, jobs))
        if tidy:
            self._run(space, *self._tidy(space), "CHECKPOINT")

    def load_finished(self, space: str, rows: int) -> None:
        asyncio.run(self._insert(space, self._spaces[space].finished, rows))
        self._run(space, f"VACUUM ANALYZE {self._spaces[space].kept}", "CHECKPOINT")

    def drain(self, space: str, work: Work) -> list[Speed]:
        return race(drain, work.procs, self._url, space, self._spaces[space], work)

    def enqueue(self, space: str, batch: int, batches: int) -> Speed:
        return asyncio.run(self._enqueue(space, batch, batches))

    def renew(self, space: str, batch: int, times: int) -> Speed:
        return asyncio.run(self._renew(space, batch, times))

    @contextmanager
    def snapshot(self, space: str) -> Iterator[None]:
        """An idle transaction that still sees the rows of this moment, as a forgotten psql session holds one."""
        with asyncio.Runner() as runner:
            connection = runner.run(connect(self._url, space))
            runner.run(connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ"))
            runner.run(connection.fetch("SELECT count(*) FROM pg_class"))
            try:
                yield
            finally:
                runner.run(connection.close())

    def size(self, space: str) -> int:
        query = f"""SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
                     WHERE relnamespace = '"{space}"'::regnamespace AND relkind = 'r'"""
        return int(asyncio.run(self._value(space, query)))

    def drop(self, space: str) -> None:
        self._spaces.pop(space, None)
        self._run(space, f'DROP SCHEMA IF EXISTS "{space}" CASCADE')

    def _tidy(self, space: str) -> list[str]:
        live = "job" if self._spaces[space].fenced else "jobs"
        return [f"VACUUM ANALYZE {live}"]

    def _run(self, space: str, *statements: str) -> None:
        asyncio.run(self._execute(space, statements))

    async def _execute(self, space: str, statements: tuple[str, ...]) -> None:
        connection = await connect(self._url, space)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    async def _insert(self, space: str, sql: str, rows: int) -> None:
        connection = await connect(self._url, space)
        await connection.execute(sql, rows, timeout=3600)
        await connection.close()

    async def _value(self, space: str, sql: str) -> Any:
        connection = await connect(self._url, space)
        value = await connection.fetchval(sql)
        await connection.close()
        return value

    async def _enqueue(self, space: str, batch: int, batches: int) -> Speed:
        connection = await connect(self._url, space)
        insert = await connection.prepare(self._spaces[space].insert)

        async def once(number: int) -> None:
            ids: list[UUID] = [uuid7() for _ in range(batch)]
            await insert.fetch(ids, [arguments(number * batch + i) for i in range(batch)])

        speed = await _timed(connection.get_server_pid(), once, batch, batches)
        await connection.close()
        return speed

    async def _renew(self, space: str, batch: int, times: int) -> Speed:
        connection = await connect(self._url, space)
        step = self._spaces[space].step.replace("{batch}", str(batch))
        rows = await connection.fetch(step, [], [], [], "default", "worker-1:4242", 0)
        ids, token = [row[0] for row in rows], rows[0][1]
        renew = await connection.prepare(RENEW)

        async def once(_: int) -> None:
            await renew.fetch(ids, token)

        speed = await _timed(connection.get_server_pid(), once, batch, times)
        await connection.close()
        return speed


async def _timed(backend: int, once: Any, batch: int, times: int) -> Speed:
    start, cpu = time.perf_counter(), time.process_time() + process_cpu(backend)
    for number in range(times):
        work: Coroutine[Any, Any, None] = once(number)
        await work
    wall, cpu = time.perf_counter() - start, time.process_time() + process_cpu(backend) - cpu
    return Speed(batch * times / wall, 1e6 * cpu / (batch * times))
