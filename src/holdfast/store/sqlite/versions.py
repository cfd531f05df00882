"""Versions that are compared: the newest of a key, and the newest that each reader has seen."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject
from holdfast.store.view_checks import need_tx
from holdfast.store.view_records import DAY


def hold(db: Db, key: str) -> int:
    """The transaction has the write lock: nobody else writes before it ends."""
    return db.value("SELECT version FROM holdfast_event_key WHERE key = ?", key) or 0


def advance(db: Db, reader: str, key: str, version: int) -> bool:
    sql = """INSERT INTO holdfast_seen AS s (reader, key, version, day) VALUES (?, ?, ?, ?)
        ON CONFLICT (reader, key) DO UPDATE SET version = excluded.version, day = excluded.day
        WHERE s.version < excluded.version"""
    return bool(db.run(sql, reader, key, version, int(db.now // DAY)))


def seen(db: Db, reader: str, key: str) -> int:
    return db.value("SELECT version FROM holdfast_seen WHERE reader = ? AND key = ?", reader, key) or 0


def prune(db: Db, *, keep: float, limit: int) -> int:
    sql = """DELETE FROM holdfast_seen WHERE (reader, key) IN
        (SELECT reader, key FROM holdfast_seen WHERE day < ? ORDER BY day LIMIT ?)"""
    return db.run(sql, int((db.now - keep) // DAY), limit)


@checked
class Versions(Subject):
    async def hold(self, key: str, *, tx: object | None = None) -> int:
        return await self._file.write(partial(hold, key=key), tx=need_tx(tx))

    async def advance(self, reader: str, key: str, version: int, *, tx: object | None = None) -> bool:
        return await self._file.write(partial(advance, reader=reader, key=key, version=version), tx=tx)

    async def seen(self, reader: str, key: str, *, tx: object | None = None) -> int:
        call = partial(seen, reader=reader, key=key)
        return await (self._file.read(call) if tx is None else self._file.write(call, tx=tx))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, keep=keep, limit=limit), repeatable=True)
