"""Flags: a row for each decision, and a number that grows with each change."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.flag_records import FlagChange, Flagged, FlagRecord
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject


def change(db: Db, told: FlagChange) -> bool:
    name = told.name, told.tenant or ""
    row = db.row("SELECT value FROM holdfast_flag WHERE name = ? AND tenant = ?", *name)
    before = None if row is None else bool(row[0])
    if told.value is None and before is None:
        return False
    if told.value is None:
        db.run("DELETE FROM holdfast_flag WHERE name = ? AND tenant = ?", *name)
    else:
        if before is None:
            told.check_room(db.value("SELECT count(*) FROM holdfast_flag"))
        db.run(_SET, *name, int(told.value), told.reason, told.actor, db.now)
    db.draw("flags")
    audit.write(db, told.entry(before))
    return True


_SET = """
INSERT INTO holdfast_flag (name, tenant, value, reason, set_by, set_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET value = excluded.value, reason = excluded.reason, set_by = excluded.set_by, set_at = excluded.set_at"""


def version(db: Db) -> int:
    return int(db.value("SELECT value FROM holdfast_counter WHERE name = 'flags'"))


def all_flags(db: Db) -> Flagged:
    rows = db.rows(
        "SELECT name, tenant, value, reason, set_by, set_at FROM holdfast_flag ORDER BY name, tenant"
    )
    flags = (FlagRecord(row[0], row[1] or None, bool(row[2]), *row[3:]) for row in rows)
    return Flagged(version(db), tuple(flags))


@checked
class Flags(Subject):
    async def set(
        self,
        name: str,
        value: bool,
        *,
        tenant: str | None = None,
        actor: str,
        reason: str,
        tx: object | None = None,
    ) -> None:
        told = FlagChange(name, tenant, value, actor, reason)
        await self._file.write(partial(change, told=told), tx=tx)

    async def unset(
        self, name: str, *, tenant: str | None = None, actor: str, reason: str, tx: object | None = None
    ) -> bool:
        told = FlagChange(name, tenant, None, actor, reason)
        return await self._file.write(partial(change, told=told), tx=tx)

    async def version(self) -> int:
        return await self._file.read(version)

    async def all(self) -> Flagged:
        return await self._file.read(all_flags)
