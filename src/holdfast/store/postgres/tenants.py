"""Pause a tenant and resume it: its ready jobs are held, and those that were held are let go in their order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.bell import EVERYONE
from holdfast.store.edge import checked
from holdfast.store.postgres import audit
from holdfast.store.postgres.locks import Keys, lock_chain
from holdfast.store.postgres.promotion import pass_on
from holdfast.store.postgres.rows import same_id
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import AuditEntry, PausedTenant, paused_entry
from holdfast.store.statements import Procedure, Statement


def pause(key: str, *, reason: str, by: str) -> Procedure[None]:
    """One that is paused already stays as it is; one whose jobs are still let go is paused anew."""
    if (yield Statement(_PAUSE, (key, reason, by))):
        yield from audit.write(paused_entry(key, reason, by))
        yield from _hold_ready(key)


_PAUSE = """
INSERT INTO holdfast.tenant AS t (key, reason, paused_by) VALUES ($1::text, $2::text, $3::text)
ON CONFLICT (key) DO UPDATE SET reason = excluded.reason, paused_by = excluded.paused_by, paused_at = excluded.paused_at,
    resumed_at = NULL WHERE t.resumed_at IS NOT NULL
RETURNING key"""


def _hold_ready(key: str) -> Procedure[None]:
    """They are let go first, and give back their slots. So do those that have one and wait for their tenant's window.

    Whoever claims one of them just now is waited for.
    """
    slots = [row[0] for row in (yield Statement(_SLOTS, (key,)))]
    keys = [Keys(None, slot) for slot in slots]
    if keys:
        yield from lock_chain(keys)
    yield Statement(_HOLD, (key, slots))
    if keys:
        yield from pass_on(keys)


_OF_TENANT = "j.tenant = $1::text AND j.tenant IS NOT NULL AND j.state = 'queued'"
_READY = f"{_OF_TENANT} AND j.held IS NULL"
_WITH_SLOT = f"{_OF_TENANT} AND j.held = 'tenant' AND j.slot IS NOT NULL"
_SLOTS = f"""
SELECT j.concurrency_key FROM holdfast.job j WHERE {_READY} AND j.concurrency_key IS NOT NULL
UNION SELECT j.concurrency_key FROM holdfast.job j WHERE {_WITH_SLOT}"""
# A job that has taken another slot since then is left alone: it is not claimed while its tenant is paused.
_HOLD = f"""
WITH ready AS MATERIALIZED (
    SELECT j.id, j.rank FROM holdfast.job j WHERE {_READY} AND (j.slot IS NULL OR j.concurrency_key = ANY($2::text[]))
    ORDER BY j.id FOR UPDATE),
with_slot AS MATERIALIZED (
    SELECT j.id, j.priority, j.rank FROM holdfast.job j WHERE {_WITH_SLOT} AND j.concurrency_key = ANY($2::text[])
    ORDER BY j.id FOR UPDATE),
chosen AS (
    SELECT id, 0 AS place, 0 AS priority, rank FROM ready UNION ALL SELECT id, 1, -priority, rank FROM with_slot),
drawn AS MATERIALIZED (SELECT nextval('holdfast.rank') AS rank),
ranked AS MATERIALIZED (
    SELECT id, -((SELECT rank FROM drawn) << 20) + row_number() OVER (ORDER BY place, priority, chosen.rank) AS rank FROM chosen)
UPDATE holdfast.job j SET held = 'paused', slot = NULL, rank = ranked.rank FROM ranked WHERE {same_id("ranked")}"""


def resume(key: str, *, by: str) -> Procedure[None]:
    """Its jobs are let go by promote, some at a time: there may be a million of them."""
    if (yield Statement(_RESUME, (key,))):
        yield from audit.write(AuditEntry(actor=by, action="tenant.resumed", subject=f"tenant:{key}"))


_RESUME = """
UPDATE holdfast.tenant SET resumed_at = holdfast.now() WHERE key = $1::text AND resumed_at IS NULL RETURNING key"""


def forget(keys: Sequence[str]) -> Procedure[None]:
    """Tenants that were resumed and have nothing left that is held for that: looked at once more with their rows locked."""
    sql = """SELECT key FROM holdfast.tenant WHERE key = ANY($1::text[]) AND resumed_at IS NOT NULL
        ORDER BY key FOR UPDATE SKIP LOCKED"""
    if locked := [row[0] for row in (yield Statement(sql, (list(keys),)))]:
        yield Statement(_FORGET, (locked,))


_FORGET = """
DELETE FROM holdfast.tenant t WHERE t.key = ANY($1::text[])
    AND NOT EXISTS (SELECT FROM holdfast.job j WHERE j.held = 'paused' AND j.tenant = t.key)"""


def repair() -> Procedure[None]:
    """Jobs that became ready while their tenant was being paused, and any that is held for a pause that is over."""
    for (key,) in (yield Statement(_READY_OF_PAUSED)):
        yield from _hold_ready(key)
    yield Statement(_LOST)


_READY_OF_PAUSED = """
SELECT t.key FROM holdfast.tenant t WHERE t.resumed_at IS NULL AND EXISTS (
    SELECT FROM holdfast.job j WHERE j.tenant = t.key AND j.tenant IS NOT NULL AND j.state = 'queued' AND j.held IS NULL)
ORDER BY t.key LIMIT 100"""
_LOST = """
INSERT INTO holdfast.tenant (key, reason, paused_by, resumed_at)
SELECT DISTINCT j.tenant, 'forgotten', 'repair', holdfast.now() FROM holdfast.job j
WHERE j.held = 'paused' AND NOT EXISTS (SELECT FROM holdfast.tenant t WHERE t.key = j.tenant)
ON CONFLICT DO NOTHING"""


def paused() -> Procedure[list[PausedTenant]]:
    sql = """SELECT key, reason, paused_by, date_part('epoch', paused_at) FROM holdfast.tenant
        WHERE resumed_at IS NULL ORDER BY paused_at, key"""
    return [PausedTenant(*row) for row in (yield Statement(sql))]


@checked
class Tenants(Subject):
    async def pause(self, key: str, *, reason: str, by: str, tx: object | None = None) -> None:
        make = partial(pause, key, reason=reason, by=by)
        if (executor := await self._executor(tx)) is not None:
            await executor.run(make())
        else:
            await self._database.atomic(make, repeatable=True)

    async def resume(self, key: str, *, by: str, tx: object | None = None) -> None:
        make = partial(resume, key, by=by)
        if (executor := await self._executor(tx)) is not None:
            await executor.run(make())
        else:
            await self._database.atomic(make, repeatable=True)
        self._home.hint((EVERYONE,), tx=tx)

    async def paused(self) -> list[PausedTenant]:
        return await self._database.read(paused)
