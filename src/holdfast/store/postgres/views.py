"""Views: the rows that projections make, kept in one commit with how far they have read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store import verdicts
from holdfast.store.edge import checked
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.outbox import are_at, is_kept
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import Lease
from holdfast.store.statements import Procedure, Statement
from holdfast.store.view_records import BURIED, Aside, Checkpoint, Loaded, ViewBatch, ViewRow, behind

_CHECKPOINT = """view, generation, state, start, position, history,
    date_part('epoch', seen_at), date_part('epoch', begun_at)"""
_ROW = "r.key, r.data, r.source, r.version, r.position, date_part('epoch', r.updated_at)"
# As a value of its own, so that the rows of a page are read in the order of the primary key, and no more of them.
_SERVED = """FROM holdfast.view_row AS r WHERE r.view = $1::text
    AND r.generation = (SELECT v.generation FROM holdfast.view AS v WHERE v.view = $1::text AND v.state = 'serving')"""
_ASIDE = """a.view, a.generation, a.position, a.event_id::text, a.key, a.event, a.error, a.tries,
    date_part('epoch', a.at), date_part('epoch', a.tried_at)"""
_THIS = "view = $1::text AND generation = $2::bigint"


def begin(view: str, *, start: int, history: bool) -> Procedure[Checkpoint | None]:
    """One at a time for each view: two who make its first generation would make two."""
    yield Statement(_TURN, (view,))
    rows = yield Statement(_SEEN, (view, history))
    serving = [row for row in rows if row[2] == "serving"]
    if not serving:
        if not (yield from is_kept(start)):
            return None
        serving = list((yield Statement(_MAKE, (view, "serving", start, history))))
    return _to_checkpoint(serving[0])


_TURN = f"SELECT pg_advisory_xact_lock({0x486F_0003}, hashtext($1::text))"  # its class: see locks.py
_SEEN = f"""
UPDATE holdfast.view SET seen_at = holdfast.now(), history = $2::boolean
WHERE view = $1::text AND state <> 'old' RETURNING {_CHECKPOINT}"""
# Rows of generations that were given up may still be there: a number is used once while they are.
_MAKE = f"""
INSERT INTO holdfast.view (view, generation, state, start, position, history, begun_at, seen_at)
SELECT $1::text, 1 + coalesce((SELECT max(generation) FROM holdfast.view WHERE view = $1::text), 0), $2::text,
    $3::bigint, $3::bigint, $4::boolean, n.now, n.now FROM (SELECT holdfast.now() AS now) AS n
RETURNING {_CHECKPOINT}"""


def _to_checkpoint(row: Sequence[Any]) -> Checkpoint:
    return Checkpoint(**dict(zip(Checkpoint.__struct_fields__, row, strict=True)))


def checkpoints(*, view: str | None, limit: int) -> Procedure[list[Checkpoint]]:
    where, params = ("AND view = $2::text", (limit, view)) if view is not None else ("", (limit,))
    sql = f"""SELECT {_CHECKPOINT} FROM holdfast.view WHERE state <> 'old' {where}
        ORDER BY view, generation LIMIT $1"""
    return [_to_checkpoint(row) for row in (yield Statement(sql, params))]


def get(view: str, key: str) -> Procedure[ViewRow | None]:
    rows = yield Statement(_GET, (view, key))
    return _to_row(rows[0]) if rows else None


_GET = f"SELECT {_ROW} {_SERVED} AND r.key = $2::text"


def _to_row(row: Sequence[Any]) -> ViewRow:
    return ViewRow(**dict(zip(ViewRow.__struct_fields__, row, strict=True)))


def find(view: str, *, prefix: str, after: str | None, limit: int) -> Procedure[list[ViewRow]]:
    """The end is a part of the text, or all keys behind those with the prefix would be walked through."""
    end, given = behind(prefix), (view, prefix, after or "", limit)
    statement = Statement(_FIND_ALL, given) if end is None else Statement(_FIND, (*given, end))
    return [_to_row(row) for row in (yield statement)]


_FIND_FROM = f"SELECT {_ROW} {_SERVED} AND r.key >= $2::text AND r.key > $3::text"
_FIND_ALL = f"{_FIND_FROM} AND r.data IS NOT NULL ORDER BY r.key LIMIT $4"
_FIND = f"{_FIND_FROM} AND r.key < $5::text AND r.data IS NOT NULL ORDER BY r.key LIMIT $4"


def load(view: str, generation: int, keys: Sequence[str]) -> Procedure[Loaded]:
    given = (view, generation, list(keys))
    rows = yield Statement(_LOAD, given)
    held = yield Statement(_HELD, given)
    return Loaded(tuple(_to_row(row) for row in rows), frozenset(row[0] for row in held))


_LOAD = f"SELECT {_ROW} FROM holdfast.view_row AS r WHERE {_THIS} AND key = ANY($3::text[]) ORDER BY key"
_HELD = f"SELECT DISTINCT key FROM holdfast.view_aside WHERE {_THIS} AND key = ANY($3::text[])"


def apply(lease: Lease, batch: ViewBatch) -> Procedure[bool]:
    if not (yield _held(lease)):
        return False
    if batch.seen and not (yield from are_at(batch.upto, batch.seen)):
        return False
    this = (batch.view, batch.generation)
    if not (yield Statement(_MOVE, (*this, batch.after, batch.upto, lease.token))):
        # After a lost answer: this lease has moved it to where the batch ends, and nobody further.
        again = yield Statement(_MOVED, (*this, batch.upto, lease.token))
        return bool(again) and batch.upto > batch.after
    if batch.rows:
        rows = sorted(batch.rows, key=lambda row: row.key)
        columns = [[getattr(row, name) for row in rows] for name in _WRITTEN]
        yield Statement(_WRITE, (*this, *columns, BURIED))
    if batch.aside:
        columns = [[getattr(event, name) for event in batch.aside] for name in _KEPT]
        yield Statement(_SET_ASIDE, (*this, *columns))
    if batch.settled:
        sql = f"DELETE FROM holdfast.view_aside WHERE {_THIS} AND position = ANY($3::bigint[])"
        yield Statement(sql, (*this, list(batch.settled)))
    return True


def _held(lease: Lease) -> Statement:
    """Locked until the commit: whoever takes the lease next, takes it after that."""
    return Statement(_IS_HELD, (lease.name, lease.token))


_IS_HELD = """
SELECT 1 FROM holdfast.lease WHERE name = $1::text AND token = $2::bigint AND until > holdfast.now() FOR SHARE"""
_MOVE = f"""
UPDATE holdfast.view SET position = $4::bigint, token = $5::bigint, seen_at = holdfast.now()
WHERE {_THIS} AND state <> 'old' AND position = $3::bigint RETURNING 1"""
_MOVED = f"""
SELECT 1 FROM holdfast.view WHERE {_THIS} AND state <> 'old' AND position = $3::bigint AND token = $4::bigint"""
_WRITTEN = ("key", "data", "source", "version", "position")
_WRITE = """
INSERT INTO holdfast.view_row AS r (view, generation, key, data, source, version, position, updated_at, forget)
SELECT $1::text, $2::bigint, w.key, w.data, w.source, w.version, w.position, n.now,
    CASE WHEN w.data IS NULL THEN ceil((date_part('epoch', n.now) + $8::float8) / 60)::bigint END
FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[]) AS w (key, data, source, version, position)
    CROSS JOIN (SELECT holdfast.now() AS now) AS n
ON CONFLICT (view, generation, key) DO UPDATE SET data = excluded.data, source = excluded.source,
    version = excluded.version, position = excluded.position, updated_at = excluded.updated_at, forget = excluded.forget
WHERE r.position < excluded.position"""
_KEPT = ("position", "event_id", "key", "event", "error")
_SET_ASIDE = """
INSERT INTO holdfast.view_aside AS a (view, generation, position, event_id, key, event, error, at, tried_at)
SELECT $1::text, $2::bigint, w.position, w.event_id, w.key, w.event, w.error, n.now, n.now
FROM unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::text[]) AS w (position, event_id, key, event, error)
    CROSS JOIN (SELECT holdfast.now() AS now) AS n
ON CONFLICT (view, generation, position) DO UPDATE SET key = excluded.key, error = excluded.error,
    tries = a.tries + 1, tried_at = excluded.tried_at"""


def begin_rebuild(view: str, *, start: int, actor: str) -> Procedure[Checkpoint | None]:
    yield Statement(_TURN, (view,))
    rows = yield Statement(_SERVING, (view,))
    if not rows:
        return None
    if not (yield from is_kept(start)):
        return None
    serving = _to_checkpoint(rows[0])
    sql = "UPDATE holdfast.view SET state = 'old' WHERE view = $1::text AND state = 'building'"
    yield Statement(sql, (view,))
    rows = yield Statement(_MAKE, (view, "building", start, serving.history))
    building = _to_checkpoint(rows[0])
    yield audited([verdicts.view_rebuilt(serving, building, actor=actor)])
    return building


_SERVING = (
    f"SELECT {_CHECKPOINT} FROM holdfast.view WHERE view = $1::text AND state = 'serving' FOR NO KEY UPDATE"
)


def switch(lease: Lease, view: str, generation: int) -> Procedure[bool]:
    yield Statement(_TURN, (view,))
    if not (yield _held(lease)) or not (yield Statement(_MAY_SERVE, (view, generation))):
        return False
    yield Statement(
        "UPDATE holdfast.view SET state = 'old' WHERE view = $1::text AND state = 'serving'", (view,)
    )
    yield Statement(f"UPDATE holdfast.view SET state = 'serving' WHERE {_THIS}", (view, generation))
    return True


# Nobody may see a row go back: so it has read as far, and no event waits in it that the old one has taken.
_MAY_SERVE = """
SELECT 1 FROM holdfast.view AS b JOIN holdfast.view AS s ON s.view = b.view AND s.state = 'serving'
WHERE b.view = $1::text AND b.generation = $2::bigint AND b.state = 'building' AND b.position >= s.position
    AND NOT EXISTS (
        SELECT 1 FROM holdfast.view_aside AS a WHERE a.view = b.view AND a.generation = b.generation
            AND a.position <= s.position AND NOT EXISTS (
                SELECT 1 FROM holdfast.view_aside AS o
                WHERE o.view = s.view AND o.generation = s.generation AND o.position = a.position))"""


def aside(
    view: str, *, generation: int | None, key: str | None, after: int, limit: int
) -> Procedure[list[Aside]]:
    rows = yield Statement(_FIND_ASIDE, (view, generation, after, limit, key))
    return [Aside(**dict(zip(Aside.__struct_fields__, row, strict=True))) for row in rows]


_FIND_ASIDE = f"""
SELECT {_ASIDE} FROM holdfast.view_aside AS a WHERE a.view = $1::text AND a.generation = coalesce($2::bigint,
    (SELECT generation FROM holdfast.view WHERE view = $1::text AND state = 'serving'))
    AND a.position > $3::bigint AND ($5::text IS NULL OR a.key = $5::text) ORDER BY a.position LIMIT $4"""


def count_aside(view: str, *, generation: int | None, limit: int) -> Procedure[int]:
    rows = yield Statement(_COUNT_ASIDE, (view, generation, limit))
    found: int = rows[0][0]
    return found


_COUNT_ASIDE = """
SELECT count(*) FROM (SELECT 1 FROM holdfast.view_aside WHERE view = $1::text AND generation = coalesce($2::bigint,
    (SELECT generation FROM holdfast.view WHERE view = $1::text AND state = 'serving')) LIMIT $3) AS counted"""


def forget(view: str, *, actor: str) -> Procedure[bool]:
    yield Statement(_TURN, (view,))
    rows = yield Statement(_SERVING, (view,))
    sql = "UPDATE holdfast.view SET state = 'old' WHERE view = $1::text AND state <> 'old' RETURNING 1"
    if not (yield Statement(sql, (view,))):
        return False
    yield audited([verdicts.view_forgotten(view, _to_checkpoint(rows[0]) if rows else None, actor=actor)])
    return True


def prune(limit: int) -> Procedure[int]:
    left = limit
    olds = yield Statement("SELECT view, generation FROM holdfast.view WHERE state = 'old'")
    for view, generation in olds:
        for sql in _PRUNES:
            if left > 0:
                left -= len((yield Statement(sql, (view, generation, left))))
        if left <= 0:
            return limit
        yield Statement(f"DELETE FROM holdfast.view WHERE {_THIS} AND state = 'old'", (view, generation))
    return limit - left + len((yield Statement(_PRUNE_DELETED, (left,))))


_PRUNE = """
DELETE FROM {table} WHERE view = $1::text AND generation = $2::bigint AND {key} = ANY(ARRAY(
    SELECT {key} FROM {table} WHERE view = $1::text AND generation = $2::bigint ORDER BY {key} LIMIT $3))
