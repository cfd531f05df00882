"""From held to ready: look at what has arrived or is due, let go of what was held by hand, expire, repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from holdfast.kernel.errors import CommitUnknown
from holdfast.store.edge import checked
from holdfast.store.fairness import ONE, Place, Tour, braid, choose, is_crowd, of_each, places_for, room_for
from holdfast.store.ladder import Waiting
from holdfast.store.records import Claim, Ended, Gated, JobRecord, queued_among, with_reasons
from holdfast.store.sqlite import finishes, gates, held, moves, settling, tenants
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moves import Freed, expire_queued, fill_window, look, pass_on
from holdfast.store.sqlite.rows import WAITING
from holdfast.store.sqlite.subject import File, Subject
from holdfast.store.states import Held, State


def promote(db: Db, *, window: int, limit: int, tour: Tour) -> int:
    oldest = look(db, f"{WAITING} WHERE q.held = 'arrived' ORDER BY q.rank LIMIT :most", most=limit)
    sql = f"{WAITING} WHERE q.held = 'time' AND q.run_at <= :now ORDER BY q.run_at, q.rank LIMIT :most"
    due = braid([*look(db, sql, most=limit).values()], tenants.released(db, limit))
    room = room_for(due, limit)
    fair = _some_of_each(db, tour, room) if is_crowd(oldest, room) else {}
    waiting = choose([*oldest.values()], [*fair.values()], due, limit)
    moves.promote(db, waiting, window=window, behind=True)
    return len(waiting)


def _some_of_each(db: Db, tour: Tour, room: int) -> dict[str, Waiting]:
    wanted = places_for(room)
    places = _places(db, tour.after, wanted)
    tour.seen(places, wanted)
    found: dict[str, Waiting] = {}
    for queue, tenant in places:
        found |= look(db, _OF_PLACE, most=of_each(room, places), queue=queue, tenant=tenant)
    return found


def _places(db: Db, after: Place, wanted: int) -> list[Place]:
    """One probe of the index or two for each, however many jobs it has."""
    places: list[Place] = []
    while len(places) < wanted and (row := db.row(_NEXT_TENANT, *after) or db.row(_NEXT_QUEUE, after[0])):
        after = (row[0], row[1])
        places.append(after)
    return places


# Not as one comparison of pairs: of an index on an expression, SQLite would use the first column only.
_NEXT_TENANT = """SELECT queue, coalesce(tenant, '') FROM holdfast_queued
    WHERE held = 'arrived' AND queue = ? AND coalesce(tenant, '') > ? ORDER BY coalesce(tenant, '') LIMIT 1"""
_NEXT_QUEUE = """SELECT queue, coalesce(tenant, '') FROM holdfast_queued
    WHERE held = 'arrived' AND queue > ? ORDER BY queue, coalesce(tenant, '') LIMIT 1"""
# None whose order has an earlier job that is not looked at: it would overtake that one.
_OF_PLACE = f"""{WAITING} WHERE q.held = 'arrived' AND q.queue = :queue AND coalesce(q.tenant, '') = :tenant
    AND (q.ordering_key IS NULL OR NOT EXISTS (
        SELECT 1 FROM holdfast_queued AS e WHERE e.held = 'arrived' AND e.ordering_key = q.ordering_key
            AND e.ordering_key IS NOT NULL AND e.rank < q.rank
            AND (e.queue, coalesce(e.tenant, '')) <> (:queue, :tenant)))
    ORDER BY q.rank LIMIT :most"""


_BY_HAND = "q.held IN ('guard', 'unknown_task')"  # what unhold is asked for


def unhold(
    db: Db, reason: Held, *, queue: str | None, tasks: Sequence[str] | None, guard: str | None, limit: int
) -> int:
    """What has a concurrency key or a tenant is looked at again; the rest is ready, served after what is ready now."""
    # Written out, and as the index of these rows says it: else SQLite does not see that it has them all.
    where: list[str] = [f"q.held = '{reason}' AND {_BY_HAND}"]
    params: list[str] = []
    if queue is not None:
        where.append("q.queue = ?")
        params.append(queue)
    if guard is not None:
        where.append("q.gate = ?" if reason is Held.GUARD else "j.guard = ?")
        params.append(guard)
    if tasks is not None:
        where.append("j.task IN (SELECT value FROM json_each(?))")
        params.append(msgspec.json.encode(list(tasks)).decode())
    sql = f"""SELECT q.seq FROM holdfast_queued AS q JOIN holdfast_job AS j USING (seq)
        WHERE {" AND ".join(where)} ORDER BY q.rank LIMIT ?"""
    rows = db.rows(sql, *params, limit)
    if rows:
        rank = db.draw("rank", len(rows))
        db.run_many(gates.LET_GO, [(rank + place, seq) for place, (seq,) in enumerate(rows)])
    return len(rows)


def expire(db: Db, *, limit: int) -> list[Ended]:
    sql = """SELECT q.seq, j.id, j.task FROM holdfast_queued AS q JOIN holdfast_job AS j USING (seq)
        WHERE q.expires_at IS NOT NULL AND q.expires_at <= ? ORDER BY q.expires_at LIMIT ?"""
    ended, freed = list[Ended](), list[Freed]()
    for seq, job_id, task in db.rows(sql, db.now, limit):
        freed.append(expire_queued(db, seq))
        is_parked = db.value("SELECT 1 FROM holdfast_parked WHERE seq = ?", seq)
        ended.append(Ended(job_id, task, State.UNKNOWN if is_parked else State.CANCELLED))
    pass_on(db, freed)
    return ended


def repair(db: Db, *, limit: int) -> int:
    tenants.repair(db)
    orders = db.rows(
        """SELECT DISTINCT ordering_key FROM holdfast_queued AS q
            WHERE held = 'ordering' AND NOT EXISTS (SELECT 1 FROM holdfast_turn WHERE key = q.ordering_key)
            LIMIT ?""",
        limit,
    )
    slots = db.rows(
        """SELECT DISTINCT q.concurrency_key FROM holdfast_queued AS q JOIN holdfast_job AS j USING (seq)
            WHERE q.held = 'concurrency' AND j.concurrency_limit >
                (SELECT count(*) FROM holdfast_slot WHERE key = q.concurrency_key) LIMIT ?""",
        limit,
    )
    ready = pass_on(db, [Freed(key, None) for (key,) in orders] + [Freed(None, key) for (key,) in slots])
    windows = db.rows(
        """SELECT queue, tenant FROM (SELECT DISTINCT queue, tenant FROM holdfast_queued WHERE held = 'tenant') AS w
            WHERE (SELECT count(*) FROM holdfast_queued AS q WHERE q.queue = w.queue AND q.tenant = w.tenant
                AND q.tenant IS NOT NULL AND q.held IS NULL) < ?
            AND NOT EXISTS (SELECT 1 FROM holdfast_tenant AS t WHERE t.key = w.tenant AND t.resumed_at IS NULL) LIMIT ?""",
        ONE,
        limit,
    )
    return ready + sum(fill_window(db, queue, tenant, ONE) for queue, tenant in windows)


@checked
class Holds(Subject):
    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._tour = Tour()

    async def promote(self, *, window: int = 100, limit: int = 500) -> int:
        call = partial(promote, window=window, limit=limit, tour=self._tour)
        return await self._file.write(call, repeatable=True)

    async def explained(self, records: Sequence[JobRecord]) -> list[JobRecord]:
        if not (queued := queued_among(records)):
            return list(records)
        return with_reasons(records, await self._file.read(partial(held.why, job_ids=queued)))

    async def hold(self, claims: Sequence[Claim], reason: Held, *, tx: object | None = None) -> list[bool]:
        call = partial(finishes.hold, claims=claims, reason=reason)
        if tx is not None:
            return await self._file.write(call, tx=tx)
        try:
            return await self._file.write(call)
        except CommitUnknown as lost:
            return await settling.put_back(self._file, claims, lost, call)

    async def unhold(
        self,
        reason: Held,
        *,
        queue: str | None = None,
        tasks: Sequence[str] | None = None,
        guard: str | None = None,
        limit: int = 500,
    ) -> int:
        return await self._file.write(
            partial(unhold, reason=reason, queue=queue, tasks=tasks, guard=guard, limit=limit),
            repeatable=True,
        )

    async def gated(self, *, after: str | None = None, limit: int = 100) -> list[Gated]:
        return await self._file.read(partial(gates.gated, after=after, limit=limit))

    async def gates(self, *, after: str | None = None, limit: int = 1000) -> list[str]:
        return await self._file.read(partial(gates.gates, after=after, limit=limit))

    async def open_gates(self, numbers: Mapping[str, int]) -> dict[str, int]:
        if not numbers:
            return {}
        return await self._file.write(partial(gates.open_gates, numbers=numbers), repeatable=True)

    async def shut_gates(
        self,
        queues: Sequence[str],
        *,
        keys: Sequence[str] = (),
        guards: Sequence[str] = (),
        tasks: Sequence[str] = (),
        window: int = 100,
        limit: int = 1000,
    ) -> int:
        call = partial(
            gates.shut_gates,
            queues=queues,
            keys=keys,
            guards=guards,
            tasks=tasks,
            window=window,
            limit=limit,
        )
        return await self._file.write(call, repeatable=True)

    async def expire(self, *, limit: int = 500) -> int:
        return len(await self.end_expired(limit=limit))

    async def end_expired(self, *, limit: int = 500, tx: object | None = None) -> list[Ended]:
        return await self._file.write(partial(expire, limit=limit), tx=tx, repeatable=True)

    async def repair(self, *, limit: int = 500) -> int:
        return await self._file.write(partial(repair, limit=limit), repeatable=True)
