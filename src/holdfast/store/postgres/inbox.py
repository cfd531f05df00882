"""The inbox: each group has one delivery of each event, and a cursor in the log that only goes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.kernel.portions import PORTION
from holdfast.store import event_verdicts
from holdfast.store.bell import news_of_deliveries
from holdfast.store.edge import checked
from holdfast.store.event_records import Cursor, Delivery, OutboxEvent, Stored
from holdfast.store.postgres import audit
from holdfast.store.postgres.candidates import IN_ORDER
from holdfast.store.postgres.enqueue import enqueue_in_turn
from holdfast.store.postgres.groups import announced_by
from holdfast.store.postgres.locks import take_free
from holdfast.store.postgres.outbox import are_at, log_with
from holdfast.store.postgres.promotion import CHUNK
from holdfast.store.postgres.relaying import fence, to_event
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import Lease, NewJob
from holdfast.store.statements import Procedure, Statement
from holdfast.store.turns import orders_of

_CURSOR = "name, position, date_part('epoch', seen_at)"


def subscribe(group: str, *, from_start: bool) -> Procedure[Cursor]:
    [row] = yield Statement(_SUBSCRIBE, (group, from_start))
    return Cursor(*row)


_SUBSCRIBE = f"""
INSERT INTO holdfast.event_group (name, position, seen_at)
SELECT $1::text, CASE WHEN $2::bool THEN 0 ELSE value END, holdfast.now() FROM holdfast.event_position
ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at RETURNING {_CURSOR}"""


def read(group: str, *, after: int, limit: int) -> Procedure[tuple[list[OutboxEvent], list[str]]]:
    """In one statement: its snapshot has both. The members stand in the first row only."""
    rows = yield Statement(_READ, (after, None, None, limit, PORTION, group))
    return [to_event(row[:-1]) for row in rows], list(rows[0][-1] or ()) if rows else []


_READ = log_with(f"""
CASE WHEN row_number() OVER (ORDER BY o.position) = 1
    THEN ARRAY({announced_by("$6::text")}) END AS announced""")


def cursors() -> Procedure[list[Cursor]]:
    sql = f'SELECT {_CURSOR} FROM holdfast.event_group ORDER BY name COLLATE "C"'
    return [Cursor(*row) for row in (yield Statement(sql))]


def unsubscribe(group: str, *, actor: str) -> Procedure[bool]:
    sql = f"DELETE FROM holdfast.event_group WHERE name = $1::text RETURNING {_CURSOR}"
    rows = yield Statement(sql, (group,))
    for row in rows:
        yield from audit.write(event_verdicts.unsubscribed(Cursor(*row), actor=actor))
    return bool(rows)


def deliver(
    group: str,
    deliveries: Sequence[Delivery],
    *,
    upto: int | None,
    seen: Sequence[str] = (),
    lease: Lease | None,
) -> Procedure[Stored | None]:
    """The inbox rows first, in the order of the events: whoever comes second waits, and then has nothing to do."""
    if lease is not None and not (yield from fence(lease)):
        return None
    if upto is not None and seen and not (yield from are_at(upto, seen)):
        return None
    stored = Stored([])
    if deliveries:
        stored = yield from _deliver(group, deliveries)
    if upto is not None:
        yield Statement(_MOVE, (group, upto))
    return stored


def _deliver(group: str, deliveries: Sequence[Delivery]) -> Procedure[Stored]:
    first: dict[str, Delivery] = {}
    for each in deliveries:
        first.setdefault(each.event_id, each)
    ordered = sorted(first.values(), key=_event_id)
    ids = [each.event_id for each in ordered]
    rows = yield Statement(_STORE, (group, ids, [each.job.id for each in ordered]))
    new = {row[0] for row in rows}
    arrived = False
    if new:
        arrived = yield from _enqueue([each.job for event_id, each in first.items() if event_id in new])
    ours = new
    if known := [event_id for event_id in ids if event_id not in new]:
        # A delivery with our own job is ours, also when it was stored by a first try whose answer was lost.
        rows = yield Statement(_JOBS, (group, known))
        ours = new | {row[0] for row in rows if row[1] == first[row[0]].job.id}
    answers = [each.event_id in ours and first[each.event_id] is each for each in deliveries]
    return Stored(answers, arrived or bool(known))  # of those nobody knows how they are


def _enqueue(jobs: Sequence[NewJob]) -> Procedure[bool]:
    """A lone one has its turn at once. Of many, whose keys would be as many locks, promote looks at one part after the other."""
    free: set[str] = set()
    if len(jobs) <= CHUNK:
        free = yield from take_free(orders_of(jobs))
    return (yield from enqueue_in_turn(jobs, free))


def _event_id(delivery: Delivery) -> str:
    return delivery.event_id


_STORE = """
INSERT INTO holdfast.inbox (group_name, event_id, job_id, at)
SELECT $1::text, g.event_id, g.job_id, c.now
FROM (SELECT holdfast.now() AS now) c, unnest($2::text[], $3::uuid[]) WITH ORDINALITY AS g(event_id, job_id, place)
ORDER BY g.place ON CONFLICT DO NOTHING RETURNING event_id"""
_JOBS = "SELECT event_id, job_id::text FROM holdfast.inbox WHERE group_name = $1::text AND event_id = ANY($2::text[])"
_MOVE = """
INSERT INTO holdfast.event_group AS g (name, position, seen_at) VALUES ($1::text, $2::bigint, holdfast.now())
ON CONFLICT (name) DO UPDATE SET position = greatest(g.position, excluded.position), seen_at = excluded.seen_at"""


def handled(group: str, event_id: str) -> Procedure[bool]:
    return bool((yield Statement(_HANDLED, (group, event_id))))


_HANDLED = """
INSERT INTO holdfast.inbox AS i (group_name, event_id, at, handled_at)
SELECT $1::text, $2::text, c.now, c.now FROM (SELECT holdfast.now() AS now) c
ON CONFLICT (group_name, event_id) DO UPDATE SET handled_at = excluded.handled_at WHERE i.handled_at IS NULL
RETURNING event_id"""


def job_of(event_id: str) -> Procedure[str | None]:
    rows = yield Statement(_JOB_OF, (event_id,))
    return rows[0][0] if rows else None


# From group to group by the index, because an event is looked for without its group only by a person.
_JOB_OF = """
WITH RECURSIVE groups (name) AS (
    (SELECT group_name FROM holdfast.inbox ORDER BY group_name LIMIT 1)
    UNION ALL
    SELECT (SELECT i.group_name FROM holdfast.inbox i WHERE i.group_name > g.name ORDER BY i.group_name LIMIT 1)
    FROM groups g WHERE g.name IS NOT NULL)