RETURNING 1"""
_PRUNES = [
    _PRUNE.format(table=f"holdfast.{table}", key=key)
    for table, key in (("view_row", "key"), ("view_aside", "position"))
]
_PRUNE_DELETED = """
DELETE FROM holdfast.view_row WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM holdfast.view_row WHERE forget <= (SELECT floor(date_part('epoch', holdfast.now()) / 60)::bigint)
    ORDER BY forget LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1"""


@checked
class Views(Subject):
    async def begin(self, view: str, *, start: int, history: bool = False) -> Checkpoint | None:
        return await self._database.atomic(
            partial(begin, view, start=start, history=history), repeatable=True
        )

    async def checkpoints(self, *, view: str | None = None, limit: int = 100) -> list[Checkpoint]:
        return await self._database.read(partial(checkpoints, view=view, limit=limit))

    async def get(self, view: str, key: str) -> ViewRow | None:
        return await self._database.read(partial(get, view, key))

    async def find(
        self, view: str, *, prefix: str = "", after: str | None = None, limit: int = 100
    ) -> list[ViewRow]:
        return await self._database.read(partial(find, view, prefix=prefix, after=after, limit=limit))

    async def load(self, view: str, generation: int, keys: Sequence[str]) -> Loaded:
        return await self._database.read(partial(load, view, generation, keys))

    async def apply(self, lease: Lease, batch: ViewBatch) -> bool:
        return await self._database.atomic(partial(apply, lease, batch), repeatable=True)

    async def begin_rebuild(self, view: str, *, start: int, actor: str) -> Checkpoint | None:
        return await self._database.atomic(partial(begin_rebuild, view, start=start, actor=actor))

    async def switch(self, lease: Lease, view: str, generation: int) -> bool:
        return await self._database.atomic(partial(switch, lease, view, generation))

    async def aside(
        self,
        view: str,
        *,
        generation: int | None = None,
        key: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Aside]:
        make = partial(aside, view, generation=generation, key=key, after=after, limit=limit)
        return await self._database.read(make)

    async def count_aside(self, view: str, *, generation: int | None = None, limit: int) -> int:
        return await self._database.read(partial(count_aside, view, generation=generation, limit=limit))

    async def forget(self, view: str, *, actor: str) -> bool:
        return await self._database.atomic(partial(forget, view, actor=actor))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, limit), repeatable=True)
