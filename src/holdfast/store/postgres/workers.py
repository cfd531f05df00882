"""Who is alive and what it serves: one row for each start of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.store.edge import checked
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement
from holdfast.store.worker_records import SHOWN, NewWorker, RunningJob, WorkerRecord, WorkerState

Row = Sequence[Any]


def register(worker: NewWorker, *, ttl: float) -> Procedure[None]:
    queues, tasks = (msgspec.json.encode(each).decode() for each in (worker.queues, worker.tasks))
    params = (worker.name, worker.role, worker.host, worker.pid, worker.version, queues, tasks, float(ttl))
    yield Statement(_REGISTER, params)


_REGISTER = """
INSERT INTO holdfast.worker (name, role, host, pid, version, queues, tasks, until)
VALUES ($1::text, $2::text, $3::text, $4::int, $5::text, $6::text, $7::text,
    holdfast.now() + make_interval(secs => $8::float8))
ON CONFLICT (name) DO UPDATE SET role = excluded.role, host = excluded.host, pid = excluded.pid,
    version = excluded.version, queues = excluded.queues, tasks = excluded.tasks, started_at = excluded.started_at,
    seen_at = excluded.seen_at, until = excluded.until, draining = false, rescued = 0"""


def beat(name: str, *, ttl: float, draining: bool) -> Procedure[bool]:
    return bool((yield Statement(_BEAT, (name, float(ttl), draining))))


_BEAT = """
UPDATE holdfast.worker SET draining = $3::boolean, (seen_at, until) = (
    SELECT n.now, n.now + make_interval(secs => $2::float8) FROM (SELECT holdfast.now() AS now) AS n)
WHERE name = $1::text RETURNING name"""


def leave(name: str) -> Procedure[bool]:
    return bool(
        (yield Statement("DELETE FROM holdfast.worker WHERE name = $1::text RETURNING name", (name,)))
    )


def bury(name: str) -> Procedure[bool]:
    return bool((yield Statement(_BURY, (name,))))


_BURY = """
UPDATE holdfast.worker SET until = least(until, holdfast.now()) WHERE name = $1::text RETURNING name"""


def charge(rescued: Mapping[str, int]) -> Procedure[None]:
    names = sorted(rescued)
    yield Statement(_CHARGE, (names, [rescued[name] for name in names]))


# In the order of their names, so that two who do this at once do not wait for each other in a circle.
_CHARGE = """
WITH told AS MATERIALIZED (
    SELECT w.name, t.number FROM unnest($1::text[], $2::int[]) AS t (name, number)
        JOIN holdfast.worker AS w ON w.name = t.name ORDER BY w.name FOR UPDATE OF w)
UPDATE holdfast.worker AS w SET rescued = w.rescued + told.number FROM told WHERE w.name = told.name"""


def find(limit: int) -> Procedure[list[WorkerRecord]]:
    rows = yield Statement(_FIND, (limit,))
    running: dict[str, list[Row]] = {}
    for row in (yield Statement(_RUNNING, ([row[0] for row in rows], SHOWN))):
        running.setdefault(row[0], []).append(row)
    return [_to_record(row, running.get(row[0], [])) for row in rows]


# Those that are alive in the order of their starts, the dead from the end.
_FIND = """
SELECT w.name, role, host, pid, version, queues, tasks, date_part('epoch', started_at), date_part('epoch', seen_at),
    date_part('epoch', until), rescued,
    CASE WHEN until <= n.now THEN 'dead' WHEN draining THEN 'draining' ELSE 'running' END
FROM holdfast.worker AS w CROSS JOIN (SELECT holdfast.now() AS now) AS n
ORDER BY until <= n.now, CASE WHEN until > n.now THEN started_at END, until DESC, w.name COLLATE "C" LIMIT $1"""
_RUNNING = """
SELECT worker, number, id::text, task, queue, date_part('epoch', started_at) FROM (
    SELECT worker, id, task, queue, started_at, count(*) OVER (PARTITION BY worker) AS number,
        row_number() OVER (PARTITION BY worker ORDER BY started_at, rank) AS place
    FROM holdfast.job WHERE state = 'running' AND worker = ANY($1::text[])) AS r
WHERE place <= $2::int ORDER BY worker, place"""


def _to_record(row: Row, running: list[Row]) -> WorkerRecord:
    name, role, host, pid, version, queues, tasks, started_at, seen_at, until, rescued, state = row
    return WorkerRecord(
        name=name, role=role, host=host, pid=pid, version=version, state=WorkerState(state),
        queues=msgspec.json.decode(queues), tasks=tuple(msgspec.json.decode(tasks)),
        started_at=started_at, seen_at=seen_at, until=until, rescued=rescued,
        running=tuple(RunningJob(*job[2:]) for job in running), running_count=running[0][1] if running else 0,
    )  # fmt: skip


def prune(keep: float, limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (float(keep), limit))))


# Whoever holds a row's lock is saying right now that it is alive.
_PRUNE = """
DELETE FROM holdfast.worker WHERE name = ANY(ARRAY(
    SELECT name FROM holdfast.worker WHERE until < holdfast.now() - make_interval(secs => $1::float8)
    LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING name"""


@checked
class Workers(Subject):
    async def register(self, worker: NewWorker, *, ttl: float) -> None:
        await self._database.write(partial(register, worker, ttl=ttl), repeatable=True)

    async def beat(self, name: str, *, ttl: float, draining: bool = False) -> bool:
        return await self._database.write(partial(beat, name, ttl=ttl, draining=draining), repeatable=True)

    async def leave(self, name: str) -> bool:
        return await self._database.write(partial(leave, name))

    async def bury(self, name: str) -> bool:
        return await self._database.write(partial(bury, name), repeatable=True)

    async def charge(self, rescued: Mapping[str, int]) -> None:
        if rescued:
            await self._database.write(partial(charge, rescued))

    async def find(self, *, limit: int = 100) -> list[WorkerRecord]:
        return await self._database.read(partial(find, limit))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, keep, limit), repeatable=True)
