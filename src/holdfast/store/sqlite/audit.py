"""The audit trail: rows are added and never changed."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.records import AuditEntry
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject


def write(db: Db, entry: AuditEntry) -> None:
    sql = """INSERT INTO holdfast_audit (at, actor, action, subject, before, after, request_id)
        VALUES (?, ?, ?, ?, ?, ?, ?)"""
    db.run(sql, db.now, entry.actor, entry.action, entry.subject, entry.before, entry.after, entry.request_id)


def find(db: Db, *, subject: str | None, limit: int) -> list[AuditEntry]:
    where, params = ("WHERE subject = ?", [subject]) if subject is not None else ("", [])
    sql = f"""SELECT actor, action, subject, before, after, request_id, at FROM holdfast_audit {where}
        ORDER BY seq DESC LIMIT ?"""
    names = ("actor", "action", "subject", "before", "after", "request_id", "at")
    return [AuditEntry(**dict(zip(names, row, strict=True))) for row in db.rows(sql, *params, limit)]


@checked
class Audit(Subject):
    async def write(self, entry: AuditEntry, *, tx: object | None = None) -> None:
        await self._file.write(partial(write, entry=entry), tx=tx)

    async def find(self, *, subject: str | None = None, limit: int = 100) -> list[AuditEntry]:
        return await self._file.read(partial(find, subject=subject, limit=limit))
