"""Views: the rows that projections make, kept in one commit with how far they have read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial

from holdfast.store import verdicts
from holdfast.store.edge import checked
from holdfast.store.records import Lease
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.outbox import are_at
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject
from holdfast.store.view_records import BURIED, Aside, Checkpoint, Loaded, ViewBatch, ViewRow, behind

_CHECKPOINT = "view, generation, state, start, position, history, seen_at, begun_at"
_ROW = "r.key, r.data, r.source, r.version, r.position, r.updated_at"
_SERVED = """FROM holdfast_view_row AS r WHERE r.view = ?1
    AND r.generation = (SELECT v.generation FROM holdfast_view AS v WHERE v.view = ?1 AND v.state = 'serving')"""
_ASIDE = "view, generation, position, event_id, key, event, error, tries, at, tried_at"


def begin(db: Db, view: str, *, start: int, history: bool) -> Checkpoint | None:
    seen = "UPDATE holdfast_view SET seen_at = ?, history = ? WHERE view = ? AND state <> 'old'"
    db.run(seen, db.now, history, view)
    if (serving := _serving(db, view)) is not None:
        return serving
    if not _is_kept(db, start):
        return None
    return _make(db, view, "serving", start=start, history=history)


def _is_kept(db: Db, start: int) -> bool:
    """Whether the log still begins there: what is published behind it was not pruned since somebody looked."""
    return bool(db.value(_KEPT, start))


_KEPT = """
SELECT ?1 >= value OR EXISTS (SELECT 1 FROM holdfast_outbox WHERE position = ?1 + 1)
FROM holdfast_counter WHERE name = 'position'"""


def _serving(db: Db, view: str) -> Checkpoint | None:
    row = db.row(f"SELECT {_CHECKPOINT} FROM holdfast_view WHERE view = ? AND state = 'serving'", view)
    return None if row is None else _to_checkpoint(row)


def _make(db: Db, view: str, state: str, *, start: int, history: bool) -> Checkpoint:
    """Rows of generations that were given up may still be there: a number is used once while they are."""
    sql = f"""INSERT INTO holdfast_view (view, generation, state, start, position, history, begun_at, seen_at)
        SELECT ?1, 1 + coalesce(max(generation), 0), ?2, ?3, ?3, ?4, ?5, ?5 FROM holdfast_view WHERE view = ?1
        RETURNING {_CHECKPOINT}"""
    row = db.row(sql, view, state, start, history, db.now)
    assert row is not None
    return _to_checkpoint(row)


def _to_checkpoint(row: Row) -> Checkpoint:
    values = dict(zip(Checkpoint.__struct_fields__, row, strict=True))
    return Checkpoint(**{**values, "history": bool(values["history"])})


def checkpoints(db: Db, *, view: str | None, limit: int) -> list[Checkpoint]:
    where, params = ("AND view = ?", [view]) if view is not None else ("", [])
    sql = f"""SELECT {_CHECKPOINT} FROM holdfast_view WHERE state <> 'old' {where}
        ORDER BY view, generation LIMIT ?"""
    return [_to_checkpoint(row) for row in db.rows(sql, *params, limit)]


def get(db: Db, view: str, key: str) -> ViewRow | None:
    sql = f"SELECT {_ROW} {_SERVED} AND r.key = ?2"
    row = db.row(sql, view, key)
    return None if row is None else _to_row(row)


def _to_row(row: Row) -> ViewRow:
    return ViewRow(**dict(zip(ViewRow.__struct_fields__, row, strict=True)))


def find(db: Db, view: str, *, prefix: str, after: str | None, limit: int) -> list[ViewRow]:
    """The end is a part of the text, or all keys behind those with the prefix would be walked through."""
    end = behind(prefix)
    sql = f"""SELECT {_ROW} {_SERVED} AND r.key >= ?2 AND r.key > ?3
        {"" if end is None else "AND r.key < ?5"} AND r.data IS NOT NULL ORDER BY r.key LIMIT ?4"""
    given = (view, prefix, after or "", limit)
    return [_to_row(row) for row in db.rows(sql, *given, *([] if end is None else [end]))]


def load(db: Db, view: str, generation: int, keys: Sequence[str]) -> Loaded:
    of_these = "view = ? AND generation = ? AND key IN (SELECT value FROM json_each(?))"
    given = (view, generation, json.dumps(keys))
    rows = db.rows(f"SELECT {_ROW} FROM holdfast_view_row AS r WHERE {of_these} ORDER BY key", *given)
    held = db.rows(f"SELECT DISTINCT key FROM holdfast_view_aside WHERE {of_these}", *given)
    return Loaded(tuple(_to_row(row) for row in rows), frozenset(key for (key,) in held))


def apply(db: Db, lease: Lease, batch: ViewBatch) -> bool:
    if not _is_held(db, lease):
        return False
    if batch.seen and not are_at(db, batch.upto, batch.seen):
        return False
    this = (batch.view, batch.generation)
    moved = """UPDATE holdfast_view SET position = ?, token = ?, seen_at = ?
        WHERE view = ? AND generation = ? AND state <> 'old' AND position = ?"""
    if not db.run(moved, batch.upto, lease.token, db.now, *this, batch.after):
        return _was_ours(db, lease, batch)
    buried = math.ceil((db.now + BURIED) / 60)
    for row in batch.rows:
        forget = buried if row.data is None else None
        db.run(_WRITE, *this, row.key, row.data, row.source, row.version, row.position, db.now, forget)
    for event in batch.aside:
        given = (event.position, event.event_id, event.key, event.event, event.error)
        db.run(_SET_ASIDE, *this, *given, db.now, db.now)
    for position in batch.settled:
        db.run(f"DELETE FROM holdfast_view_aside WHERE {_THIS} AND position = ?", *this, position)
    return True


_THIS = "view = ? AND generation = ?"
_WRITE = """
INSERT INTO holdfast_view_row AS r (view, generation, key, data, source, version, position, updated_at, forget)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (view, generation, key) DO UPDATE SET data = excluded.data, source = excluded.source,
    version = excluded.version, position = excluded.position, updated_at = excluded.updated_at, forget = excluded.forget
