"""The inbox: each group has one delivery of each event, and a cursor in the log that only goes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store import event_verdicts
from holdfast.store.bell import news_of_deliveries
from holdfast.store.edge import checked
from holdfast.store.event_records import Cursor, Delivery, OutboxEvent, Stored
from holdfast.store.records import Lease, NewJob
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.groups import announced
from holdfast.store.sqlite.jobs import enqueue
from holdfast.store.sqlite.leases import is_held
from holdfast.store.sqlite.outbox import are_at, log
from holdfast.store.sqlite.subject import Subject
from holdfast.store.turns import orders_of

_SUBSCRIBE = """
    INSERT INTO holdfast_event_group (name, position, seen_at)
    SELECT ?1, iif(?2, 0, value), ?3 FROM holdfast_counter WHERE name = 'position'
    ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at
    RETURNING name, position, seen_at"""
_DELIVER = """
    INSERT INTO holdfast_inbox (group_name, event_id, job_id, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_OURS = "SELECT job_id FROM holdfast_inbox WHERE group_name = ? AND event_id = ?"
_MOVE = """
    INSERT INTO holdfast_event_group (name, position, seen_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET position = max(position, excluded.position), seen_at = excluded.seen_at"""
_HANDLED = """
    INSERT INTO holdfast_inbox (group_name, event_id, at, handled_at) VALUES (?1, ?2, ?3, ?3)
    ON CONFLICT DO UPDATE SET handled_at = excluded.handled_at WHERE handled_at IS NULL"""
# From group to group by the index, because an event is looked for without its group only by a person.
_JOB_OF = """
    WITH RECURSIVE groups (name) AS (
        SELECT min(group_name) FROM holdfast_inbox
        UNION ALL
        SELECT (SELECT min(group_name) FROM holdfast_inbox WHERE group_name > name) FROM groups WHERE name IS NOT NULL)
    SELECT job_id FROM groups JOIN holdfast_inbox ON group_name = name AND event_id = ?
    WHERE job_id IS NOT NULL LIMIT 1"""
_PRUNE = """
    DELETE FROM holdfast_inbox WHERE (group_name, event_id) IN (
        SELECT group_name, event_id FROM holdfast_inbox AS i
        WHERE at <= ? AND (handled_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM holdfast_job AS j WHERE j.id = i.job_id))
        ORDER BY at LIMIT ?)"""


def subscribe(db: Db, group: str, *, from_start: bool) -> Cursor:
    row = db.row(_SUBSCRIBE, group, from_start, db.now)
    assert row is not None
    return Cursor(*row)


def read(db: Db, group: str, *, after: int, limit: int) -> tuple[list[OutboxEvent], list[str]]:
    """In one snapshot."""
    events = log(db, after=after, before=None, since=None, limit=limit)
    return events, announced(db, group) if events else []


def cursors(db: Db) -> list[Cursor]:
    return [
        Cursor(*row)
        for row in db.rows("SELECT name, position, seen_at FROM holdfast_event_group ORDER BY name")
    ]


def unsubscribe(db: Db, group: str, *, actor: str) -> bool:
    sql = "DELETE FROM holdfast_event_group WHERE name = ? RETURNING name, position, seen_at"
    row = db.row(sql, group)
    if row is None:
        return False
    audit.write(db, event_verdicts.unsubscribed(Cursor(*row), actor=actor))
    return True


def deliver(
    db: Db,
    group: str,
    *,
    deliveries: Sequence[Delivery],
    upto: int | None,
    seen: Sequence[str] = (),
    lease: Lease | None,
) -> Stored | None:
    if lease is not None and not is_held(db, lease):
        return None
    if upto is not None and seen and not are_at(db, upto, seen):
        return None
    new = [each for each in deliveries if db.run(_DELIVER, group, each.event_id, each.job.id, db.now)]
    arrived = len(new) < len(
        deliveries
    )  # of the others nobody knows how they are: a first try may have stored them
    if new:
        jobs = [each.job for each in new]
        free = _free(db, jobs)
        enqueue(db, jobs, free=free)
        arrived = arrived or any(job.keyed and job.ordered not in free for job in jobs)
    if upto is not None:
        db.run(_MOVE, group, upto, db.now)
    return Stored(_answers(db, group, deliveries), arrived)


def _free(db: Db, jobs: Sequence[NewJob]) -> set[str]:
    """Orders in which nobody is: neither at work nor in line, nor just arrived."""
    return {order for order in orders_of(jobs) if not db.value(_TAKEN, order)}


_TAKEN = """
    SELECT EXISTS (SELECT 1 FROM holdfast_turn WHERE key = ?1)
        OR EXISTS (SELECT 1 FROM holdfast_queued WHERE ordering_key = ?1 AND held = 'ordering')
        OR EXISTS (SELECT 1 FROM holdfast_queued WHERE ordering_key = ?1 AND ordering_key IS NOT NULL AND held = 'arrived')"""


def _answers(db: Db, group: str, deliveries: Sequence[Delivery]) -> list[bool]:
    """A delivery with our own job is ours, also when it was stored by a first try whose answer was lost."""
    told, answers = set[str](), list[bool]()
    for each in deliveries:
        is_ours = each.event_id not in told and db.value(_OURS, group, each.event_id) == each.job.id
        answers.append(is_ours)
        told.add(each.event_id)
    return answers


def handled(db: Db, group: str, event_id: str) -> bool:
    return bool(db.run(_HANDLED, group, event_id, db.now))


def job_of(db: Db, event_id: str) -> str | None:
    found: str | None = db.value(_JOB_OF, event_id)
    return found


def prune(db: Db, *, keep: float, limit: int) -> int:
    return db.run(_PRUNE, db.now - keep, limit)


@checked
class Inbox(Subject):
    async def subscribe(self, group: str, *, from_start: bool = False) -> Cursor:
        return await self._file.write(partial(subscribe, group=group, from_start=from_start), repeatable=True)

    async def read(self, group: str, *, after: int, limit: int) -> tuple[list[OutboxEvent], list[str]]:
        return await self._file.read(partial(read, group=group, after=after, limit=limit))

    async def cursors(self) -> list[Cursor]:
        return await self._file.read(cursors)

    async def unsubscribe(self, group: str, *, actor: str) -> bool:
        return await self._file.write(partial(unsubscribe, group=group, actor=actor))

    async def deliver(
        self,
        group: str,
        deliveries: Sequence[Delivery],
        *,
        upto: int | None = None,
        seen: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> list[bool] | None:
        call = partial(deliver, group=group, deliveries=deliveries, upto=upto, seen=seen, lease=lease)
        stored = await self._file.write(call, repeatable=True)
        if stored is None:
            return None
        self._file.hint(news_of_deliveries(deliveries, stored))
        return stored.answers

    async def handled(self, group: str, event_id: str, *, tx: object | None = None) -> bool:
        return await self._file.write(partial(handled, group=group, event_id=event_id), tx=tx)

    async def job_of(self, event_id: str) -> str | None:
        return await self._file.read(partial(job_of, event_id=event_id))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, keep=keep, limit=limit), repeatable=True)
