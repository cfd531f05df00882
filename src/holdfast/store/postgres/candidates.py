"""What a promote looks at: jobs that have arrived or are due, and past those whose keys another has just now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.store.fairness import PLACES, Tour, braid, of_each, places_for
from holdfast.store.ladder import climb
from holdfast.store.postgres.connection import BEGIN
from holdfast.store.postgres.locks import Keys, Lock, take_own
from holdfast.store.postgres.promotion import apply, fill_windows, look_at
from holdfast.store.postgres.rows import WAITING, same_id, to_waiting
from holdfast.store.statements import Procedure, Statement


class Candidate(msgspec.Struct, frozen=True):
    job_id: str
    keys: Keys
    rank: int


@dataclass
class Past:
    """What one call of promote looks past. Behind a job that is passed over, its whole order waits: none overtakes it."""

    orders: set[str] = field(default_factory=set)  # ordering keys
    slots: set[str] = field(default_factory=set)  # concurrency keys
    jobs: set[str] = field(default_factory=set)  # ids of those that cannot be promoted at all

    def pass_over(self, candidate: Candidate, lock: Lock | None) -> None:
        """`lock`: which one is missing. None: its order is passed over already."""
        if candidate.keys.ordered is not None:
            self.orders.add(candidate.keys.ordered)
        if lock is not None and not lock.is_of_order and candidate.keys.concurrency is not None:
            self.slots.add(candidate.keys.concurrency)

    def give_up(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            self.jobs.add(candidate.job_id)
            self.pass_over(candidate, None)

    def without(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those to look at; the others are passed over."""
        free: list[Candidate] = []
        for candidate in candidates:
            if candidate.keys.ordered in self.orders or candidate.keys.concurrency in self.slots:
                self.pass_over(candidate, None)
            else:
                free.append(candidate)
        return free

    @property
    def passed(self) -> tuple[list[str], list[str], list[str]]:
        return [*self.orders], [*self.slots], [*self.jobs]

    @property
    def size(self) -> int:
        return len(self.orders) + len(self.slots) + len(self.jobs)


class Found(msgspec.Struct, frozen=True):
    arrived: list[Candidate]
    due: list[Candidate]  # and those of tenants that were resumed
    released: list[str]  # tenants that were resumed, and have nothing left that is held for that


def find_candidates(limit: int, past: Past) -> Procedure[Found]:
    """Without locks."""
    rows = yield Statement(_CANDIDATES, (limit, *past.passed, PLACES))
    found: dict[str, list[Candidate]] = {"arrived": [], "due": [], "released": []}
    released: list[str] = []
    for *candidate, kind in rows:
        if kind == "none left":
            released.append(candidate[1])
        else:
            found[kind].append(_to_candidate(candidate))
    return Found(found["arrived"], braid(found["due"], found["released"]), released)


def find_some_of_each(room: int, past: Past, tour: Tour) -> Procedure[list[Candidate]]:
    """In a crowd: some of what has arrived of each tenant."""
    wanted = places_for(room)
    places = [(queue, tenant) for queue, tenant in (yield Statement(_PLACES, (*tour.after, wanted)))]
    tour.seen(places, wanted)
    if not places:
        return []
    where = ([queue for queue, _ in places], [tenant for _, tenant in places])
    params = (of_each(room, places), *past.passed, *where)
    return [_to_candidate(row) for row in (yield Statement(_SOME_OF_EACH, params))]


def _to_candidate(row: Sequence[Any]) -> Candidate:
    job_id, ordered, concurrency, rank = row
    return Candidate(job_id, Keys(ordered, concurrency), rank)


# The two below walk along (queue, tenant, rank), and only along the index that has this order: sorting is switched off for
# them. Otherwise, while statistics say that nothing has arrived, any index of arrived jobs is as cheap, and when a crowd
# comes they would walk through all of it. So also no `=`: the planner would then take the rank's order for enough.
IN_ORDER = f"{BEGIN}; SET LOCAL enable_sort = off"
# One probe of the index for each place, however many jobs each has.
_NEXT_PLACE = """SELECT queue, coalesce(tenant, '') AS tenant FROM holdfast.job
    WHERE held = 'arrived' AND (queue, coalesce(tenant, '')) > ({after})
    ORDER BY queue, coalesce(tenant, '') LIMIT 1"""
_PLACES = f"""
WITH RECURSIVE place AS (
    ({_NEXT_PLACE.format(after="$1::text, $2::text")})
    UNION ALL
    SELECT n.queue, n.tenant FROM place p CROSS JOIN LATERAL ({_NEXT_PLACE.format(after="p.queue, p.tenant")}) n)
SELECT queue, tenant FROM place LIMIT $3"""
# One with an order and a busy slot is found all the same: only who sees it knows that its order must be passed over.
_NOT_PAST = """(ordering_key IS NULL OR NOT ordering_key = ANY($2::text[]))
        AND (ordering_key IS NOT NULL OR concurrency_key IS NULL OR NOT concurrency_key = ANY($3::text[]))
        AND NOT id = ANY($4::uuid[])"""
