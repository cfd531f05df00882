"""What people decide about sagas, and what upkeep does for them: cancel, let go on, settle, park, forget."""

from __future__ import annotations

import msgspec

from holdfast.store import saga_verdicts as verdicts
from holdfast.store.saga_records import STUCK, SagaAnswer, SagaState
from holdfast.store.sqlite import audit, dead
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.saga_waits import rouse, wake
from holdfast.store.states import State
from holdfast.store.steps import Progress

_FOUND = """
    SELECT s.seq, s.state, s.undoing, s.pivot, j.seq, j.generation,
        CASE WHEN q.seq IS NOT NULL THEN 'queued' WHEN r.seq IS NOT NULL THEN 'running' ELSE p.state END
    FROM holdfast_saga AS s LEFT JOIN holdfast_job AS j ON j.id = s.job_id
    LEFT JOIN holdfast_queued AS q ON q.seq = j.seq LEFT JOIN holdfast_running AS r ON r.seq = j.seq
    LEFT JOIN holdfast_parked AS p ON p.seq = j.seq WHERE s.id = ?"""
_STEPS = f"SELECT name, progress, substr(result, 1, {verdicts.SHOWN}) FROM holdfast_step WHERE seq = ? AND generation = ? ORDER BY number, name"
_DECIDE = """UPDATE holdfast_step SET progress = ?, result = ?, at = ? WHERE seq = ? AND generation = ? AND name = ?"""
_ANEW = """UPDATE holdfast_step SET tries = 0 WHERE seq = ? AND generation = ? AND progress NOT IN ('done', 'resolved')"""
_REVIVE = """
    INSERT INTO holdfast_queued (seq, rank, priority, queue, token)
    SELECT j.seq, ?1, j.priority, j.queue, o.token
    FROM holdfast_job AS j JOIN holdfast_over AS o USING (seq) WHERE j.seq = ?2"""
_UNDO_DONE = """UPDATE holdfast_saga SET state = 'compensating', undoing = 1, error = ?1, cause = ?1, result = NULL, finished_at = NULL,
    decided_at = ?2, at = ?2 WHERE seq = ?3"""
_LOST = """
    SELECT s.seq, s.id, p.state, p.reason FROM holdfast_parked AS p CROSS JOIN holdfast_job AS j USING (seq)
    CROSS JOIN holdfast_saga AS s ON s.job_id = j.id WHERE s.state IN ('running', 'waiting', 'compensating') LIMIT ?"""


class Found(msgspec.Struct, frozen=True):
    """A saga and its job."""

    seq: int
    state: SagaState
    undoing: bool
    pivot: str | None
    job: int | None
    generation: int | None
    job_state: str | None  # None: over, or gone


def _find(db: Db, saga_id: str) -> Found | None:
    row = db.row(_FOUND, saga_id)
    return None if row is None else Found(row[0], SagaState(row[1]), bool(row[2]), *row[3:])


def cancel(db: Db, saga_id: str, *, actor: str, reason: str, done_too: bool) -> SagaAnswer:
    found = _find(db, saga_id)
    if found is None:
        return SagaAnswer(saga_id, "missing")
    refused = verdicts.may_cancel(
        saga_id, found.state, undoing=found.undoing, pivot=found.pivot, done_too=done_too
    )
    if refused is not None:
        return refused
    if found.state is SagaState.DONE:
        return _undo_done(db, found, saga_id, actor=actor, reason=reason)
    if found.job_state is None:
        return SagaAnswer(saga_id, "no_job", found.state)
    db.run("UPDATE holdfast_saga SET asked = ?, at = ? WHERE seq = ?", reason, db.now, found.seq)
    audit.write(db, verdicts.cancelled(saga_id, found.state, actor=actor, reason=reason))
    return SagaAnswer(saga_id, "accepted", _go_on(db, found))


def _undo_done(db: Db, found: Found, saga_id: str, *, actor: str, reason: str) -> SagaAnswer:
    """Its job is live again: what it has done stands in its steps."""
    if found.job_state not in (None, State.DEAD, State.UNKNOWN):
        return SagaAnswer(saga_id, "ending", found.state)
    if not _revive(db, found):
        return SagaAnswer(saga_id, "no_job", found.state)
    db.run(_UNDO_DONE, reason, db.now, found.seq)
    audit.write(db, verdicts.cancelled(saga_id, found.state, actor=actor, reason=reason))
    return SagaAnswer(saga_id, "accepted", SagaState.COMPENSATING)