SELECT i.job_id::text FROM groups g JOIN holdfast.inbox i ON i.group_name = g.name AND i.event_id = $1::text
WHERE i.job_id IS NOT NULL LIMIT 1"""


def prune(*, keep: float, limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (float(keep), limit))))


_PRUNE = """
DELETE FROM holdfast.inbox d USING (
    SELECT i.group_name, i.event_id FROM holdfast.inbox i
    WHERE i.at <= holdfast.now() - make_interval(secs => $1::float8) AND (i.handled_at IS NOT NULL
        OR NOT EXISTS (SELECT FROM holdfast.job j WHERE j.id = i.job_id)
        AND NOT EXISTS (SELECT FROM holdfast.history h WHERE h.id = i.job_id))
    ORDER BY i.at LIMIT $2 FOR UPDATE SKIP LOCKED) o
WHERE d.group_name = o.group_name AND d.event_id = o.event_id RETURNING d.event_id"""


@checked
class Inbox(Subject):
    async def subscribe(self, group: str, *, from_start: bool = False) -> Cursor:
        return await self._database.write(partial(subscribe, group, from_start=from_start), repeatable=True)

    async def read(self, group: str, *, after: int, limit: int) -> tuple[list[OutboxEvent], list[str]]:
        return await self._database.read(partial(read, group, after=after, limit=limit))

    async def cursors(self) -> list[Cursor]:
        return await self._database.read(cursors)

    async def unsubscribe(self, group: str, *, actor: str) -> bool:
        return await self._database.atomic(partial(unsubscribe, group, actor=actor))

    async def deliver(
        self,
        group: str,
        deliveries: Sequence[Delivery],
        *,
        upto: int | None = None,
        seen: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> list[bool] | None:
        make = partial(deliver, group, deliveries, upto=upto, seen=seen, lease=lease)
        stored = await self._database.atomic(make, begin=IN_ORDER, repeatable=True)
        if stored is None:
            return None
        self._home.hint(news_of_deliveries(deliveries, stored))
        return stored.answers

    async def handled(self, group: str, event_id: str, *, tx: object | None = None) -> bool:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(handled(group, event_id))
        return await self._database.write(partial(handled, group, event_id))

    async def job_of(self, event_id: str) -> str | None:
        return await self._database.read(partial(job_of, event_id))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, keep=keep, limit=limit), repeatable=True)
