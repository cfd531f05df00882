"""The audit trail: rows are added and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.edge import checked
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import AuditEntry
from holdfast.store.statements import Procedure, Statement


def write(entry: AuditEntry) -> Procedure[None]:
    sql = """INSERT INTO holdfast.audit (actor, action, subject, before, after, request_id)
        VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text)"""
    yield Statement(
        sql, (entry.actor, entry.action, entry.subject, entry.before, entry.after, entry.request_id)
    )


def audited(entries: Sequence[AuditEntry]) -> Statement:
    """Several at once, in the transaction of what they tell."""
    sql = """INSERT INTO holdfast.audit (actor, action, subject, before, after)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])"""
    columns = (
        [entry.actor for entry in entries],
        [entry.action for entry in entries],
        [entry.subject for entry in entries],
        [entry.before for entry in entries],
        [entry.after for entry in entries],
    )
    return Statement(sql, columns)


def find(*, subject: str | None, limit: int) -> Procedure[list[AuditEntry]]:
    where, params = ("WHERE subject = $2::text", (limit, subject)) if subject is not None else ("", (limit,))
    sql = f"""SELECT actor, action, subject, before, after, request_id, date_part('epoch', at) FROM holdfast.audit
        {where} ORDER BY seq DESC LIMIT $1"""
    names = ("actor", "action", "subject", "before", "after", "request_id", "at")
    return [AuditEntry(**dict(zip(names, row, strict=True))) for row in (yield Statement(sql, params))]


@checked
class Audit(Subject):
    async def write(self, entry: AuditEntry, *, tx: object | None = None) -> None:
        if tx is None:
            await self._database.write(partial(write, entry))
        else:
            await (await self._home.adopt(tx)).run(write(entry))

    async def find(self, *, subject: str | None = None, limit: int = 100) -> list[AuditEntry]:
        return await self._database.read(partial(find, subject=subject, limit=limit))
