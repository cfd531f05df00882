"""Who is alive and what it serves: one row for each start of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject
from holdfast.store.worker_records import SHOWN, NewWorker, RunningJob, WorkerRecord, WorkerState


def register(db: Db, worker: NewWorker, *, ttl: float) -> None:
    db.run(
        _REGISTER,
        worker.name, worker.role, worker.host, worker.pid, worker.version,
        msgspec.json.encode(worker.queues).decode(), msgspec.json.encode(worker.tasks).decode(),
        db.now, db.now, db.now + ttl,
    )  # fmt: skip


_REGISTER = """INSERT OR REPLACE INTO holdfast_worker
    (name, role, host, pid, version, queues, tasks, started_at, seen_at, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


def beat(db: Db, name: str, *, ttl: float, draining: bool) -> bool:
    sql = "UPDATE holdfast_worker SET seen_at = ?, until = ?, draining = ? WHERE name = ?"
    return bool(db.run(sql, db.now, db.now + ttl, draining, name))


def leave(db: Db, name: str) -> bool:
    return bool(db.run("DELETE FROM holdfast_worker WHERE name = ?", name))


def bury(db: Db, name: str) -> bool:
    return bool(db.run("UPDATE holdfast_worker SET until = min(until, ?) WHERE name = ?", db.now, name))


def charge(db: Db, rescued: Mapping[str, int]) -> None:
    sql = "UPDATE holdfast_worker SET rescued = rescued + ? WHERE name = ?"
    db.run_many(sql, [(number, name) for name, number in rescued.items()])


def find(db: Db, *, limit: int) -> list[WorkerRecord]:
    rows = db.rows(_FIND, db.now, limit)
    running = _running(db, [row[0] for row in rows])
    return [_to_record(row, running.get(row[0], [])) for row in rows]


# Those that are alive in the order of their starts, the dead from the end.
_FIND = """SELECT name, role, host, pid, version, queues, tasks, started_at, seen_at, until, rescued,
        CASE WHEN until <= ?1 THEN 'dead' WHEN draining THEN 'draining' ELSE 'running' END
    FROM holdfast_worker
    ORDER BY until <= ?1, CASE WHEN until <= ?1 THEN -until ELSE started_at END, name LIMIT ?2"""


def _running(db: Db, names: list[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in db.rows(_RUNNING, msgspec.json.encode(names).decode(), SHOWN):
        found.setdefault(row[0], []).append(row)
    return found


_RUNNING = """SELECT r.worker, r.number, j.id, j.task, j.queue, r.started_at FROM (
        SELECT seq, worker, started_at, count(*) OVER (PARTITION BY worker) AS number,
            row_number() OVER (PARTITION BY worker ORDER BY started_at, seq) AS place
        FROM holdfast_running WHERE worker IN (SELECT value FROM json_each(?))) AS r
    CROSS JOIN holdfast_job AS j ON j.seq = r.seq WHERE r.place <= ? ORDER BY r.worker, r.place"""


def _to_record(row: Row, running: list[Row]) -> WorkerRecord:
    name, role, host, pid, version, queues, tasks, started_at, seen_at, until, rescued, state = row
    return WorkerRecord(
        name=name, role=role, host=host, pid=pid, version=version, state=WorkerState(state),
        queues=msgspec.json.decode(queues), tasks=tuple(msgspec.json.decode(tasks)),
        started_at=started_at, seen_at=seen_at, until=until, rescued=rescued,
        running=tuple(RunningJob(*job[2:]) for job in running), running_count=running[0][1] if running else 0,
    )  # fmt: skip


def prune(db: Db, *, keep: float, limit: int) -> int:
    sql = (
        "DELETE FROM holdfast_worker WHERE name IN (SELECT name FROM holdfast_worker WHERE until < ? LIMIT ?)"
    )
    return db.run(sql, db.now - keep, limit)


@checked
class Workers(Subject):
    async def register(self, worker: NewWorker, *, ttl: float) -> None:
        await self._file.write(partial(register, worker=worker, ttl=ttl), repeatable=True)

    async def beat(self, name: str, *, ttl: float, draining: bool = False) -> bool:
        return await self._file.write(partial(beat, name=name, ttl=ttl, draining=draining), repeatable=True)

    async def leave(self, name: str) -> bool:
        return await self._file.write(partial(leave, name=name))

    async def bury(self, name: str) -> bool:
        return await self._file.write(partial(bury, name=name), repeatable=True)

    async def charge(self, rescued: Mapping[str, int]) -> None:
        if rescued:
            await self._file.write(partial(charge, rescued=rescued))

    async def find(self, *, limit: int = 100) -> list[WorkerRecord]:
        return await self._file.read(partial(find, limit=limit))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, keep=keep, limit=limit), repeatable=True)
