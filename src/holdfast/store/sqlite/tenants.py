"""Pause a tenant and resume it: its ready jobs are held, and those that were held are let go in their order."""

from __future__ import annotations

from functools import partial

from holdfast.store.bell import EVERYONE
from holdfast.store.edge import checked
from holdfast.store.fairness import PLACES, first_rank
from holdfast.store.ladder import Waiting
from holdfast.store.records import AuditEntry, PausedTenant, paused_entry
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moves import Freed, look, pass_on
from holdfast.store.sqlite.rows import WAITING
from holdfast.store.sqlite.subject import Subject


def pause(db: Db, key: str, *, reason: str, by: str) -> None:
    """One that is paused already stays as it is; one whose jobs are still let go is paused anew."""
    sql = """INSERT INTO holdfast_tenant (key, reason, paused_by, paused_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (key) DO UPDATE SET reason = excluded.reason, paused_by = excluded.paused_by,
            paused_at = excluded.paused_at, resumed_at = NULL WHERE resumed_at IS NOT NULL"""
    if db.run(sql, key, reason, by, db.now):
        audit.write(db, paused_entry(key, reason, by))
        _hold_ready(db, key)


def _hold_ready(db: Db, key: str) -> None:
    """They are let go first, and give back their slots. So do those that have one and wait for their tenant's window."""
    ready = db.rows(_READY, key) + db.rows(_WITH_SLOT, key)
    if not ready:
        return
    rank = first_rank(db.draw("rank"))
    sql = "UPDATE holdfast_queued SET held = 'paused', rank = ? WHERE seq = ?"
    db.run_many(sql, [(rank + place, seq) for place, (seq, _) in enumerate(ready)])
    slots = [(concurrency, seq) for seq, concurrency in ready if concurrency is not None]
    db.run_many("DELETE FROM holdfast_slot WHERE key = ? AND seq = ?", slots)
    pass_on(db, [Freed(None, concurrency) for concurrency, _ in slots])


_READY = """SELECT seq, concurrency_key FROM holdfast_queued WHERE tenant = ? AND tenant IS NOT NULL AND held IS NULL
    ORDER BY rank"""
_WITH_SLOT = """SELECT q.seq, q.concurrency_key FROM holdfast_slot AS s CROSS JOIN holdfast_queued AS q ON q.seq = s.seq
    WHERE q.tenant = ? AND q.held = 'tenant' ORDER BY q.priority DESC, q.rank"""


def resume(db: Db, key: str, *, by: str) -> None:
    """Its jobs are let go by promote, some at a time: there may be a million of them."""
    sql = "UPDATE holdfast_tenant SET resumed_at = ? WHERE key = ? AND resumed_at IS NULL"
    if db.run(sql, db.now, key):
        audit.write(db, AuditEntry(actor=by, action="tenant.resumed", subject=f"tenant:{key}"))
        db.draw("rank")  # that is what other processes watch for news


def paused(db: Db) -> list[PausedTenant]:
    sql = """SELECT key, reason, paused_by, paused_at FROM holdfast_tenant
        WHERE resumed_at IS NULL ORDER BY paused_at, key"""
    return [PausedTenant(*row) for row in db.rows(sql)]


def released(db: Db, limit: int) -> list[Waiting]:
    """Jobs of tenants that were resumed, some of each; a tenant that has none left is forgotten."""
    resumed = db.rows(
        "SELECT key FROM holdfast_tenant WHERE resumed_at IS NOT NULL ORDER BY key LIMIT ?", PLACES
    )
    found: list[Waiting] = []
    for (key,) in resumed:
        some = look(db, _RELEASED, tenant=key, most=max(1, limit // len(resumed)))
        if not some:
            db.run("DELETE FROM holdfast_tenant WHERE key = ?", key)
        found += some.values()
    return found


_RELEASED = f"""{WAITING} WHERE q.held = 'paused' AND q.tenant = :tenant
    ORDER BY q.priority DESC, q.rank LIMIT :most"""


def repair(db: Db) -> None:
    """Nothing makes a job of a paused tenant ready, or forgets one that is held: this is for what nobody thought of."""
    for (key,) in db.rows("SELECT key FROM holdfast_tenant WHERE resumed_at IS NULL"):
        _hold_ready(db, key)
    lost = """INSERT INTO holdfast_tenant (key, reason, paused_by, paused_at, resumed_at)
        SELECT DISTINCT q.tenant, 'forgotten', 'repair', ?1, ?1 FROM holdfast_queued AS q
        WHERE q.held = 'paused' AND NOT EXISTS (SELECT 1 FROM holdfast_tenant AS t WHERE t.key = q.tenant)"""
    db.run(lost, db.now)


@checked
class Tenants(Subject):
    async def pause(self, key: str, *, reason: str, by: str, tx: object | None = None) -> None:
        await self._file.write(partial(pause, key=key, reason=reason, by=by), tx=tx, repeatable=True)

    async def resume(self, key: str, *, by: str, tx: object | None = None) -> None:
        await self._file.write(partial(resume, key=key, by=by), tx=tx, repeatable=True)
        self._file.hint((EVERYONE,), tx=tx)

    async def paused(self) -> list[PausedTenant]:
        return await self._file.read(paused)
