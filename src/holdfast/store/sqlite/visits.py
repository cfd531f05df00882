"""Sessions of web pages: one row each, and what is over is not seen any more."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject
from holdfast.store.visit_records import NewVisit, Visit

_COLUMNS = "id, principal, tenant, data, version, address, agent, created_at, seen_at, until, last"


def begin(db: Db, visit: NewVisit, *, idle: float, last: float, replaces: str | None) -> None:
    db.run("DELETE FROM holdfast_visit WHERE id IN (?, ?)", visit.id, replaces)
    sql = f"INSERT INTO holdfast_visit ({_COLUMNS}) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)"
    until = db.now + min(idle, last)
    given = visit.id, visit.principal, visit.tenant, visit.data, visit.address, visit.agent
    db.run(sql, *given, db.now, db.now, until, db.now + last)


def get(db: Db, visit_id: str) -> Visit | None:
    sql = f"SELECT {_COLUMNS} FROM holdfast_visit WHERE id = ? AND until > ?"
    return None if (row := db.row(sql, visit_id, db.now)) is None else to_visit(row)


def touch(db: Db, visit_id: str, *, idle: float) -> bool:
    sql = "UPDATE holdfast_visit SET seen_at = ?, until = min(last, ?) WHERE id = ? AND until > ?"
    return bool(db.run(sql, db.now, db.now + idle, visit_id, db.now))


def write(db: Db, visit_id: str, data: str, *, version: int) -> bool:
    sql = (
        "UPDATE holdfast_visit SET data = ?, version = version + 1 WHERE id = ? AND version = ? AND until > ?"
    )
    return bool(db.run(sql, data, visit_id, version, db.now))


def end(db: Db, visit_id: str) -> bool:
    return bool(db.run("DELETE FROM holdfast_visit WHERE id = ? AND until > ?", visit_id, db.now))


def end_of(db: Db, principal: str, *, name: str | None, besides: str | None) -> int:
    sql = """DELETE FROM holdfast_visit WHERE principal = ?1 AND until > ?2
        AND (?3 IS NULL OR substr(id, 1, 16) = ?3) AND (?4 IS NULL OR id <> ?4)"""
    return db.run(sql, principal, db.now, name, besides)


def find(db: Db, principal: str, limit: int) -> list[Visit]:
    sql = f"""SELECT {_COLUMNS} FROM holdfast_visit WHERE principal = ? AND until > ?
        ORDER BY seen_at DESC, id LIMIT ?"""
    return [to_visit(row) for row in db.rows(sql, principal, db.now, limit)]


def secret(db: Db, name: str, candidate: str) -> str:
    db.run(
        "INSERT INTO holdfast_web_secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, candidate
    )
    return str(db.value("SELECT value FROM holdfast_web_secret WHERE name = ?", name))


def prune(db: Db, limit: int) -> int:
    sql = """DELETE FROM holdfast_visit WHERE id IN
        (SELECT id FROM holdfast_visit WHERE until <= ? ORDER BY until LIMIT ?)"""
    return db.run(sql, db.now, limit)


def to_visit(row: Any) -> Visit:
    return Visit(**dict(zip(Visit.__struct_fields__, row, strict=True)))


@checked
class Visits(Subject):
    async def begin(
        self,
        visit: NewVisit,
        *,
        idle: float,
        last: float,
        replaces: str | None = None,
        tx: object | None = None,
    ) -> None:
        await self._file.write(
            partial(begin, visit=visit, idle=idle, last=last, replaces=replaces), tx=tx, repeatable=True
        )

    async def get(self, visit_id: str) -> Visit | None:
        return await self._file.read(partial(get, visit_id=visit_id))

    async def touch(self, visit_id: str, *, idle: float) -> bool:
        return await self._file.write(partial(touch, visit_id=visit_id, idle=idle), repeatable=True)

    async def write(self, visit_id: str, data: str, *, version: int) -> bool:
        return await self._file.write(partial(write, visit_id=visit_id, data=data, version=version))

    async def end(self, visit_id: str) -> bool:
        return await self._file.write(partial(end, visit_id=visit_id), repeatable=True)

    async def end_of(
        self,
        principal: str,
        *,
        name: str | None = None,
        besides: str | None = None,
        tx: object | None = None,
    ) -> int:
        return await self._file.write(
            partial(end_of, principal=principal, name=name, besides=besides), tx=tx, repeatable=True
        )

    async def find(self, principal: str, *, limit: int = 100) -> list[Visit]:
        return await self._file.read(partial(find, principal=principal, limit=limit))

    async def secret(self, name: str, candidate: str) -> str:
        return await self._file.write(partial(secret, name=name, candidate=candidate), repeatable=True)

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, limit=limit), repeatable=True)
