"""From held to ready: look at what has arrived or is due, let go of what was held by hand, expire, repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.telemetry import note
from holdfast.store.batching import is_one_items_fault
from holdfast.store.edge import checked
from holdfast.store.fairness import ONE, Tour, choose, is_crowd, room_for
from holdfast.store.postgres import gates, held, tenants
from holdfast.store.postgres.candidates import (
    IN_ORDER,
    Candidate,
    Past,
    find_candidates,
    find_some_of_each,
    promote,
)
from holdfast.store.postgres.connection import HASTY
from holdfast.store.postgres.finishes import end, putting_back
from holdfast.store.postgres.locks import Keys, take_chain
from holdfast.store.postgres.moves import expire, expire_found, find_expired
from holdfast.store.postgres.promotion import CHUNK, WINDOW, fill_windows, pass_on
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.records import Claim, Ended, Gated, JobRecord, queued_among, with_reasons
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import Held


def unhold(
    reason: Held, *, queue: str | None, tasks: Sequence[str] | None, guard: str | None, limit: int
) -> Procedure[int]:
    """What has a concurrency key or a tenant is looked at again; the rest is ready, served after what is ready now."""
    wanted = None if tasks is None else list(tasks)
    if reason is Held.GUARD and guard is not None:
        rows = yield Statement(_OPEN_GATE, (queue, wanted, guard, limit))
    else:
        rows = yield Statement(_UNHOLD, (reason.value, queue, wanted, guard, limit))
    return len(rows)


_UNHOLD = gates.let_go(
    """j.held = $1::text AND j.state = 'queued' AND ($2::text IS NULL OR j.queue = $2::text)
        AND ($3::text[] IS NULL OR j.task = ANY($3::text[])) AND ($4::text IS NULL OR j.guard = $4::text)""",
    "$5",
)
# By the index of gated jobs, which a guard that may be NULL would not let the planner use.
_OPEN_GATE = gates.let_go(
    f"""j.held = 'guard' AND {gates.GATE} = $3::text AND j.state = 'queued'
        AND ($1::text IS NULL OR j.queue = $1::text) AND ($2::text[] IS NULL OR j.task = ANY($2::text[]))""",
    "$4",
)


_ROUNDS = 10  # looks of one promote, when some of what it found is passed over


class Missed(msgspec.Struct, frozen=True):
    """Keys that have waiting jobs although something of theirs is free."""

    keys: list[Keys]
    places: list[tuple[str, str]]


def find_missed(*, window: int, limit: int) -> Procedure[Missed]:
    rows = yield Statement(_MISSED, (window, limit))
    keys = [Keys(row[1], row[2]) for row in rows if row[0] == "key"]
    return Missed(keys, [(row[1], row[2]) for row in rows if row[0] == "window"])


_MISSED = """
(SELECT DISTINCT 'key', w.ordering_key, NULL::text FROM holdfast.job w WHERE w.held = 'ordering'
    AND NOT EXISTS (SELECT FROM holdfast.job t WHERE t.ordering_key = w.ordering_key AND t.has_turn) LIMIT $2)
UNION ALL
(SELECT 'key', NULL, w.concurrency_key FROM holdfast.job w WHERE w.held = 'concurrency'
    GROUP BY w.concurrency_key HAVING max(w.concurrency_limit) > (
        SELECT count(*) FROM holdfast.job t WHERE t.concurrency_key = w.concurrency_key AND t.slot IS NOT NULL)
    LIMIT $2)
