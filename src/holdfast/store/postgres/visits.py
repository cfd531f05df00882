"""Sessions of web pages: one row each, and what is over is not seen any more."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.store.edge import checked
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement
from holdfast.store.visit_records import NewVisit, Visit

_COLUMNS = """id, principal, tenant, data, version, address, agent, date_part('epoch', created_at),
    date_part('epoch', seen_at), date_part('epoch', until), date_part('epoch', last)"""


def begin(visit: NewVisit, *, idle: float, last: float, replaces: str | None) -> Procedure[None]:
    gone = [visit.id] if replaces is None else [visit.id, replaces]
    yield Statement("DELETE FROM holdfast.visit WHERE id = ANY($1::text[])", (gone,))
    given = visit.id, visit.principal, visit.tenant, visit.data, visit.address, visit.agent
    yield Statement(_BEGIN, (*given, float(min(idle, last)), float(last)))


_BEGIN = """
INSERT INTO holdfast.visit (id, principal, tenant, data, version, address, agent, created_at, seen_at, until, last)
SELECT $1::text, $2::text, $3::text, $4::text, 1, $5::text, $6::text, n.now, n.now,
    n.now + make_interval(secs => $7::float8), n.now + make_interval(secs => $8::float8)
FROM (SELECT holdfast.now() AS now) AS n"""


def get(visit_id: str) -> Procedure[Visit | None]:
    sql = f"SELECT {_COLUMNS} FROM holdfast.visit WHERE id = $1::text AND until > holdfast.now()"
    rows = yield Statement(sql, (visit_id,))
    return to_visit(rows[0]) if rows else None


def touch(visit_id: str, *, idle: float) -> Procedure[bool]:
    return bool((yield Statement(_TOUCH, (visit_id, float(idle)))))


_TOUCH = """
UPDATE holdfast.visit SET seen_at = n.now, until = least(last, n.now + make_interval(secs => $2::float8))
FROM (SELECT holdfast.now() AS now) AS n WHERE id = $1::text AND until > n.now RETURNING id"""


def write(visit_id: str, data: str, *, version: int) -> Procedure[bool]:
    return bool((yield Statement(_WRITE, (visit_id, data, version))))


_WRITE = """
UPDATE holdfast.visit SET data = $2::text, version = version + 1
WHERE id = $1::text AND version = $3::bigint AND until > holdfast.now() RETURNING id"""


def end(visit_id: str) -> Procedure[bool]:
    sql = "DELETE FROM holdfast.visit WHERE id = $1::text AND until > holdfast.now() RETURNING id"
    return bool((yield Statement(sql, (visit_id,))))


def end_of(principal: str, *, name: str | None, besides: str | None) -> Procedure[int]:
    return len((yield Statement(_END_OF, (principal, name, besides))))


_END_OF = """
DELETE FROM holdfast.visit WHERE principal = $1::text AND until > holdfast.now()
    AND ($2::text IS NULL OR left(id, 16) = $2::text) AND ($3::text IS NULL OR id <> $3::text) RETURNING id"""


def find(principal: str, limit: int) -> Procedure[list[Visit]]:
    sql = f"""SELECT {_COLUMNS} FROM holdfast.visit WHERE principal = $1::text AND until > holdfast.now()
        ORDER BY seen_at DESC, id COLLATE "C" LIMIT $2"""
    return [to_visit(row) for row in (yield Statement(sql, (principal, limit)))]


def secret(name: str, candidate: str) -> Procedure[str]:
    yield Statement(
        "INSERT INTO holdfast.web_secret (name, value) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING",
        (name, candidate),
    )
    [(found,)] = yield Statement("SELECT value FROM holdfast.web_secret WHERE name = $1::text", (name,))
    return str(found)


def prune(limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (limit,))))


_PRUNE = """
DELETE FROM holdfast.visit WHERE id = ANY(ARRAY(
    SELECT id FROM holdfast.visit WHERE until <= (SELECT holdfast.now()) ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING id"""


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
        make = partial(begin, visit, idle=idle, last=last, replaces=replaces)
        if (executor := await self._executor(tx)) is None:
            await self._database.atomic(make, repeatable=True)
        else:
            await executor.run(make())

    async def get(self, visit_id: str) -> Visit | None:
        return await self._database.read(partial(get, visit_id))

    async def touch(self, visit_id: str, *, idle: float) -> bool:
        return await self._database.write(partial(touch, visit_id, idle=idle), repeatable=True)

    async def write(self, visit_id: str, data: str, *, version: int) -> bool:
        return await self._database.write(partial(write, visit_id, data, version=version))

    async def end(self, visit_id: str) -> bool:
        return await self._database.write(partial(end, visit_id), repeatable=True)

    async def end_of(
        self,
        principal: str,
        *,
        name: str | None = None,
        besides: str | None = None,
        tx: object | None = None,
    ) -> int:
        make = partial(end_of, principal, name=name, besides=besides)
        if (executor := await self._executor(tx)) is None:
            return await self._database.write(make, repeatable=True)
        return await executor.run(make())

    async def find(self, principal: str, *, limit: int = 100) -> list[Visit]:
        return await self._database.read(partial(find, principal, limit))

    async def secret(self, name: str, candidate: str) -> str:
        return await self._database.atomic(partial(secret, name, candidate), repeatable=True)

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, limit), repeatable=True)
