"""Versions that are compared: the newest of a key, and the newest that each reader has seen."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement
from holdfast.store.view_checks import need_tx


def hold(key: str) -> Procedure[int]:
    rows = yield Statement(_HOLD, (key,))
    version: int = rows[0][0]
    return version


# The row is made when there is none: two who both expect a new key meet here, and not at their commits.
_HOLD = """
INSERT INTO holdfast.event_key AS k (key, version) VALUES ($1::text, 0)
ON CONFLICT (key) DO UPDATE SET version = k.version RETURNING k.version"""


def advance(reader: str, key: str, version: int) -> Procedure[bool]:
    return bool((yield Statement(_ADVANCE, (reader, key, version))))


_ADVANCE = """
INSERT INTO holdfast.seen AS s (reader, key, version, day)
VALUES ($1::text, $2::text, $3::bigint, floor(date_part('epoch', holdfast.now()) / 86400)::bigint)
ON CONFLICT (reader, key) DO UPDATE SET version = excluded.version, day = excluded.day
WHERE s.version < excluded.version RETURNING 1"""


def seen(reader: str, key: str) -> Procedure[int]:
    rows = yield Statement(_SEEN, (reader, key))
    return rows[0][0] if rows else 0


_SEEN = "SELECT version FROM holdfast.seen WHERE reader = $1::text AND key = $2::text"


def prune(*, keep: float, limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (limit, float(keep)))))


_PRUNE = """
DELETE FROM holdfast.seen WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM holdfast.seen
    WHERE day < (SELECT floor((date_part('epoch', holdfast.now()) - $2::float8) / 86400)::bigint)
    ORDER BY day LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1"""


@checked
class Versions(Subject):
    async def hold(self, key: str, *, tx: object | None = None) -> int:
        return await (await self._home.adopt(need_tx(tx))).run(hold(key))

    async def advance(self, reader: str, key: str, version: int, *, tx: object | None = None) -> bool:
        make = partial(advance, reader, key, version)
        if (executor := await self._executor(tx)) is None:
            return await self._database.write(make)
        return await executor.run(make())

    async def seen(self, reader: str, key: str, *, tx: object | None = None) -> int:
        make = partial(seen, reader, key)
        if tx is None:
            return await self._database.read(make)
        return await (await self._home.adopt(tx)).run(make())

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, keep=keep, limit=limit), repeatable=True)
