"""Messages that could not be understood, kept as they came until a person has looked at them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.kernel.show import storable
from holdfast.store import event_verdicts
from holdfast.store.edge import checked
from holdfast.store.event_records import RAW_SHOWN, Stray
from holdfast.store.parts import in_parts
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject
from holdfast.store.stray_text import fingerprint, fitting

BATCH = 500  # strays in one transaction
_KEEP = """
    INSERT INTO holdfast_stray (hash, transport, group_name, raw, reason, at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (hash) DO NOTHING"""


def keep(db: Db, *, hashed: bytes, transport: str, group: str, raw: bytes, reason: str) -> int:
    db.run(_KEEP, hashed, transport, group, raw, reason, db.now)
    stray_id: int = db.value("SELECT id FROM holdfast_stray WHERE hash = ?", hashed)
    return stray_id


def find(db: Db, *, limit: int) -> list[Stray]:
    sql = """SELECT id, transport, group_name, substr(raw, 1, ?), reason, at FROM holdfast_stray
        ORDER BY id DESC LIMIT ?"""
    return [to_stray(row) for row in db.rows(sql, RAW_SHOWN, limit)]


def get(db: Db, stray_id: int) -> Stray | None:
    sql = "SELECT id, transport, group_name, raw, reason, at FROM holdfast_stray WHERE id = ?"
    row = db.row(sql, stray_id)
    return None if row is None else to_stray(row)


def to_stray(row: Row) -> Stray:
    return Stray(**dict(zip(Stray.__struct_fields__, row, strict=True)))


def drop(db: Db, *, ids: Sequence[int], actor: str, reason: str) -> list[bool]:
    return [_drop(db, stray_id, actor, reason) for stray_id in ids]


def _drop(db: Db, stray_id: int, actor: str, reason: str) -> bool:
    stray = get(db, stray_id)
    if stray is None:
        return False
    db.run("DELETE FROM holdfast_stray WHERE id = ?", stray_id)
    audit.write(db, event_verdicts.stray_dropped(stray, actor=actor, reason=reason))
    return True


@checked
class Strays(Subject):
    async def keep(self, transport: str, group: str, raw: bytes, reason: str) -> int:
        kept, reason = fitting(raw, reason)
        call = partial(
            keep,
            hashed=fingerprint(transport, group, raw),
            transport=transport,
            group=group,
            raw=kept,
            reason=reason,
        )
        return await self._file.write(call, repeatable=True)

    async def find(self, *, limit: int = 100) -> list[Stray]:
        return await self._file.read(partial(find, limit=limit))

    async def get(self, stray_id: int) -> Stray | None:
        return await self._file.read(partial(get, stray_id=stray_id))

    async def drop(self, ids: Sequence[int], *, actor: str, reason: str) -> list[bool]:
        reason = storable(reason)
        return await in_parts(
            ids, BATCH, lambda part: self._file.write(partial(drop, ids=part, actor=actor, reason=reason))
        )
