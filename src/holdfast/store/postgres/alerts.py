"""Alerts: what holds, by one probe of an index for each cause, and the rows of what was told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store.alert_records import CAUSES, COUNTED, AlertRecord, Kind, Looked, Seen, in_bounds
from holdfast.store.edge import checked
from holdfast.store.postgres.relaying import fence
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import Lease
from holdfast.store.statements import Procedure, Statement

_COLUMNS = """id, kind, cause, number, date_part('epoch', opened_at), date_part('epoch', told_at), told_number,
    date_part('epoch', quiet_since), date_part('epoch', ended_at)"""


def say(kind: str, cause: str, *, due: float | None, expires: float | None) -> Procedure[None]:
    yield Statement(_SAY if expires is None else _EXPIRES, (kind, cause, due, expires))


_INSERT = """
INSERT INTO holdfast.alert_cause AS c (kind, cause, number, due_at, expires_at)
VALUES ($1::text, $2::text, 1, coalesce(to_timestamp($3::float8), holdfast.now()), to_timestamp($4::float8))
ON CONFLICT (kind, cause) DO UPDATE SET"""
_SAY = f"{_INSERT} number = c.number + 1, due_at = least(c.due_at, excluded.due_at), expires_at = excluded.expires_at"
_EXPIRES = f"{_INSERT} number = 1, due_at = excluded.due_at, expires_at = excluded.expires_at"


def unsay(kind: str, cause: str) -> Procedure[bool]:
    sql = "DELETE FROM holdfast.alert_cause WHERE kind = $1::text AND cause = $2::text RETURNING kind"
    return bool((yield Statement(sql, (kind, cause))))


def look(patience: float) -> Procedure[Looked]:
    limit = CAUSES + 1
    dead = yield Statement(_DEAD, (limit, COUNTED))
    unknown = yield Statement(_UNKNOWN, (limit, COUNTED, float(patience)))
    quarantined = yield Statement(_QUARANTINED, (limit, COUNTED))
    said = yield Statement(_SAID, (limit,))
    found = {
        str(Kind.DEAD): _seen(Kind.DEAD, dead),
        str(Kind.UNKNOWN): _seen(Kind.UNKNOWN, unknown),
        str(Kind.QUARANTINED): _seen(Kind.QUARANTINED, quarantined),
    }
    return in_bounds(found, [Seen(*row) for row in said])


def _seen(kind: Kind, rows: Sequence[Sequence[Any]]) -> list[Seen]:
    return [Seen(str(kind), cause, number) for cause, number in rows if number]


def _by_cause(table: str, column: str, where: str, also: str = "true") -> str:
    """Each cause is found by one probe of the index, however many rows it has."""
    return f"""
WITH RECURSIVE c AS (
    (SELECT {column} AS cause FROM {table} WHERE {where} ORDER BY {column} LIMIT 1)
    UNION ALL
    SELECT (SELECT {column} FROM {table} WHERE {where} AND {column} > c.cause ORDER BY {column} LIMIT 1)
    FROM c WHERE c.cause IS NOT NULL)
SELECT c.cause, (SELECT count(*) FROM (
    SELECT FROM {table} WHERE {where} AND {column} = c.cause AND {also} LIMIT $2::bigint) AS n)
FROM c WHERE c.cause IS NOT NULL LIMIT $1::bigint"""


_DEAD = _by_cause("holdfast.job", "task", "state = 'dead'")
_UNKNOWN = _by_cause(
    "holdfast.job", "task", "state = 'unknown'",
    "(look_at IS NULL OR started_at IS NULL OR started_at < holdfast.now() - make_interval(secs => $3::float8))",
)  # fmt: skip
_QUARANTINED = _by_cause("holdfast.outbox", "type", "state = 'quarantined'")
_SAID = """
SELECT kind, cause, CASE WHEN expires_at IS NULL THEN number WHEN expires_at <= holdfast.now() THEN 2 ELSE 1 END
FROM holdfast.alert_cause WHERE due_at <= holdfast.now() ORDER BY due_at, kind, cause LIMIT $1::bigint"""


def standing(lease: Lease | None) -> Procedure[list[AlertRecord] | None]:
    if lease is not None and not (yield from fence(lease)):
        return None
    return _records((yield Statement(_STANDING)))


_STANDING = f"SELECT {_COLUMNS} FROM holdfast.alert WHERE ended_at IS NULL ORDER BY opened_at, id"


def write(alerts: Sequence[AlertRecord]) -> Procedure[None]:
    if alerts:
        fields = AlertRecord.__struct_fields__
        yield Statement(_WRITE, tuple([getattr(each, name) for each in alerts] for name in fields))


_WRITE = """
INSERT INTO holdfast.alert (id, kind, cause, number, opened_at, told_at, told_number, quiet_since, ended_at)
SELECT id, kind, cause, number, to_timestamp(opened), to_timestamp(told), told_number, to_timestamp(quiet), to_timestamp(ended)
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::float8[], $7::bigint[], $8::float8[], $9::float8[])
    AS n(id, kind, cause, number, opened, told, told_number, quiet, ended)
ON CONFLICT (id) DO UPDATE SET number = excluded.number, told_at = excluded.told_at, told_number = excluded.told_number,
    quiet_since = excluded.quiet_since, ended_at = excluded.ended_at"""


def find(limit: int) -> Procedure[list[AlertRecord]]:
    return _records((yield Statement(_FIND, (limit,))))


_FIND = f"""
(SELECT {_COLUMNS} FROM holdfast.alert WHERE ended_at IS NULL ORDER BY opened_at DESC, id DESC LIMIT $1::bigint)
UNION ALL
(SELECT {_COLUMNS} FROM holdfast.alert WHERE ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT $1::bigint)
LIMIT $1::bigint"""


def prune(*, keep: float, limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (float(keep), limit))))


_PRUNE = """
DELETE FROM holdfast.alert WHERE id = ANY(ARRAY(
    SELECT id FROM holdfast.alert WHERE ended_at <= holdfast.now() - make_interval(secs => $1::float8)
    ORDER BY ended_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED)) RETURNING id"""


def _records(rows: Sequence[Sequence[Any]]) -> list[AlertRecord]:
    fields = AlertRecord.__struct_fields__
    return [AlertRecord(**dict(zip(fields, row, strict=True))) for row in rows]


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
        if (executor := await self._executor(tx)) is None:
            await self._database.atomic(partial(say, kind, cause, due=due, expires=expires))
        else:
            await executor.run(say(kind, cause, due=due, expires=expires))

    async def unsay(self, kind: str, cause: str, *, tx: object | None = None) -> bool:
        if (executor := await self._executor(tx)) is None:
            return await self._database.atomic(partial(unsay, kind, cause))
        return await executor.run(unsay(kind, cause))

    async def look(self, *, patience: float) -> Looked:
        return await self._database.read(partial(look, patience))

    async def standing(
        self, lease: Lease | None = None, *, tx: object | None = None
    ) -> list[AlertRecord] | None:
        if tx is None:
            return await self._database.atomic(partial(standing, lease))
        return await (await self._home.adopt(tx)).run(standing(lease))

    async def write(self, alerts: Sequence[AlertRecord], *, tx: object | None = None) -> None:
        if (executor := await self._executor(tx)) is None:
            await self._database.atomic(partial(write, alerts))
        else:
            await executor.run(write(alerts))

    async def find(self, *, limit: int = 100) -> list[AlertRecord]:
        return await self._database.read(partial(find, limit))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, keep=keep, limit=limit), repeatable=True)
