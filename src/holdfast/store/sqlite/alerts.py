"""Alerts: what holds, by one probe of an index for each cause, and the rows of what was told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.alert_records import CAUSES, COUNTED, AlertRecord, Kind, Looked, Seen, in_bounds
from holdfast.store.edge import checked
from holdfast.store.records import Lease
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.leases import is_held
from holdfast.store.sqlite.subject import Subject

_COLUMNS = "id, kind, cause, number, opened_at, told_at, told_number, quiet_since, ended_at"


def say(db: Db, kind: str, cause: str, *, due: float | None, expires: float | None) -> None:
    db.run(_SAY if expires is None else _EXPIRES, kind, cause, db.now if due is None else due, expires)


_INSERT = """
INSERT INTO holdfast_alert_cause (kind, cause, number, due_at, expires_at) VALUES (?, ?, 1, ?, ?)
ON CONFLICT DO UPDATE SET"""
_SAY = (
    f"{_INSERT} number = number + 1, due_at = min(due_at, excluded.due_at), expires_at = excluded.expires_at"
)
_EXPIRES = f"{_INSERT} number = 1, due_at = excluded.due_at, expires_at = excluded.expires_at"


def unsay(db: Db, kind: str, cause: str) -> bool:
    return bool(db.run("DELETE FROM holdfast_alert_cause WHERE kind = ? AND cause = ?", kind, cause))


def look(db: Db, patience: float) -> Looked:
    limit = CAUSES + 1
    found = {
        str(Kind.DEAD): _seen(Kind.DEAD, db.rows(_DEAD, limit, COUNTED)),
        str(Kind.UNKNOWN): _seen(Kind.UNKNOWN, db.rows(_UNKNOWN, limit, COUNTED, db.now - patience)),
        str(Kind.QUARANTINED): _seen(Kind.QUARANTINED, db.rows(_QUARANTINED, limit, COUNTED)),
    }
    return in_bounds(found, [Seen(*row) for row in db.rows(_SAID, db.now, limit)])


def _seen(kind: Kind, rows: Sequence[tuple[str, int]]) -> list[Seen]:
    return [Seen(str(kind), cause, number) for cause, number in rows if number]


def _by_cause(table: str, column: str, where: str, also: str = "true") -> str:
    """Each cause is found by one probe of the index, however many rows it has."""
    return f"""
WITH RECURSIVE c (cause) AS (
    SELECT (SELECT min({column}) FROM {table} WHERE {where})
    UNION ALL
    SELECT (SELECT min({column}) FROM {table} WHERE {where} AND {column} > c.cause) FROM c WHERE c.cause IS NOT NULL)
SELECT cause, (SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {where} AND {column} = c.cause AND {also} LIMIT ?2))
FROM c WHERE cause IS NOT NULL LIMIT ?1"""


_DEAD = _by_cause("holdfast_parked", "task", "state = 'dead'")
_UNKNOWN = _by_cause(
    "holdfast_parked", "task", "state = 'unknown'", "(look_at IS NULL OR coalesce(started_at, 0) < ?3)"
)
_QUARANTINED = _by_cause("holdfast_outbox", "type", "state = 'quarantined'")
_SAID = """
SELECT kind, cause, CASE WHEN expires_at IS NULL THEN number ELSE 1 + (expires_at <= ?1) END
FROM holdfast_alert_cause WHERE due_at <= ?1 ORDER BY due_at, kind, cause LIMIT ?2"""


def standing(db: Db, lease: Lease | None) -> list[AlertRecord] | None:
    if lease is not None and not is_held(db, lease):
        return None
    return _records(
        db.rows(f"SELECT {_COLUMNS} FROM holdfast_alert WHERE ended_at IS NULL ORDER BY opened_at, id")
    )


def write(db: Db, alerts: Sequence[AlertRecord]) -> None:
    db.run_many(_WRITE, [tuple(getattr(each, name) for name in each.__struct_fields__) for each in alerts])


_WRITE = f"""
INSERT INTO holdfast_alert ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET number = excluded.number, told_at = excluded.told_at, told_number = excluded.told_number,
    quiet_since = excluded.quiet_since, ended_at = excluded.ended_at"""


def find(db: Db, limit: int) -> list[AlertRecord]:
    open_ones = db.rows(
        f"SELECT {_COLUMNS} FROM holdfast_alert WHERE ended_at IS NULL ORDER BY opened_at DESC, id DESC LIMIT ?",
        limit,
    )
    ended = db.rows(
        f"SELECT {_COLUMNS} FROM holdfast_alert WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT ?",
        limit,
    )
    return _records([*open_ones, *ended][:limit])


def prune(db: Db, *, keep: float, limit: int) -> int:
    sql = "DELETE FROM holdfast_alert WHERE id IN (SELECT id FROM holdfast_alert WHERE ended_at <= ? ORDER BY ended_at LIMIT ?)"
    return db.run(sql, db.now - keep, limit)


def _records(rows: Sequence[tuple[object, ...]]) -> list[AlertRecord]:
    fields = AlertRecord.__struct_fields__
    return [AlertRecord(**dict(zip(fields, row, strict=True))) for row in rows]  # type: ignore[arg-type]


@checked
class Alerts(Subject):
    async def say(
        self,
        kind: str,
        cause: str,
        *,
        due: float | None = None,
        expires: float | None = None,
        tx: object | None = None,
    ) -> None:
        await self._file.write(partial(say, kind=kind, cause=cause, due=due, expires=expires), tx=tx)

    async def unsay(self, kind: str, cause: str, *, tx: object | None = None) -> bool:
        return await self._file.write(partial(unsay, kind=kind, cause=cause), tx=tx)

    async def look(self, *, patience: float) -> Looked:
        return await self._file.read(partial(look, patience=patience))

    async def standing(
        self, lease: Lease | None = None, *, tx: object | None = None
    ) -> list[AlertRecord] | None:
        if tx is None:
            return await self._file.read(partial(standing, lease=lease))
        return await self._file.write(partial(standing, lease=lease), tx=tx)

    async def write(self, alerts: Sequence[AlertRecord], *, tx: object | None = None) -> None:
        await self._file.write(partial(write, alerts=alerts), tx=tx)

    async def find(self, *, limit: int = 100) -> list[AlertRecord]:
        return await self._file.read(partial(find, limit=limit))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, keep=keep, limit=limit), repeatable=True)
