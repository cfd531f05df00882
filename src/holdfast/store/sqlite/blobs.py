"""Rows of blobs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.blob_records import END, BlobRow, BlobState, NewBlob, Usage
from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject

_COLUMNS = "name, object, state, settled, size, sha256, content_type, reason, created_at, changed_at"
_SETTLED = (BlobState.DELETED, BlobState.MISSING)  # their objects stay where they are


def add(db: Db, blob: NewBlob) -> BlobRow | None:
    sql = f"""INSERT INTO holdfast_blob ({_COLUMNS}) VALUES (?, ?, 'kept', 0, ?, ?, ?, NULL, ?, ?)
        ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"""
    return _one(
        db.row(sql, blob.name, blob.object, blob.size, blob.sha256, blob.content_type, db.now, db.now)
    )


def get(db: Db, name: str) -> BlobRow | None:
    return _one(db.row(f"SELECT {_COLUMNS} FROM holdfast_blob WHERE name = ?", name))


def find(db: Db, *, prefix: str, after: str, state: BlobState | None, limit: int) -> list[BlobRow]:
    sql = f"""SELECT {_COLUMNS} FROM holdfast_blob WHERE name >= ?1 AND name < ?2 AND name > ?3
        {"" if state is None else "AND state = ?5"} ORDER BY name LIMIT ?4"""
    given = (
        (prefix, prefix + END, after, limit)
        if state is None
        else (prefix, prefix + END, after, limit, str(state))
    )
    return [_row(row) for row in db.rows(sql, *given)]


def usage(db: Db, prefix: str) -> Usage:
    sql = """SELECT count(*), coalesce(sum(size), 0) FROM holdfast_blob
        WHERE name >= ? AND name < ? AND state IN ('kept', 'quarantined')"""
    number, size = db.row(sql, prefix, prefix + END) or (0, 0)
    return Usage(number, size)


def change(
    db: Db, name: str, to: BlobState, *, of: Sequence[BlobState], reason: str | None
) -> BlobRow | None:
    states = ", ".join("?" * len(of))
    sql = f"""UPDATE holdfast_blob SET state = ?, settled = ?, reason = ?, changed_at = ?
        WHERE name = ? AND state IN ({states}) RETURNING {_COLUMNS}"""
    return _one(db.row(sql, str(to), int(to in _SETTLED), reason, db.now, name, *map(str, of)))


def move(db: Db, name: str, *, source: str, target: str) -> bool:
    sql = "UPDATE holdfast_blob SET object = ?, settled = 0 WHERE name = ? AND object = ?"
    return bool(db.run(sql, target, name, source))


def settle(db: Db, row: BlobRow) -> bool:
    sql = "UPDATE holdfast_blob SET settled = 1 WHERE name = ? AND object = ? AND state = ?"
    return bool(db.run(sql, row.name, row.object, str(row.state)))


def unsettled(db: Db, *, older: float, limit: int) -> list[BlobRow]:
    sql = f"SELECT {_COLUMNS} FROM holdfast_blob WHERE settled = 0 AND changed_at <= ? ORDER BY changed_at LIMIT ?"
    return [_row(row) for row in db.rows(sql, db.now - older, limit)]


def known(db: Db, objects: Sequence[str]) -> set[str]:
    sql = "SELECT 1 FROM holdfast_blob WHERE object = ?"
    return {each for each in objects if db.row(sql, each) is not None}


def purge(db: Db, *, keep: float, limit: int) -> list[BlobRow]:
    sql = """UPDATE holdfast_blob SET state = 'purging', settled = 1 WHERE name IN
        (SELECT name FROM holdfast_blob WHERE state IN ('deleted', 'purging') AND (state = 'purging' OR changed_at <= ?)
         ORDER BY changed_at LIMIT ?)"""
    db.run(sql, db.now - keep, limit)
    found = f"SELECT {_COLUMNS} FROM holdfast_blob WHERE state = 'purging' ORDER BY changed_at LIMIT ?"
    return [_row(row) for row in db.rows(found, limit)]


def forget(db: Db, row: BlobRow) -> bool:
    sql = "DELETE FROM holdfast_blob WHERE name = ? AND object = ? AND state = 'purging'"
    return bool(db.run(sql, row.name, row.object))


def _one(row: Row | None) -> BlobRow | None:
    return None if row is None else _row(row)


def _row(row: Row) -> BlobRow:
    name, place, state, settled, *rest = row
    return BlobRow(name, place, BlobState(state), bool(settled), *rest)


@checked
class Blobs(Subject):
    async def add(self, blob: NewBlob, *, tx: object | None = None) -> BlobRow | None:
        return await self._file.write(partial(add, blob=blob), tx=tx)

    async def get(self, name: str) -> BlobRow | None:
        return await self._file.read(partial(get, name=name))

    async def find(
        self, *, prefix: str = "", after: str = "", state: BlobState | None = None, limit: int = 100
    ) -> list[BlobRow]:
        return await self._file.read(partial(find, prefix=prefix, after=after, state=state, limit=limit))

    async def usage(self, *, prefix: str = "", tx: object | None = None) -> Usage:
        if tx is None:
            return await self._file.read(partial(usage, prefix=prefix))
        return await self._file.write(partial(usage, prefix=prefix), tx=tx)  # one writes at a time

    async def change(
        self,
        name: str,
        to: BlobState,
        *,
        of: Sequence[BlobState],
        reason: str | None = None,
        tx: object | None = None,
    ) -> BlobRow | None:
        return await self._file.write(partial(change, name=name, to=to, of=of, reason=reason), tx=tx)

    async def move(self, name: str, *, source: str, target: str) -> bool:
        return await self._file.write(partial(move, name=name, source=source, target=target))

    async def settle(self, row: BlobRow) -> bool:
        return await self._file.write(partial(settle, row=row), repeatable=True)

    async def unsettled(self, *, older: float, limit: int = 100) -> list[BlobRow]:
        return await self._file.read(partial(unsettled, older=older, limit=limit))

    async def known(self, objects: Sequence[str]) -> set[str]:
        return await self._file.read(partial(known, objects=objects))

    async def purge(self, *, keep: float, limit: int = 100) -> list[BlobRow]:
        return await self._file.write(partial(purge, keep=keep, limit=limit), repeatable=True)

    async def forget(self, row: BlobRow) -> bool:
        return await self._file.write(partial(forget, row=row))
