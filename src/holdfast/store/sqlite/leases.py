"""Leases by name: taken when free or ended, kept by token."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.show import storable
from holdfast.store.edge import checked
from holdfast.store.records import AuditEntry, Lease
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject


def is_held(db: Db, lease: Lease) -> bool:
    """Whether nobody else can have it now: the fence of what its holder writes elsewhere."""
    sql = "SELECT 1 FROM holdfast_lease WHERE name = ? AND token = ? AND until > ?"
    return bool(db.value(sql, lease.name, lease.token, db.now))


def acquire(db: Db, name: str, *, owner: str, ttl: float) -> Lease | None:
    row = db.row("SELECT owner, until FROM holdfast_lease WHERE name = ?", name)
    if row is not None and row[0] != owner and row[1] > db.now:
        return None
    lease = Lease(name, owner, db.draw("token"), db.now + ttl)
    sql = """INSERT INTO holdfast_lease (name, owner, token, until) VALUES (?, ?, ?, ?)
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, until = excluded.until"""
    db.run(sql, lease.name, lease.owner, lease.token, lease.until)
    return lease


def renew(db: Db, lease: Lease, *, ttl: float) -> Lease | None:
    sql = "UPDATE holdfast_lease SET until = ? WHERE name = ? AND token = ? AND until > ?"
    until = db.now + ttl
    if not db.run(sql, until, lease.name, lease.token, db.now):
        return None
    return Lease(lease.name, lease.owner, lease.token, until)


def release(db: Db, lease: Lease) -> bool:
    return bool(db.run("DELETE FROM holdfast_lease WHERE name = ? AND token = ?", lease.name, lease.token))


def get(db: Db, name: str) -> Lease | None:
    row = db.row(
        "SELECT name, owner, token, until FROM holdfast_lease WHERE name = ? AND until > ?", name, db.now
    )
    return None if row is None else Lease(*row)


def find(db: Db, *, limit: int) -> list[Lease]:
    sql = "SELECT name, owner, token, until FROM holdfast_lease WHERE until > ? ORDER BY name LIMIT ?"
    return [Lease(*row) for row in db.rows(sql, db.now, limit)]


def steal(db: Db, name: str, *, actor: str, reason: str) -> bool:
    row = db.row("DELETE FROM holdfast_lease WHERE name = ? AND until > ? RETURNING owner", name, db.now)
    if row is None:
        return False
    entry = AuditEntry(
        actor=actor, action="lease.stolen", subject=f"lease:{name}", before=row[0], after=reason
    )
    audit.write(db, entry)
    return True


def prune(db: Db, *, limit: int) -> int:
    sql = (
        "DELETE FROM holdfast_lease WHERE name IN (SELECT name FROM holdfast_lease WHERE until <= ? LIMIT ?)"
    )
    return db.run(sql, db.now, limit)


@checked
class Leases(Subject):
    async def acquire(self, name: str, *, owner: str, ttl: float) -> Lease | None:
        # Repeating is safe: what the first try may have taken is this owner's already.
        return await self._file.write(partial(acquire, name=name, owner=owner, ttl=ttl), repeatable=True)

    async def renew(self, lease: Lease, *, ttl: float) -> Lease | None:
        return await self._file.write(partial(renew, lease=lease, ttl=ttl), urgent=True, repeatable=True)

    async def release(self, lease: Lease) -> bool:
        return await self._file.write(partial(release, lease=lease))

    async def get(self, name: str) -> Lease | None:
        return await self._file.read(partial(get, name=name))

    async def find(self, *, limit: int = 100) -> list[Lease]:
        return await self._file.read(partial(find, limit=limit))

    async def steal(self, name: str, *, actor: str, reason: str) -> bool:
        reason = storable(reason)
        return await self._file.write(partial(steal, name=name, actor=actor, reason=reason))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, limit=limit), repeatable=True)
