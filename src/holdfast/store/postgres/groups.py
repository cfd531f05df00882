"""Who runs for a group and what it hears, and how many of its jobs wait."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.edge import checked
from holdfast.store.event_records import BEHIND, GroupLag
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement


def announce(group: str, *, member: str, hears: str | None, ttl: float) -> Procedure[None]:
    if hears is None:
        yield Statement(_LEAVE, (group, member))
    else:
        yield Statement(_ANNOUNCE, (group, member, hears, float(ttl)))


_LEAVE = "DELETE FROM holdfast.event_member WHERE group_name = $1::text AND member = $2::text"
# Whoever holds the lock of a row is saying right now that it is back.
_ANNOUNCE = """
WITH over AS (
    DELETE FROM holdfast.event_member WHERE group_name = $1::text AND member = ANY(ARRAY(
        SELECT member FROM holdfast.event_member
        WHERE group_name = $1::text AND member <> $2::text AND until <= holdfast.now() FOR UPDATE SKIP LOCKED)))
INSERT INTO holdfast.event_member (group_name, member, hears, until)
VALUES ($1::text, $2::text, $3::text, holdfast.now() + make_interval(secs => $4::float8))
ON CONFLICT (group_name, member) DO UPDATE SET hears = excluded.hears, until = excluded.until"""


def announced(group: str) -> Procedure[list[str]]:
    return [hears for (hears,) in (yield Statement(_ANNOUNCED, (group,)))]


def announced_by(group: str) -> str:
    return f"""
SELECT DISTINCT hears COLLATE "C" FROM holdfast.event_member
WHERE group_name = {group} AND until > holdfast.now() ORDER BY 1"""


_ANNOUNCED = announced_by("$1::text")


def waiting(tasks: Sequence[str], *, limit: int) -> Procedure[int]:
    rows = yield Statement(_WAITING, (list(tasks), limit))
    return int(rows[0][0])


_WAITING = f"""
SELECT least($2::bigint, count(*) FILTER (WHERE NOT behind) + count(*) FILTER (WHERE behind) / {BEHIND}) FROM (
    SELECT coalesce(held = 'ordering', false) AS behind FROM holdfast.job
    WHERE bounded AND state = 'queued' AND task = ANY($1::text[]) LIMIT $2::bigint * {BEHIND}) AS found"""


def lag(group: str, tasks: Sequence[str], *, limit: int) -> Procedure[GroupLag]:
    waiting: dict[str, int] = {}
    for sql in _UNPUBLISHED:
        for type_, number in (yield Statement(sql, (limit,))):
            waiting[type_] = waiting.get(type_, 0) + number
    cursor = yield Statement("SELECT position FROM holdfast.event_group WHERE name = $1::text", (group,))
    unread: dict[str, int] | None = None
    if cursor:
        unread = {row[0]: row[1] for row in (yield Statement(_UNREAD, (cursor[0][0], limit)))}
    [[queued]] = yield Statement(_QUEUED, (list(tasks), limit))
    return GroupLag(waiting, unread, queued)


_UNPUBLISHED = [
    f"""
SELECT type, count(*) FROM (
    SELECT type FROM holdfast.outbox WHERE state = 'waiting' AND {held} ORDER BY seq LIMIT $1) f GROUP BY type"""
    for held in ("NOT held", "held")
]
_UNREAD = """
SELECT type, count(*) FROM (
    SELECT type FROM holdfast.outbox WHERE position > $1::bigint ORDER BY position LIMIT $2) f GROUP BY type"""
_QUEUED = """
SELECT count(*) FROM (
    SELECT FROM holdfast.job WHERE bounded AND state = 'queued' AND task = ANY($1::text[]) LIMIT $2) f"""


@checked
class Groups(Subject):
    async def announce(self, group: str, member: str, hears: str | None, *, ttl: float) -> None:
        call = partial(announce, group, member=member, hears=hears, ttl=ttl)
        await self._database.write(call, repeatable=True)

    async def announced(self, group: str) -> list[str]:
        return await self._database.read(partial(announced, group))

    async def waiting(self, tasks: Sequence[str], *, limit: int) -> int:
        return await self._database.read(partial(waiting, tasks, limit=limit))

    async def lag(self, group: str, tasks: Sequence[str], *, limit: int) -> GroupLag:
        return await self._database.read(partial(lag, group, tasks, limit=limit))
