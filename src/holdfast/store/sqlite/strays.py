"""Messages that could not be understood, kept as they came until a person has looked at them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial

from holdfast.kernel.show import storable
from holdfast.store import event_verdicts
from holdfast.store.edge import checked
from holdfast.store.event_records import RAW_SHOWN, NewStray, Stray
from holdfast.store.parts import in_parts
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject
from holdfast.store.stray_text import by_fingerprint, fingerprint

BATCH = 500  # strays in one transaction
_KEEP = """
    INSERT INTO holdfast_stray (hash, transport, group_name, type, raw, reason, at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (hash) DO NOTHING"""
_COLUMNS = "id, transport, group_name, type, {raw}, reason, at"


def keep(db: Db, *, transport: str, group: str, messages: Sequence[NewStray]) -> list[int]:
    ids: dict[bytes, int] = {}
    for hashed, each in by_fingerprint(transport, group, messages).items():
        db.run(_KEEP, hashed, transport, group, each.type, each.raw, each.reason, db.now)
        ids[hashed] = db.value("SELECT id FROM holdfast_stray WHERE hash = ?", hashed)
    return [ids[fingerprint(transport, group, each.raw)] for each in messages]


def find(db: Db, *, type_: str | None, before: int | None, limit: int) -> list[Stray]:
    sql = f"""SELECT {_COLUMNS.format(raw="substr(raw, 1, ?1)")} FROM holdfast_stray
        WHERE (?2 IS NULL OR type = ?2) AND (?3 IS NULL OR id < ?3) ORDER BY id DESC LIMIT ?4"""
    return [to_stray(row) for row in db.rows(sql, RAW_SHOWN, type_, before, limit)]


def get(db: Db, stray_id: int) -> Stray | None:
    row = db.row(f"SELECT {_COLUMNS.format(raw='raw')} FROM holdfast_stray WHERE id = ?", stray_id)
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
    async def keep(self, transport: str, group: str, messages: Sequence[NewStray]) -> list[int]:
        def write(part: Sequence[NewStray]) -> Awaitable[list[int]]:
            call = partial(keep, transport=transport, group=group, messages=part)
            return self._file.write(call, repeatable=True)

        return await in_parts(messages, BATCH, write)

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002  the word of the envelope
        before: int | None = None,
        limit: int = 100,
    ) -> list[Stray]:
        return await self._file.read(partial(find, type_=type, before=before, limit=limit))

    async def get(self, stray_id: int) -> Stray | None:
        return await self._file.read(partial(get, stray_id=stray_id))

    async def drop(self, ids: Sequence[int], *, actor: str, reason: str) -> list[bool]:
        reason = storable(reason)
        return await in_parts(
            ids, BATCH, lambda part: self._file.write(partial(drop, ids=part, actor=actor, reason=reason))
        )
