"""Give a queued job another time or priority."""

from __future__ import annotations

from holdfast.store import saga_verdicts
from holdfast.store.fairness import ONE
from holdfast.store.moving import Move, Place, place_after
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moves import Freed, fill_window, pass_on
from holdfast.store.sqlite.rows import Row
from holdfast.store.states import Held, State
from holdfast.store.story import Entry, tell

_FOUND = """
    SELECT j.seq, q.held, j.queue, j.by_time, j.ordering_key IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM holdfast_turn AS t WHERE t.key = j.ordering_key AND t.seq = j.seq),
        j.concurrency_key, j.tenant, (SELECT s.id FROM holdfast_saga AS s WHERE s.job_id = j.id AND s.finished_at IS NULL)
    FROM holdfast_job AS j CROSS JOIN holdfast_queued AS q ON q.seq = j.seq WHERE j.id = ?"""
_STATE = """
    SELECT CASE WHEN r.seq IS NOT NULL THEN 'running' ELSE coalesce(p.state, o.state) END FROM holdfast_job AS j
    LEFT JOIN holdfast_running AS r ON r.seq = j.seq LEFT JOIN holdfast_parked AS p ON p.seq = j.seq
    LEFT JOIN holdfast_over AS o ON o.seq = j.seq WHERE j.id = ?"""

_RETIME = """
    UPDATE holdfast_queued SET run_at = ?1, held = ?2, waits_for = NULL, reason = CASE WHEN ?2 = 'guard' THEN reason END,
        rank = coalesce(?3, rank) WHERE seq = ?4"""


def move(db: Db, job_id: str, wish: Move) -> State | None:
    row = db.row(_FOUND, job_id)
    if row is None:
        state = db.value(_STATE, job_id)
        return None if state is None else State(state)
    if row[-1] is not None:
        raise saga_verdicts.refuse_move(job_id, row[-1])
    if wish.priority is not None:
        for table in ("holdfast_job", "holdfast_queued"):
            db.run(f"UPDATE {table} SET priority = ? WHERE seq = ?", wish.priority, row[0])
    at = db.now + wish.delay if wish.delay is not None else wish.at
    if at is not None:
        _retime(db, row, at)
    told = Entry(outcome="moved", ended_at=db.now, due_at=at, priority=wish.priority)
    story = tell(db.value("SELECT story FROM holdfast_job WHERE seq = ?", row[0]), told)
    db.run("UPDATE holdfast_job SET due_at = coalesce(?, due_at), story = ? WHERE seq = ?", at, story, row[0])
    return State.QUEUED


def _retime(db: Db, row: Row, at: float) -> None:
    seq, held, queue, by_time, has_no_turn, concurrency, tenant, _ = row
    before = None if held is None else Held(held)
    needs_turn = bool(has_no_turn and by_time)
    shares = needs_turn or concurrency is not None or tenant is not None
    place = Place(before, bool(has_no_turn) and not needs_turn, shares)
    after = place_after(place, due=at <= db.now)
    db.run(_RETIME, at, after, db.draw("rank") if after is None and before is not None else None, seq)
    if after is not Held.TIME or before is Held.TIME:
        return
    if concurrency is not None and db.run(
        "DELETE FROM holdfast_slot WHERE key = ? AND seq = ?", concurrency, seq
    ):
        pass_on(db, [Freed(None, concurrency)])
    if tenant is not None and before is None:
        fill_window(db, queue, tenant, ONE)
