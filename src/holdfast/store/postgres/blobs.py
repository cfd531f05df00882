"""Rows of blobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store.blob_records import END, BlobRow, BlobState, NewBlob, Usage
from holdfast.store.edge import checked
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement

_COUNTING = f"SELECT pg_advisory_xact_lock({0x486F_0005}, hashtext($1::text))"  # its class: see locks.py
_COLUMNS = """name, object, state, settled, size, sha256, content_type, reason, date_part('epoch', created_at),
    date_part('epoch', changed_at)"""


def add(blob: NewBlob) -> Procedure[BlobRow | None]:
    sql = f"""INSERT INTO holdfast.blob (name, object, state, settled, size, sha256, content_type, created_at, changed_at)
        VALUES ($1::text, $2::text, 'kept', false, $3::bigint, $4::text, $5::text, holdfast.now(), holdfast.now())
        ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"""
    return _one((yield Statement(sql, (blob.name, blob.object, blob.size, blob.sha256, blob.content_type))))


def get(name: str) -> Procedure[BlobRow | None]:
    return _one((yield Statement(f"SELECT {_COLUMNS} FROM holdfast.blob WHERE name = $1::text", (name,))))


def find(*, prefix: str, after: str, state: BlobState | None, limit: int) -> Procedure[list[BlobRow]]:
    sql = f"""SELECT {_COLUMNS} FROM holdfast.blob WHERE name >= $1::text AND name < $2::text AND name > $3::text
        {"" if state is None else "AND state = $5::text"} ORDER BY name LIMIT $4::bigint"""
    given: tuple[Any, ...] = (prefix, prefix + END, after, limit)
    return _rows((yield Statement(sql, given if state is None else (*given, str(state)))))


def usage(prefix: str) -> Procedure[Usage]:
    sql = """SELECT count(*), coalesce(sum(size), 0)::bigint FROM holdfast.blob
        WHERE name >= $1::text AND name < $2::text AND state IN ('kept', 'quarantined')"""
    rows = yield Statement(sql, (prefix, prefix + END))
    return Usage(int(rows[0][0]), int(rows[0][1]))


def usage_alone(prefix: str) -> Procedure[Usage]:
    """In a statement after the lock's own, which sees what the one before us has committed."""
    yield Statement(_COUNTING, (prefix,))
    return (yield from usage(prefix))


def change(
    name: str, to: BlobState, *, of: Sequence[BlobState], reason: str | None
) -> Procedure[BlobRow | None]:
    return _one((yield Statement(_CHANGE, (name, str(to), [str(each) for each in of], reason))))


_CHANGE = f"""
UPDATE holdfast.blob SET state = $2::text, settled = $2::text IN ('deleted', 'missing'), reason = $4::text, changed_at = holdfast.now()
WHERE name = $1::text AND state = ANY($3::text[]) RETURNING {_COLUMNS}"""


def move(name: str, *, source: str, target: str) -> Procedure[bool]:
    sql = """UPDATE holdfast.blob SET object = $3::text, settled = false
        WHERE name = $1::text AND object = $2::text RETURNING name"""
    return bool((yield Statement(sql, (name, source, target))))


def settle(row: BlobRow) -> Procedure[bool]:
    sql = """UPDATE holdfast.blob SET settled = true
        WHERE name = $1::text AND object = $2::text AND state = $3::text RETURNING name"""
    return bool((yield Statement(sql, (row.name, row.object, str(row.state)))))


def unsettled(*, older: float, limit: int) -> Procedure[list[BlobRow]]:
    sql = f"""SELECT {_COLUMNS} FROM holdfast.blob
        WHERE NOT settled AND changed_at <= (SELECT holdfast.now()) - make_interval(secs => $1::float8)
        ORDER BY changed_at LIMIT $2::bigint"""
    return _rows((yield Statement(sql, (float(older), limit))))


def known(objects: Sequence[str]) -> Procedure[set[str]]:
    sql = "SELECT object FROM holdfast.blob WHERE object = ANY($1::text[])"
    return {row[0] for row in (yield Statement(sql, (list(objects),)))}


def purge(*, keep: float, limit: int) -> Procedure[list[BlobRow]]:
    return _rows((yield Statement(_PURGE, (float(keep), limit))))


_PURGE = f"""
UPDATE holdfast.blob SET state = 'purging', settled = true WHERE name = ANY(ARRAY(
    SELECT name FROM holdfast.blob WHERE state IN ('deleted', 'purging')
        AND (state = 'purging' OR changed_at <= (SELECT holdfast.now()) - make_interval(secs => $1::float8))
    ORDER BY changed_at LIMIT $2::bigint FOR UPDATE)) AND state IN ('deleted', 'purging') RETURNING {_COLUMNS}"""


def forget(row: BlobRow) -> Procedure[bool]:
    sql = """DELETE FROM holdfast.blob WHERE name = $1::text AND object = $2::text AND state = 'purging' RETURNING name"""
    return bool((yield Statement(sql, (row.name, row.object))))


def _one(rows: Sequence[Sequence[Any]]) -> BlobRow | None:
    return _rows(rows)[0] if rows else None


def _rows(rows: Sequence[Sequence[Any]]) -> list[BlobRow]:
    return [BlobRow(row[0], row[1], BlobState(row[2]), *row[3:]) for row in rows]


@checked
class Blobs(Subject):
    async def add(self, blob: NewBlob, *, tx: object | None = None) -> BlobRow | None:
        if (executor := await self._executor(tx)) is None:
            return await self._database.write(partial(add, blob))
        return await executor.run(add(blob))

    async def get(self, name: str) -> BlobRow | None:
        return await self._database.read(partial(get, name))

    async def find(
        self, *, prefix: str = "", after: str = "", state: BlobState | None = None, limit: int = 100
    ) -> list[BlobRow]:
        return await self._database.read(partial(find, prefix=prefix, after=after, state=state, limit=limit))

    async def usage(self, *, prefix: str = "", tx: object | None = None) -> Usage:
        if tx is None:
            return await self._database.read(partial(usage, prefix))
        executor = await self._home.adopt(tx)
        return await executor.run(usage_alone(prefix))

    async def change(
        self,
        name: str,
        to: BlobState,
        *,
        of: Sequence[BlobState],
        reason: str | None = None,
        tx: object | None = None,
    ) -> BlobRow | None:
        make = partial(change, name, to, of=of, reason=reason)
        if (executor := await self._executor(tx)) is None:
            return await self._database.write(make)
        return await executor.run(make())

    async def move(self, name: str, *, source: str, target: str) -> bool:
        return await self._database.write(partial(move, name, source=source, target=target))

    async def settle(self, row: BlobRow) -> bool:
        return await self._database.write(partial(settle, row), repeatable=True)

    async def unsettled(self, *, older: float, limit: int = 100) -> list[BlobRow]:
        return await self._database.read(partial(unsettled, older=older, limit=limit))

    async def known(self, objects: Sequence[str]) -> set[str]:
        return await self._database.read(partial(known, objects))

    async def purge(self, *, keep: float, limit: int = 100) -> list[BlobRow]:
        return await self._database.write(partial(purge, keep=keep, limit=limit), repeatable=True)

    async def forget(self, row: BlobRow) -> bool:
        return await self._database.write(partial(forget, row))