_RESUMED = """SELECT r.key, count(*) OVER () AS number FROM (
        SELECT key FROM holdfast.tenant WHERE resumed_at IS NOT NULL ORDER BY key LIMIT $5) r"""
_CANDIDATES = f"""
SELECT * FROM (
    SELECT id::text, ordering_key, concurrency_key, rank, 'arrived' FROM holdfast.job
    WHERE held = 'arrived' AND {_NOT_PAST} ORDER BY rank LIMIT $1) arrived
UNION ALL
SELECT * FROM (
    SELECT id::text, ordering_key, concurrency_key, rank, 'due' FROM holdfast.job
    WHERE held = 'time' AND run_at <= (SELECT holdfast.now()) AND {_NOT_PAST}
    ORDER BY run_at, rank LIMIT $1) due
UNION ALL
SELECT f.* FROM ({_RESUMED}) t CROSS JOIN LATERAL (
    SELECT id::text, ordering_key, concurrency_key, rank, 'released' FROM holdfast.job j
    WHERE j.held = 'paused' AND j.tenant = t.key AND {_NOT_PAST}
    ORDER BY j.priority DESC, j.rank LIMIT greatest($1 / t.number, 1)) f
UNION ALL
SELECT NULL, t.key, NULL, 0, 'none left' FROM ({_RESUMED}) t
WHERE NOT EXISTS (SELECT FROM holdfast.job j WHERE j.held = 'paused' AND j.tenant = t.key)"""
_PLACE = "(j.queue, coalesce(j.tenant, ''), j.rank)"
# None whose order has an earlier job that is not looked at: it would overtake that one.
_SOME_OF_EACH = f"""
SELECT w.* FROM unnest($5::text[], $6::text[]) AS p(queue, tenant) CROSS JOIN LATERAL (
    SELECT id::text, ordering_key, concurrency_key, rank FROM holdfast.job j
    WHERE held = 'arrived' AND {_PLACE} > (p.queue, p.tenant, -1) AND {_PLACE} < (p.queue, p.tenant, {2**63 - 1})
        AND {_NOT_PAST}
        AND (ordering_key IS NULL OR (
            SELECT e.rank FROM holdfast.job e WHERE e.held = 'arrived' AND e.ordering_key IS NOT NULL
                AND (e.ordering_key, e.rank) > (j.ordering_key, -1) AND (e.ordering_key, e.rank) < (j.ordering_key, j.rank)
                AND (e.queue, coalesce(e.tenant, '')) <> (p.queue, p.tenant)
            ORDER BY e.ordering_key, e.rank LIMIT 1) IS NULL)
    ORDER BY {_PLACE[1:-1]} LIMIT $1) w"""


class Looked(msgspec.Struct, frozen=True):
    number: int
    passed_over: list[tuple[Candidate, Lock | None]]


def promote(candidates: Sequence[Candidate], *, window: int) -> Procedure[Looked]:
    """With their keys locked they are read again: another may have promoted or cancelled some of them."""
    lacking = yield from take_own([candidate.keys for candidate in candidates])
    free, passed_over = _apart(candidates, lacking)
    rows = yield Statement(_STILL_WAITING, ([candidate.job_id for candidate in free],))
    waiting = [to_waiting(row) for row in rows]
    facts = yield from look_at(waiting, behind=True)
    yield from apply(climb(waiting, facts, window=window))
    yield from fill_windows(facts.lines_with_room(window), window=window)
    return Looked(len(waiting), passed_over)


def _apart(
    candidates: Sequence[Candidate], lacking: dict[Keys, Lock]
) -> tuple[list[Candidate], list[tuple[Candidate, Lock | None]]]:
    free, passed_over, orders = list[Candidate](), list[tuple[Candidate, Lock | None]](), set[str]()
    for candidate in candidates:
        lock = lacking.get(candidate.keys)
        if lock is None and candidate.keys.ordered not in orders:
            free.append(candidate)
            continue
        passed_over.append((candidate, lock))
        if candidate.keys.ordered is not None:
            orders.add(candidate.keys.ordered)
    return free, passed_over


_STILL_WAITING = f"""
SELECT {WAITING} FROM unnest($1::uuid[]) WITH ORDINALITY AS g(id, place), holdfast.job w
WHERE {same_id("g", "w")}
    AND CASE w.held WHEN 'arrived' THEN true WHEN 'time' THEN w.run_at <= holdfast.now()
        WHEN 'paused' THEN EXISTS (SELECT FROM holdfast.tenant t WHERE t.key = w.tenant AND t.resumed_at IS NOT NULL) END
ORDER BY g.place FOR UPDATE OF w SKIP LOCKED"""