UNION ALL
(SELECT 'window', w.queue, w.tenant FROM holdfast.job w WHERE w.held = 'tenant'
    GROUP BY w.queue, w.tenant HAVING $1::int > (
        SELECT count(*) FROM holdfast.job r WHERE r.queue = w.queue AND r.tenant = w.tenant
            AND r.tenant IS NOT NULL AND r.state = 'queued' AND r.held IS NULL)
    LIMIT $2)"""


def repair(missed: Missed, *, window: int) -> Procedure[int]:
    """A key that another has just now is looked at in the next round."""
    lacking = yield from take_chain(missed.keys)
    ready = yield from pass_on([key for key in missed.keys if key not in lacking], window=window)
    return ready + (yield from fill_windows(missed.places, window=ONE))


@checked
class Holds(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._tour = Tour()

    async def promote(self, *, window: int = WINDOW, limit: int = 500) -> int:
        looked, past = 0, Past()
        for _ in range(_ROUNDS):
            before = past.size
            found = await self._find(limit - looked, past)
            is_all = len(found) < limit - looked
            for start in range(0, len(found), CHUNK):
                looked += await self._promote(found[start : start + CHUNK], window, past)
            if is_all or looked >= limit or past.size == before:
                break
        return looked

    async def _find(self, limit: int, past: Past) -> list[Candidate]:
        """What has arrived, in a crowd some of each tenant, then what is due."""
        found = await self._database.read(partial(find_candidates, limit, past))
        if found.released:
            await self._database.atomic(partial(tenants.forget, found.released), repeatable=True)
        arrived, due = found.arrived, found.due
        room, fair = room_for(due, limit), list[Candidate]()
        if is_crowd(arrived, room):
            make = partial(find_some_of_each, room, past, self._tour)
            fair = await self._database.atomic(make, begin=IN_ORDER, repeatable=True)
        return choose(arrived, fair, due, limit)

    async def _promote(self, part: Sequence[Candidate], window: int, past: Past) -> int:
        """All together. When that fails, it is halved until the one row that is at fault is alone, and passed over."""
        free = past.without(part)
        try:
            make = partial(promote, free, window=window)
            done = await self._database.atomic(make, begin=HASTY, repeatable=True)
        except HoldfastError as error:
            if not is_one_items_fault(error):
                raise
            if len(free) <= 1:
                note("promote.failed", jobs=[candidate.job_id for candidate in free], error=str(error))
                past.give_up(free)
                return 0
            middle = len(free) // 2
            first = await self._promote(free[:middle], window, past)
            return first + await self._promote(free[middle:], window, past)
        for candidate, lock in done.passed_over:
            past.pass_over(candidate, lock)
        return done.number

    async def explained(self, records: Sequence[JobRecord]) -> list[JobRecord]:
        if not (queued := queued_among(records)):
            return list(records)
        return with_reasons(records, await self._database.read(partial(held.why, queued)))

    async def hold(self, claims: Sequence[Claim], reason: Held, *, tx: object | None = None) -> list[bool]:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(end(putting_back(claims, held=reason)))
        return await self._home.endings.end(putting_back(claims, held=reason))

    async def unhold(
        self,
        reason: Held,
        *,
        queue: str | None = None,
        tasks: Sequence[str] | None = None,
        guard: str | None = None,
        limit: int = 500,
    ) -> int:
        make = partial(unhold, reason, queue=queue, tasks=tasks, guard=guard, limit=limit)
        return await self._database.write(make, repeatable=True)

    async def gated(self, *, after: str | None = None, limit: int = 100) -> list[Gated]:
        return await self._database.read(partial(gates.gated, after, limit))

    async def gates(self, *, after: str | None = None, limit: int = 1000) -> list[str]:
        return await self._database.read(partial(gates.gates, after, limit))

    async def open_gates(self, numbers: Mapping[str, int]) -> dict[str, int]:
        if not numbers:
            return {}
        return await self._database.write(partial(gates.open_gates, numbers), repeatable=True)

    async def shut_gates(
        self,
        queues: Sequence[str],
        *,
        keys: Sequence[str] = (),
        guards: Sequence[str] = (),
        tasks: Sequence[str] = (),
        window: int = WINDOW,
        limit: int = 1000,
    ) -> int:
        refused = gates.Refused(list(queues), list(keys), list(guards), list(tasks), limit)
        return await self._database.atomic(partial(gates.shut_gates, refused, window), repeatable=True)

    async def expire(self, *, limit: int = 500) -> int:
        return len(await self.end_expired(limit=limit))

    async def end_expired(self, *, limit: int = 500, tx: object | None = None) -> list[Ended]:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(expire_found(limit))
        gone: list[Ended] = []
        passed_over = 0  # locked, or with a key that another has just now
        while len(gone) < limit:
            found = await self._database.read(partial(find_expired, limit - len(gone), passed_over))
            if not found:
                break
            for start in range(0, len(found), CHUNK):
                part = found[start : start + CHUNK]
                ended = await self._database.atomic(partial(expire, part), repeatable=True)
                gone += ended
                passed_over += len(part) - len(ended)
        return gone

    async def repair(self, *, limit: int = 500) -> int:
        await self._database.atomic(tenants.repair, repeatable=True)
        missed = await self._database.read(partial(find_missed, window=ONE, limit=limit))
        if not missed.keys and not missed.places:
            return 0
        return await self._database.atomic(partial(repair, missed, window=WINDOW), repeatable=True)
