"""What a promote looks at: jobs that have arrived or are due, and past those whose keys another has just now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from holdfast.store.ladder import climb, share
from holdfast.store.postgres.locks import Keys, Lock, take_own
from holdfast.store.postgres.promotion import apply, look_at
from holdfast.store.postgres.rows import WAITING, same_id, to_waiting
from holdfast.store.statements import Procedure, Statement


class Candidate(msgspec.Struct, frozen=True):
    job_id: str
    keys: Keys


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
    def size(self) -> int:
        return len(self.orders) + len(self.slots) + len(self.jobs)


def find_candidates(limit: int, past: Past) -> Procedure[list[Candidate]]:
    """Without locks: what has arrived, then what is due."""
    rows = yield Statement(_CANDIDATES, (limit, [*past.orders], [*past.slots], [*past.jobs]))
    found = {True: list[Candidate](), False: list[Candidate]()}
    for job_id, ordered, concurrency, is_due in rows:
        found[is_due].append(Candidate(job_id, Keys(ordered, concurrency)))
    return share(found[False], found[True], limit)


# One with an order and a busy slot is found all the same: only who sees it knows that its order must be passed over.
_NOT_PAST = """(ordering_key IS NULL OR NOT ordering_key = ANY($2::text[]))
        AND (ordering_key IS NOT NULL OR concurrency_key IS NULL OR NOT concurrency_key = ANY($3::text[]))
        AND NOT id = ANY($4::uuid[])"""
_CANDIDATES = f"""
SELECT * FROM (
    SELECT id::text, ordering_key, concurrency_key, false FROM holdfast.job
    WHERE held = 'arrived' AND {_NOT_PAST} ORDER BY rank LIMIT $1) arrived
UNION ALL
SELECT * FROM (
    SELECT id::text, ordering_key, concurrency_key, true FROM holdfast.job
    WHERE held = 'time' AND run_at <= (SELECT holdfast.now()) AND {_NOT_PAST}
    ORDER BY run_at, rank LIMIT $1) due"""


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
    AND CASE w.held WHEN 'arrived' THEN true WHEN 'time' THEN w.run_at <= holdfast.now() END
ORDER BY g.place FOR UPDATE OF w SKIP LOCKED"""
