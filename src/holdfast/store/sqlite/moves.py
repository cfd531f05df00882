"""The moves that several verbs share: out of the live tables, and on to whoever waited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.store.doubts import EXPIRED, unsure
from holdfast.store.ladder import Facts, Rung, Waiting, climb
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.doubts import leave_to_person, reason_with_doubts
from holdfast.store.sqlite.rows import WAITING, to_waiting

WINDOW = 100  # ready jobs of one tenant in one queue, when the caller does not say


class Freed(msgspec.Struct, frozen=True):
    """Keys that a job may have let go of."""

    ordered: str | None
    concurrency: str | None


def end_queued(db: Db, seq: int, reason: str) -> Freed:
    """Cancel a job that is queued, ready or held."""
    return _end_queued(db, seq, reason_with_doubts(db, seq, reason))


def _end_queued(db: Db, seq: int, reason: str) -> Freed:
    sql = """INSERT INTO holdfast_over (seq, state, token, attempt, finished_at, reason)
        SELECT seq, 'cancelled', token, attempt, ?, ? FROM holdfast_queued WHERE seq = ?"""
    db.run(sql, db.now, reason, seq)
    db.run("DELETE FROM holdfast_queued WHERE seq = ?", seq)
    return let_go(db, seq)


def expire_queued(db: Db, seq: int) -> Freed:
    """Cancel a job that has waited for too long; unknown, if nobody knows of an effect of it whether it was done."""
    effects = leave_to_person(db, seq)
    if not effects:
        return _end_queued(db, seq, EXPIRED)
    sql = """INSERT INTO holdfast_parked (seq, state, token, attempt, reason)
        SELECT seq, 'unknown', token, attempt, ? FROM holdfast_queued WHERE seq = ?"""
    db.run(sql, unsure(EXPIRED, effects), seq)
    db.run("DELETE FROM holdfast_queued WHERE seq = ?", seq)
    concurrency = db.value("SELECT concurrency_key FROM holdfast_job WHERE seq = ?", seq)
    db.run("DELETE FROM holdfast_slot WHERE key = ? AND seq = ?", concurrency, seq)
    return Freed(None, concurrency)  # it keeps its turn and its unique key


def end_parked(db: Db, seq: int, reason: str) -> Freed:
    """Cancel a job that is dead or unknown."""
    sql = """INSERT INTO holdfast_over (seq, state, token, attempt, worker, started_at, finished_at, reason)
        SELECT seq, 'cancelled', token, attempt, worker, started_at, ?, ? FROM holdfast_parked WHERE seq = ?"""
    db.run(sql, db.now, reason_with_doubts(db, seq, reason), seq)
    db.run("DELETE FROM holdfast_parked WHERE seq = ?", seq)
    return let_go(db, seq)


def let_go(db: Db, seq: int) -> Freed:
    """A job that is over, or dead, holds nothing any more."""
    keys = db.row("SELECT unique_key, ordering_key, concurrency_key FROM holdfast_job WHERE seq = ?", seq)
    assert keys is not None
    unique, ordered, concurrency = keys
    if unique is not None:
        db.run("DELETE FROM holdfast_unique WHERE key = ? AND seq = ?", unique, seq)
    if ordered is not None:
        db.run("DELETE FROM holdfast_turn WHERE key = ? AND seq = ?", ordered, seq)
    if concurrency is not None:
        db.run("DELETE FROM holdfast_slot WHERE key = ? AND seq = ?", concurrency, seq)
    return Freed(ordered, concurrency)


def pass_on(db: Db, freed: Iterable[Freed], *, window: int = WINDOW) -> int:
    """Promote whoever waits for these keys: the next in order, and one for each free slot."""
    waiting: dict[str, Waiting] = {}
    keys = list(freed)
    for key in sorted({keys.ordered for keys in keys if keys.ordered is not None}):
        waiting |= _next_in_order(db, key)
    for key in sorted({keys.concurrency for keys in keys if keys.concurrency is not None}):
        waiting |= _next_for_slots(db, key)
    return promote(db, list(waiting.values()), window=window, behind=False)


def _next_in_order(db: Db, key: str) -> dict[str, Waiting]:
    if db.value("SELECT 1 FROM holdfast_turn WHERE key = ?", key):
        return {}
    sql = f"{WAITING} WHERE q.ordering_key = :key AND q.held = 'ordering' ORDER BY q.rank LIMIT 1"
    return look(db, sql, key=key)


def _next_for_slots(db: Db, key: str) -> dict[str, Waiting]:
    sql = f"""{WAITING} WHERE q.concurrency_key = :key AND q.held = 'concurrency'
        ORDER BY q.priority DESC, q.rank LIMIT :most"""
    for head in look(db, sql, key=key, most=1).values():
        assert head.concurrency_limit is not None
        taken = db.value("SELECT count(*) FROM holdfast_slot WHERE key = ?", key)
        return look(db, sql, key=key, most=max(0, head.concurrency_limit - taken))
    return {}


def fill_window(db: Db, queue: str, tenant: str, window: int) -> int:
    """Make jobs of the tenant ready until it has `window` ready ones, unless it is paused."""
    if db.value(IS_PAUSED, tenant):
        return 0
    room = max(0, window - _ready(db, queue, tenant))
    sql = f"""{WAITING} WHERE q.queue = :queue AND q.tenant = :tenant AND q.held = 'tenant'
        ORDER BY q.priority DESC, q.rank LIMIT :room"""
    waiting = look(db, sql, queue=queue, tenant=tenant, room=room)
    return promote(db, list(waiting.values()), window=window, behind=False)


IS_PAUSED = "SELECT 1 FROM holdfast_tenant WHERE key = ? AND resumed_at IS NULL"


def look(db: Db, sql: str, **params: object) -> dict[str, Waiting]:
    """Waiting jobs by id, in the order of the query."""
    rows = db.connection.execute(sql, {"now": db.now, **params}).fetchall()
    return {job.job_id: job for job in map(to_waiting, rows)}


def promote(db: Db, waiting: Sequence[Waiting], *, window: int, behind: bool) -> int:
    """Decide for each and write it; returns how many became ready.

    `behind`: a turn counts as taken also when an earlier job waits for it, and a window as full when one waits for that, as
    newcomers must see it.
    """
    facts = _facts(db, waiting, behind=behind)
    ready = _apply(db, climb(waiting, facts, window=window))
    return ready + sum(
        fill_window(db, *place, window) for place in (facts.lines_with_room(window) if behind else ())
    )


def _facts(db: Db, waiting: Sequence[Waiting], *, behind: bool) -> Facts:
    found = Facts()
    for job in waiting:
        if job.ordered is not None and not job.has_turn and _turn_taken(db, job.ordered, behind=behind):
            found.turns.add(job.ordered)
        if job.concurrency is not None and job.concurrency not in found.slots:
            rows = db.rows("SELECT slot FROM holdfast_slot WHERE key = ?", job.concurrency)
            found.slots[job.concurrency] = {slot for (slot,) in rows}
        if job.tenant is not None and (place := (job.queue, job.tenant)) not in found.ready:
            found.ready[place] = _ready(db, *place)
            _look_at_tenant(db, place, found, behind=behind)
    return found


def _look_at_tenant(db: Db, place: tuple[str, str], found: Facts, *, behind: bool) -> None:
    if behind and db.value(_IN_LINE, *place):
        found.lines.add(place)
    if (row := db.row("SELECT resumed_at FROM holdfast_tenant WHERE key = ?", place[1])) is not None:
        (found.paused if row[0] is None else found.resumed).add(place[1])


_IN_LINE = "SELECT 1 FROM holdfast_queued WHERE queue = ? AND tenant = ? AND held = 'tenant' LIMIT 1"


def _turn_taken(db: Db, key: str, *, behind: bool) -> bool:
    sql = """SELECT EXISTS (SELECT 1 FROM holdfast_turn WHERE key = ?1)
        OR (?2 AND EXISTS (SELECT 1 FROM holdfast_queued WHERE ordering_key = ?1 AND held = 'ordering'))"""
    return bool(db.value(sql, key, behind))


def _ready(db: Db, queue: str, tenant: str) -> int:
    sql = """SELECT count(*) FROM holdfast_queued
        WHERE queue = ? AND tenant = ? AND tenant IS NOT NULL AND held IS NULL"""
    number: int = db.value(sql, queue, tenant)
    return number


def _apply(db: Db, steps: Sequence[Rung]) -> int:
    """Those that become ready, or whose time has come, are served after what was there before them."""
    for step in steps:
        if step.has_turn and not step.job.has_turn:
            db.run("INSERT INTO holdfast_turn (key, seq) VALUES (?, ?)", step.job.ordered, step.job.row)
        if step.slot is not None and step.job.slot is None:
            sql = "INSERT INTO holdfast_slot (key, slot, seq) VALUES (?, ?, ?)"
            db.run(sql, step.job.concurrency, step.slot, step.job.row)
    last = [step for step in steps if step.goes_last]
    if last:
        rank = db.draw("rank", len(last))
        sql = "UPDATE holdfast_queued SET held = ?, rank = ? WHERE seq = ?"
        db.run_many(sql, [(step.held, rank + place, step.job.row) for place, step in enumerate(last)])
    held = [(step.held, step.job.row) for step in steps if not step.goes_last]
    if held:
        db.run_many("UPDATE holdfast_queued SET held = ? WHERE seq = ?", held)
    return sum(step.held is None for step in steps)
