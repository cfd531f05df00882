"""Messages that could not be understood, kept as they came until a person has looked at them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.kernel.show import storable
from holdfast.store import event_verdicts
from holdfast.store.edge import checked
from holdfast.store.event_records import RAW_SHOWN, Stray
from holdfast.store.parts import in_parts
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement
from holdfast.store.stray_text import fingerprint, fitting

BATCH = 500  # strays in one transaction
_COLUMNS = "id, transport, group_name, {raw}, reason, date_part('epoch', at)"


def keep(*, hashed: bytes, transport: str, group: str, raw: bytes, reason: str) -> Procedure[int]:
    [(stray_id,)] = yield Statement(_KEEP, (hashed, transport, group, raw, reason))
    return int(stray_id)


# The update changes nothing: it makes the row that is there the answer, in the same statement.
_KEEP = """
INSERT INTO holdfast.stray AS s (hash, transport, group_name, raw, reason)
VALUES ($1::bytea, $2::text, $3::text, $4::bytea, $5::text)
ON CONFLICT (hash) DO UPDATE SET hash = s.hash RETURNING s.id"""


def find(limit: int) -> Procedure[list[Stray]]:
    columns = _COLUMNS.format(raw="substring(raw FOR $2::int)")
    sql = f"SELECT {columns} FROM holdfast.stray ORDER BY id DESC LIMIT $1"
    return [to_stray(row) for row in (yield Statement(sql, (limit, RAW_SHOWN)))]


def get(stray_id: int) -> Procedure[Stray | None]:
    sql = f"SELECT {_COLUMNS.format(raw='raw')} FROM holdfast.stray WHERE id = $1::bigint"
    rows = yield Statement(sql, (stray_id,))
    return to_stray(rows[0]) if rows else None


def to_stray(row: Sequence[Any]) -> Stray:
    return Stray(**dict(zip(Stray.__struct_fields__, row, strict=True)))


def drop(ids: Sequence[int], *, actor: str, reason: str) -> Procedure[list[bool]]:
    columns = _COLUMNS.format(raw="''::bytea")
    sql = f"DELETE FROM holdfast.stray WHERE id = ANY($1::bigint[]) RETURNING {columns}"
    rows = yield Statement(sql, (sorted(set(ids)),))
    gone = {row[0]: to_stray(row) for row in rows}
    if gone:
        yield audited(
            [event_verdicts.stray_dropped(stray, actor=actor, reason=reason) for stray in gone.values()]
        )
    return [gone.pop(stray_id, None) is not None for stray_id in ids]


@checked
class Strays(Subject):
    async def keep(self, transport: str, group: str, raw: bytes, reason: str) -> int:
        kept, reason = fitting(raw, reason)
        make = partial(
            keep,
            hashed=fingerprint(transport, group, raw),
            transport=transport,
            group=group,
            raw=kept,
            reason=reason,
        )
        return await self._database.write(make, repeatable=True)

    async def find(self, *, limit: int = 100) -> list[Stray]:
        return await self._database.read(partial(find, limit))

    async def get(self, stray_id: int) -> Stray | None:
        return await self._database.read(partial(get, stray_id))

    async def drop(self, ids: Sequence[int], *, actor: str, reason: str) -> list[bool]:
        reason = storable(reason)
        return await in_parts(
            ids, BATCH, lambda part: self._database.atomic(partial(drop, part, actor=actor, reason=reason))
        )
