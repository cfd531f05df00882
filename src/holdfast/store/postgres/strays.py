"""Messages that could not be understood, kept as they came until a person has looked at them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any

from holdfast.kernel.show import storable
from holdfast.store import event_verdicts
from holdfast.store.edge import checked
from holdfast.store.event_records import RAW_SHOWN, NewStray, Stray
from holdfast.store.parts import in_parts
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement
from holdfast.store.stray_text import by_fingerprint, fingerprint

BATCH = 500  # strays in one transaction
_COLUMNS = "id, transport, group_name, type, {raw}, reason, date_part('epoch', at)"


def keep(*, transport: str, group: str, messages: Sequence[NewStray]) -> Procedure[list[int]]:
    kept = by_fingerprint(transport, group, messages)
    values = list(kept.values())
    types, raws, reasons = ([getattr(each, name) for each in values] for name in ("type", "raw", "reason"))
    rows = yield Statement(_KEEP, (transport, group, list(kept), types, raws, reasons))
    ids = {bytes(row[0]): int(row[1]) for row in rows}
    return [ids[fingerprint(transport, group, each.raw)] for each in messages]


# The update changes nothing: it makes the rows that are there the answer, in the same statement.
_KEEP = """
INSERT INTO holdfast.stray AS s (hash, transport, group_name, type, raw, reason)
SELECT m.hash, $1::text, $2::text, m.type, m.raw, m.reason
FROM unnest($3::bytea[], $4::text[], $5::bytea[], $6::text[]) WITH ORDINALITY AS m (hash, type, raw, reason, place)
ORDER BY m.place
ON CONFLICT (hash) DO UPDATE SET hash = s.hash RETURNING s.hash, s.id"""


def find(type_: str | None, before: int | None, limit: int) -> Procedure[list[Stray]]:
    columns = _COLUMNS.format(raw="substring(raw FOR $2::int)")
    sql = f"""SELECT {columns} FROM holdfast.stray
        WHERE ($3::text IS NULL OR type = $3) AND ($4::bigint IS NULL OR id < $4) ORDER BY id DESC LIMIT $1"""
    return [to_stray(row) for row in (yield Statement(sql, (limit, RAW_SHOWN, type_, before)))]


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
    async def keep(self, transport: str, group: str, messages: Sequence[NewStray]) -> list[int]:
        def write(part: Sequence[NewStray]) -> Awaitable[list[int]]:
            make = partial(keep, transport=transport, group=group, messages=part)
            return self._database.write(make, repeatable=True)

        return await in_parts(messages, BATCH, write)

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002  the word of the envelope
        before: int | None = None,
        limit: int = 100,
    ) -> list[Stray]:
        return await self._database.read(partial(find, type, before, limit))

    async def get(self, stray_id: int) -> Stray | None:
        return await self._database.read(partial(get, stray_id))

    async def drop(self, ids: Sequence[int], *, actor: str, reason: str) -> list[bool]:
        reason = storable(reason)
        return await in_parts(
            ids, BATCH, lambda part: self._database.atomic(partial(drop, part, actor=actor, reason=reason))
        )
