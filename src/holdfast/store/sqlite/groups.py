"""Who runs for a group and what it hears, and how many of its jobs wait."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.edge import checked
from holdfast.store.event_records import BEHIND, GroupLag
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject


def announce(db: Db, group: str, *, member: str, hears: str | None, ttl: float) -> None:
    db.run(
        "DELETE FROM holdfast_event_member WHERE group_name = ? AND (member = ? OR until <= ?)",
        group, member, db.now,
    )  # fmt: skip
    if hears is not None:
        sql = "INSERT INTO holdfast_event_member (group_name, member, hears, until) VALUES (?, ?, ?, ?)"
        db.run(sql, group, member, hears, db.now + ttl)


def announced(db: Db, group: str) -> list[str]:
    sql = "SELECT DISTINCT hears FROM holdfast_event_member WHERE group_name = ? AND until > ? ORDER BY hears"
    return [hears for (hears,) in db.rows(sql, group, db.now)]


def waiting(db: Db, tasks: Sequence[str], *, limit: int) -> int:
    front = behind = 0
    for task in tasks:
        row = db.row(_WAITING, task, limit * BEHIND)
        assert row is not None
        front, behind = front + row[0], behind + row[1]
    return min(limit, front + behind // BEHIND)


_WAITING = """
    SELECT count(*) FILTER (WHERE held IS NOT 'ordering'), count(*) FILTER (WHERE held = 'ordering')
    FROM (SELECT held FROM holdfast_queued WHERE bounded_task = ? LIMIT ?)"""


def lag(db: Db, group: str, *, tasks: Sequence[str], limit: int) -> GroupLag:
    waiting: dict[str, int] = {}
    for held in (0, 1):
        for type_, number in db.rows(_UNPUBLISHED, held, limit):
            waiting[type_] = waiting.get(type_, 0) + number
    position = db.value("SELECT position FROM holdfast_event_group WHERE name = ?", group)
    unread: dict[str, int] | None = None if position is None else dict(db.rows(_UNREAD, position, limit))
    queued = sum(db.value(_QUEUED, task, limit) for task in set(tasks))
    return GroupLag(waiting, unread, min(queued, limit))


_UNPUBLISHED = """
    SELECT type, count(*) FROM (
        SELECT type FROM holdfast_outbox WHERE state = 'waiting' AND held = ? ORDER BY seq LIMIT ?) GROUP BY type"""
_UNREAD = """
    SELECT type, count(*) FROM (
        SELECT type FROM holdfast_outbox WHERE position > ? ORDER BY position LIMIT ?) GROUP BY type"""
_QUEUED = "SELECT count(*) FROM (SELECT 1 FROM holdfast_queued WHERE bounded_task = ? LIMIT ?)"


@checked
class Groups(Subject):
    async def announce(self, group: str, member: str, hears: str | None, *, ttl: float) -> None:
        call = partial(announce, group=group, member=member, hears=hears, ttl=ttl)
        await self._file.write(call, repeatable=True)

    async def announced(self, group: str) -> list[str]:
        return await self._file.read(partial(announced, group=group))

    async def waiting(self, tasks: Sequence[str], *, limit: int) -> int:
        return await self._file.read(partial(waiting, tasks=tasks, limit=limit))

    async def lag(self, group: str, tasks: Sequence[str], *, limit: int) -> GroupLag:
        return await self._file.read(partial(lag, group=group, tasks=tasks, limit=limit))