WHERE r.position < excluded.position"""
_SET_ASIDE = """
INSERT INTO holdfast_view_aside AS a (view, generation, position, event_id, key, event, error, at, tried_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (view, generation, position) DO UPDATE SET key = excluded.key, error = excluded.error,
    tries = a.tries + 1, tried_at = excluded.tried_at"""


def _is_held(db: Db, lease: Lease) -> bool:
    sql = "SELECT 1 FROM holdfast_lease WHERE name = ? AND token = ? AND until > ?"
    return bool(db.value(sql, lease.name, lease.token, db.now))


def _was_ours(db: Db, lease: Lease, batch: ViewBatch) -> bool:
    """After a lost answer: this lease has moved it to where the batch ends, and nobody further."""
    sql = "SELECT 1 FROM holdfast_view WHERE view = ? AND generation = ? AND state <> 'old' AND position = ? AND token = ?"
    found = db.value(sql, batch.view, batch.generation, batch.upto, lease.token)
    return bool(found) and batch.upto > batch.after


def begin_rebuild(db: Db, view: str, *, start: int, actor: str) -> Checkpoint | None:
    if (serving := _serving(db, view)) is None or not _is_kept(db, start):
        return None
    db.run("UPDATE holdfast_view SET state = 'old' WHERE view = ? AND state = 'building'", view)
    building = _make(db, view, "building", start=start, history=serving.history)
    audit.write(db, verdicts.view_rebuilt(serving, building, actor=actor))
    return building


def switch(db: Db, lease: Lease, view: str, generation: int) -> bool:
    if not _is_held(db, lease) or not db.value(_MAY_SERVE, view, generation):
        return False
    db.run("UPDATE holdfast_view SET state = 'old' WHERE view = ? AND state = 'serving'", view)
    db.run(f"UPDATE holdfast_view SET state = 'serving' WHERE {_THIS}", view, generation)
    return True


# Nobody may see a row go back: so it has read as far, and no event waits in it that the old one has taken.
_MAY_SERVE = """
SELECT 1 FROM holdfast_view AS b JOIN holdfast_view AS s ON s.view = b.view AND s.state = 'serving'
WHERE b.view = ? AND b.generation = ? AND b.state = 'building' AND b.position >= s.position AND NOT EXISTS (
    SELECT 1 FROM holdfast_view_aside AS a WHERE a.view = b.view AND a.generation = b.generation
        AND a.position <= s.position AND NOT EXISTS (
            SELECT 1 FROM holdfast_view_aside AS o
            WHERE o.view = s.view AND o.generation = s.generation AND o.position = a.position))"""


def aside(
    db: Db, view: str, *, generation: int | None, key: str | None, after: int, limit: int
) -> list[Aside]:
    sql = f"""SELECT {_ASIDE} FROM holdfast_view_aside WHERE view = ?1 AND generation = coalesce(?2,
            (SELECT generation FROM holdfast_view WHERE view = ?1 AND state = 'serving'))
        AND position > ?3 AND (?5 IS NULL OR key = ?5) ORDER BY position LIMIT ?4"""
    found = db.rows(sql, view, generation, after, limit, key)
    return [Aside(**dict(zip(Aside.__struct_fields__, row, strict=True))) for row in found]


def count_aside(db: Db, view: str, *, generation: int | None, limit: int) -> int:
    """By the index on keys: the rows themselves have whole events in them."""
    sql = """SELECT count(*) FROM (SELECT 1 FROM holdfast_view_aside INDEXED BY holdfast_view_aside_of_key
        WHERE view = ?1 AND generation = coalesce(?2,
            (SELECT generation FROM holdfast_view WHERE view = ?1 AND state = 'serving')) LIMIT ?3)"""
    found: int = db.value(sql, view, generation, limit)
    return found


def forget(db: Db, view: str, *, actor: str) -> bool:
    serving = _serving(db, view)
    if not db.run("UPDATE holdfast_view SET state = 'old' WHERE view = ? AND state <> 'old'", view):
        return False
    audit.write(db, verdicts.view_forgotten(view, serving, actor=actor))
    return True


def prune(db: Db, *, limit: int) -> int:
    left = limit
    for view, generation in db.rows("SELECT view, generation FROM holdfast_view WHERE state = 'old'"):
        for table in ("view_row", "view_aside"):
            left -= _prune_of(db, table, view, generation, left)
        if left <= 0:
            return limit
        db.run(f"DELETE FROM holdfast_view WHERE {_THIS}", view, generation)
    return limit - left + _prune_deleted(db, left)


def _prune_of(db: Db, table: str, view: str, generation: int, limit: int) -> int:
    key = "key" if table == "view_row" else "position"
    sql = f"""DELETE FROM holdfast_{table} WHERE view = ?1 AND generation = ?2 AND {key} IN
        (SELECT {key} FROM holdfast_{table} WHERE view = ?1 AND generation = ?2 LIMIT ?3)"""
    return db.run(sql, view, generation, limit)


def _prune_deleted(db: Db, limit: int) -> int:
    sql = """DELETE FROM holdfast_view_row WHERE (view, generation, key) IN (SELECT view, generation, key
        FROM holdfast_view_row WHERE forget <= ? ORDER BY forget LIMIT ?)"""
    return db.run(sql, int(db.now // 60), limit)


@checked
class Views(Subject):
    async def begin(self, view: str, *, start: int, history: bool = False) -> Checkpoint | None:
        return await self._file.write(
            partial(begin, view=view, start=start, history=history), repeatable=True
        )

    async def checkpoints(self, *, view: str | None = None, limit: int = 100) -> list[Checkpoint]:
        return await self._file.read(partial(checkpoints, view=view, limit=limit))

    async def get(self, view: str, key: str) -> ViewRow | None:
        return await self._file.read(partial(get, view=view, key=key))

    async def find(
        self, view: str, *, prefix: str = "", after: str | None = None, limit: int = 100
    ) -> list[ViewRow]:
        return await self._file.read(partial(find, view=view, prefix=prefix, after=after, limit=limit))

    async def load(self, view: str, generation: int, keys: Sequence[str]) -> Loaded:
        return await self._file.read(partial(load, view=view, generation=generation, keys=keys))

    async def apply(self, lease: Lease, batch: ViewBatch) -> bool:
        return await self._file.write(partial(apply, lease=lease, batch=batch), repeatable=True)

    async def begin_rebuild(self, view: str, *, start: int, actor: str) -> Checkpoint | None:
        return await self._file.write(partial(begin_rebuild, view=view, start=start, actor=actor))

    async def switch(self, lease: Lease, view: str, generation: int) -> bool:
        return await self._file.write(partial(switch, lease=lease, view=view, generation=generation))

    async def aside(
        self,
        view: str,
        *,
        generation: int | None = None,
        key: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Aside]:
        call = partial(aside, view=view, generation=generation, key=key, after=after, limit=limit)
        return await self._file.read(call)

    async def count_aside(self, view: str, *, generation: int | None = None, limit: int) -> int:
        call = partial(count_aside, view=view, generation=generation, limit=limit)
        return await self._file.read(call)

    async def forget(self, view: str, *, actor: str) -> bool:
        return await self._file.write(partial(forget, view=view, actor=actor))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, limit=limit), repeatable=True)
