"""Flags: a row for each decision, and a number that grows with each change."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.flag_records import FlagChange, Flagged, FlagRecord
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement


def change(told: FlagChange) -> Procedure[bool]:
    name = told.name, told.tenant or ""
    yield Statement("SELECT value FROM holdfast.flag_version FOR UPDATE")  # one change after the other
    sql = "SELECT value FROM holdfast.flag WHERE name = $1::text AND tenant = $2::text"
    rows = yield Statement(sql, name)
    before = rows[0][0] if rows else None
    if told.value is None and before is None:
        return False
    if told.value is None:
        yield Statement("DELETE FROM holdfast.flag WHERE name = $1::text AND tenant = $2::text", name)
    else:
        if before is None:
            [(known,)] = yield Statement("SELECT count(*) FROM holdfast.flag")
            told.check_room(known)
        yield Statement(_SET, (*name, told.value, told.reason, told.actor))
    yield Statement("UPDATE holdfast.flag_version SET value = value + 1")
    yield audited([told.entry(before)])
    return True


_SET = """
INSERT INTO holdfast.flag (name, tenant, value, reason, set_by, set_at)
VALUES ($1::text, $2::text, $3::boolean, $4::text, $5::text, holdfast.now())
ON CONFLICT (name, tenant) DO UPDATE SET value = excluded.value, reason = excluded.reason, set_by = excluded.set_by,
    set_at = excluded.set_at"""


def version() -> Procedure[int]:
    [(found,)] = yield Statement("SELECT value FROM holdfast.flag_version")
    return int(found)


def all_flags() -> Procedure[Flagged]:
    rows = yield Statement(_ALL)
    flags = (FlagRecord(row[1], row[2] or None, *row[3:]) for row in rows if row[1] is not None)
    return Flagged(rows[0][0], tuple(flags))


# One statement, so that the number and the flags are of one moment.
_ALL = """
SELECT v.value, f.name, f.tenant, f.value, f.reason, f.set_by, date_part('epoch', f.set_at)
FROM holdfast.flag_version v LEFT JOIN holdfast.flag f ON true ORDER BY f.name COLLATE "C", f.tenant COLLATE "C" """


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
        await self._change(FlagChange(name, tenant, value, actor, reason), tx)

    async def unset(
        self, name: str, *, tenant: str | None = None, actor: str, reason: str, tx: object | None = None
    ) -> bool:
        return await self._change(FlagChange(name, tenant, None, actor, reason), tx)

    async def _change(self, told: FlagChange, tx: object | None) -> bool:
        make = partial(change, told)
        if (executor := await self._executor(tx)) is None:
            return await self._database.atomic(make)
        return await executor.run(make())

    async def version(self) -> int:
        return await self._database.read(version)

    async def all(self) -> Flagged:
        return await self._database.read(all_flags)