def _revive(db: Db, found: Found) -> bool:
    """A job that is over, or that died when its saga was; False: it is gone."""
    if found.job is None:
        return False
    if found.job_state is not None:
        dead.queue_again(db, found.job)
        return True
    if not db.value("SELECT 1 FROM holdfast_over WHERE seq = ?", found.job):
        return False
    db.run(_REVIVE, db.draw("rank"), found.job)
    db.run("DELETE FROM holdfast_over WHERE seq = ?", found.job)
    return True


def retry(db: Db, saga_id: str, *, actor: str) -> SagaAnswer:
    found = _find(db, saga_id)
    if found is None:
        return SagaAnswer(saga_id, "missing")
    if (refused := verdicts.may_go_on(saga_id, found.state)) is not None:
        return refused
    if found.job_state is None:
        return SagaAnswer(saga_id, "no_job", found.state)
    audit.write(db, verdicts.retried(saga_id, found.state, actor=actor))
    return SagaAnswer(saga_id, "accepted", _go_on(db, found))


def settle(db: Db, saga_id: str, *, step: str, done: bool, result: str | None, actor: str) -> SagaAnswer:
    found = _find(db, saga_id)
    if found is None:
        return SagaAnswer(saga_id, "missing")
    if (refused := verdicts.may_go_on(saga_id, found.state)) is not None:
        return refused
    if found.job_state is None:
        return SagaAnswer(saga_id, "no_job", found.state)
    steps = [(row[0], row[1], row[2]) for row in db.rows(_STEPS, found.job, found.generation)]
    open_ = verdicts.to_decide(steps, no_way_back=found.pivot is not None and not found.undoing)
    if step not in open_:
        return SagaAnswer(saga_id, "no_such_step", found.state, open_)
    progress = Progress.RESOLVED if done else Progress.FAILED
    given = verdicts.as_decided(step, result) if done else None
    db.run(_DECIDE, progress, given, db.now, found.job, found.generation, step)
    entry = verdicts.settled(saga_id, found.state, step, done=done, result=result, actor=actor)
    audit.write(db, entry)
    return SagaAnswer(saga_id, "accepted", _go_on(db, found), tuple(each for each in open_ if each != step))


def _go_on(db: Db, found: Found) -> SagaState:
    """Its job is ready, whatever it was held for; one that is dead begins with all of its attempts."""
    assert found.job is not None
    state = verdicts.anew(undoing=found.undoing) if found.state in STUCK else found.state
    sql = "UPDATE holdfast_saga SET state = ?, at = ? WHERE seq = ?"
    db.run(sql, state, db.now, found.seq)
    if found.state in STUCK:
        db.run(_ANEW, found.job, found.generation)
    if found.job_state in (State.DEAD, State.UNKNOWN):
        dead.queue_again(db, found.job)
    elif found.job_state == State.RUNNING:
        wake(db, [found.seq])
    else:
        held = "SELECT 1 FROM holdfast_queued WHERE seq = ? AND held IN ('time', 'waiting')"
        if db.value(held, found.job):
            rouse(db, [(found.job, found.seq)])
    now: str = db.value("SELECT state FROM holdfast_saga WHERE seq = ?", found.seq)
    return SagaState(now)


def find_lost(db: Db, *, limit: int) -> list[tuple[int, str, str, str]]:
    return [(row[0], row[1], row[2], row[3]) for row in db.rows(_LOST, limit)]


def park_lost(db: Db, *, limit: int) -> list[str]:
    lost = find_lost(db, limit=limit)
    sql = "UPDATE holdfast_saga SET state = 'parked', error = ?, waits = NULL, at = ? WHERE seq = ?"
    for seq, _, state, reason in lost:
        db.run(sql, verdicts.lost(state, reason), db.now, seq)
    return [saga_id for _, saga_id, _, _ in lost]


def prune(db: Db, *, keep: float, limit: int) -> int:
    sql = """DELETE FROM holdfast_saga WHERE seq IN (
        SELECT s.seq FROM holdfast_saga AS s WHERE s.finished_at IS NOT NULL AND s.finished_at <= ?
            AND (s.parent IS NULL OR NOT EXISTS (SELECT 1 FROM holdfast_saga AS p WHERE p.id = s.parent))
        ORDER BY s.finished_at LIMIT ?)"""
    return db.run(sql, db.now - keep, limit)
