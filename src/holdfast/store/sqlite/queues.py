"""Pause and resume a queue for everyone."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.records import AuditEntry, Paused
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.backlog import waits
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject


def pause(db: Db, queue: str, *, by: str) -> None:
    sql = "INSERT INTO holdfast_queue (name, paused_by, paused_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    if db.run(sql, queue, by, db.now):
        audit.write(db, AuditEntry(actor=by, action="queue.paused", subject=f"queue:{queue}"))


def resume(db: Db, queue: str, *, by: str) -> None:
    if db.run("DELETE FROM holdfast_queue WHERE name = ?", queue):
        audit.write(db, AuditEntry(actor=by, action="queue.resumed", subject=f"queue:{queue}"))
        db.draw("rank")  # that is what other processes watch for news


def paused(db: Db) -> list[Paused]:
    return [
        Paused(*row) for row in db.rows("SELECT name, paused_by, paused_at FROM holdfast_queue ORDER BY name")
    ]


@checked
class Queues(Subject):
    async def pause(self, queue: str, *, by: str) -> None:
        await self._file.write(partial(pause, queue=queue, by=by), repeatable=True)

    async def resume(self, queue: str, *, by: str) -> None:
        await self._file.write(partial(resume, queue=queue, by=by), repeatable=True)
        self._file.hint((queue,))

    async def paused(self) -> list[Paused]:
        return await self._file.read(paused)

    async def waits(self, *, limit: int = 1000) -> dict[str, float]:
        return await self._file.read(partial(waits, limit=limit))
