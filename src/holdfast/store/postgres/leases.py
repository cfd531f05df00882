"""Leases by name: taken when free or ended, kept by token."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.show import storable
from holdfast.store.edge import checked
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import Lease
from holdfast.store.statements import Procedure, Statement


def acquire(name: str, *, owner: str, ttl: float) -> Procedure[Lease | None]:
    rows = yield Statement(_ACQUIRE, (name, owner, float(ttl)))
    return Lease(name, owner, *rows[0]) if rows else None


# The clock and the token are read again after a wait for the row, so that neither is older than the row's.
_ACQUIRE = """
INSERT INTO holdfast.lease AS l (name, owner, token, until)
VALUES ($1::text, $2::text, nextval('holdfast.token'), holdfast.now() + make_interval(secs => $3::float8))
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = nextval('holdfast.token'),
    until = holdfast.now() + make_interval(secs => $3::float8)
WHERE l.owner = excluded.owner OR l.until <= holdfast.now()
RETURNING token, date_part('epoch', until)"""


def renew(lease: Lease, *, ttl: float) -> Procedure[Lease | None]:
    rows = yield Statement(_RENEW, (lease.name, lease.token, float(ttl)))
    return Lease(lease.name, lease.owner, lease.token, rows[0][0]) if rows else None


_RENEW = """
UPDATE holdfast.lease SET until = holdfast.now() + make_interval(secs => $3::float8)
WHERE name = $1::text AND token = $2::bigint AND until > holdfast.now() RETURNING date_part('epoch', until)"""


def release(lease: Lease) -> Procedure[bool]:
    sql = "DELETE FROM holdfast.lease WHERE name = $1::text AND token = $2::bigint RETURNING name"
    return bool((yield Statement(sql, (lease.name, lease.token))))


def get(name: str) -> Procedure[Lease | None]:
    rows = yield Statement(_GET, (name,))
    return Lease(*rows[0]) if rows else None


_GET = """
SELECT name, owner, token, date_part('epoch', until) FROM holdfast.lease
WHERE name = $1::text AND until > holdfast.now()"""


def find(limit: int) -> Procedure[list[Lease]]:
    return [Lease(*row) for row in (yield Statement(_FIND, (limit,)))]


# In the order of the characters' numbers, whatever the database's language.
_FIND = """
SELECT name, owner, token, date_part('epoch', until) FROM holdfast.lease
WHERE until > holdfast.now() ORDER BY name COLLATE "C" LIMIT $1"""


def steal(name: str, *, actor: str, reason: str) -> Procedure[bool]:
    return bool((yield Statement(_STEAL, (name, actor, storable(reason)))))


_STEAL = """
WITH stolen AS (DELETE FROM holdfast.lease WHERE name = $1::text AND until > holdfast.now() RETURNING name, owner)
INSERT INTO holdfast.audit (actor, action, subject, before, after)
SELECT $2::text, 'lease.stolen', 'lease:' || name, owner, $3::text FROM stolen RETURNING seq"""


def prune(limit: int) -> Procedure[int]:
    rows = yield Statement(_PRUNE, (limit,))
    return len(rows)


# Whoever holds a row's lock is taking that lease right now.
_PRUNE = """
DELETE FROM holdfast.lease WHERE name = ANY(ARRAY(
    SELECT name FROM holdfast.lease WHERE until <= holdfast.now() ORDER BY name LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING name"""


@checked
class Leases(Subject):
    async def acquire(self, name: str, *, owner: str, ttl: float) -> Lease | None:
        # Repeating is safe: what the first try may have taken is this owner's already.
        return await self._database.write(partial(acquire, name, owner=owner, ttl=ttl), repeatable=True)

    async def renew(self, lease: Lease, *, ttl: float) -> Lease | None:
        return await self._database.write(partial(renew, lease, ttl=ttl), urgent=True, repeatable=True)

    async def release(self, lease: Lease) -> bool:
        return await self._database.write(partial(release, lease))

    async def get(self, name: str) -> Lease | None:
        return await self._database.read(partial(get, name))

    async def find(self, *, limit: int = 100) -> list[Lease]:
        return await self._database.read(partial(find, limit))

    async def steal(self, name: str, *, actor: str, reason: str) -> bool:
        return await self._database.write(partial(steal, name, actor=actor, reason=reason))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, limit), repeatable=True)
