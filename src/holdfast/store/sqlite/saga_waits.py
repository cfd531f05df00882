"""What sagas wait for: who listens is remembered with the look, and what comes wakes only those."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.store import saga_verdicts as verdicts
from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import OVER, Heard, SagaAnswer, SagaState, Wait
from holdfast.store.sqlite import steps
from holdfast.store.sqlite.connection import Db, numbers
from holdfast.store.sqlite.leases import is_held
from holdfast.store.sqlite.outbox import published_before
from holdfast.store.sqlite.relaying import COLUMNS, to_event
from holdfast.store.steps import Progress, Step

_LISTEN = """INSERT INTO holdfast_saga_wait (saga, step, kind, name, key) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING"""
# The one that this step has taken before, else the oldest that nobody has.
_SIGNAL = """
    SELECT seq, value FROM holdfast_saga_signal WHERE saga = ?1 AND name = ?2 AND (taken_by IS NULL OR taken_by = ?3)
    ORDER BY taken_by IS NULL, seq LIMIT 1"""
_SEND = "INSERT INTO holdfast_saga_signal (saga, name, value, at) VALUES (?, ?, ?, ?)"
# Sagas that a person has to look at keep what comes, and stay where they are.
_RUNNING = """
    UPDATE holdfast_saga SET woken = 1 WHERE seq IN (SELECT value FROM json_each(?1))
        AND EXISTS (SELECT 1 FROM holdfast_job AS j JOIN holdfast_running AS r USING (seq) WHERE j.id = holdfast_saga.job_id)"""
_RESTING = """
    SELECT q.seq, s.seq FROM json_each(?1) AS g CROSS JOIN holdfast_saga AS s ON s.seq = g.value
    CROSS JOIN holdfast_job AS j ON j.id = s.job_id CROSS JOIN holdfast_queued AS q ON q.seq = j.seq
    WHERE q.held IN ('time', 'waiting') AND s.state IN ('running', 'waiting', 'compensating')"""


def listen(db: Db, claim: Claim, step: Step, wait: Wait, held: str) -> Heard | None:
    row = db.row(held, claim.row, claim.token, claim.job_id)
    if row is None:
        return None
    saga, asked = row[0], row[2]
    result = _find(db, saga, step.name, wait)
    if result is None and wait.give_up:
        result = verdicts.TIMED_OUT
    if result is None:
        steps.write(db, claim, step)
        db.run(_LISTEN, saga, step.name, wait.kind, wait.name, wait.key)
    else:
        steps.write(db, claim, replace(step, progress=Progress.DONE, result=result))
        db.run("DELETE FROM holdfast_saga_wait WHERE saga = ? AND step = ?", saga, step.name)
    return Heard(result, asked)


def _find(db: Db, saga: int, step: str, wait: Wait) -> str | None:
    match wait.kind:
        case "signal":
            return _take_signal(db, saga, wait.name, step)
        case "event":
            return _find_event(db, saga, wait)
        case "saga":
            return _end_of(db, wait)


def _take_signal(db: Db, saga: int, name: str, step: str) -> str | None:
    row = db.row(_SIGNAL, saga, name, step)
    if row is None:
        return None
    db.run("UPDATE holdfast_saga_signal SET taken_by = ? WHERE seq = ?", step, row[0])
    return verdicts.came(row[1])


def _end_of(db: Db, wait: Wait) -> str | None:
    sql = "UPDATE holdfast_saga SET watched = 1 WHERE id = ? RETURNING state, result, error"
    row = db.row(sql, wait.name)
    return None if row is None else verdicts.ended(row[0], row[1], row[2], undone=wait.undone)


def _find_event(db: Db, saga: int, wait: Wait) -> str | None:
    """The first since the saga began. By its key, or through the log from then on."""
    began = db.row("SELECT event_seq, event_position, started_at FROM holdfast_saga WHERE seq = ?", saga)
    assert began is not None
    seq, position, since = began
    if seq >= 0:
        since = 0.0
    elif wait.key is None:
        position = published_before(db, since)
    if wait.key is None:
        row = db.row(_OF_TYPE, wait.name, max(wait.after, position), seq, since)
    else:
        row = db.row(_OF_KEY, wait.name, wait.after, seq, since, wait.key)
    return None if row is None else verdicts.event_came(to_event(row))


_OF_TYPE = f"""
    SELECT {COLUMNS} FROM holdfast_outbox
    WHERE type = ?1 AND position > ?2 AND +seq > ?3 AND time >= ?4 ORDER BY position LIMIT 1"""
_OF_KEY = f"""
    SELECT {COLUMNS} FROM holdfast_outbox
    WHERE key = ?5 AND type = ?1 AND +position > ?2 AND +seq > ?3 AND time >= ?4 ORDER BY version LIMIT 1"""


def hear(db: Db, lease: Lease, *, limit: int, portion: int) -> int | None:
    """While nobody waits, the reader goes to the end of the log: who begins to wait looks there first."""
    if not is_held(db, lease):
        return None
    newest: int = db.value("SELECT value FROM holdfast_counter WHERE name = 'position'")
    at, until, woken = _reader(db)
    if at is None or at >= newest or not _is_awaited(db):
        if at != newest:
            db.run("UPDATE holdfast_saga_reader SET position = ?", newest)
        return 0
    if until <= at:  # nothing is left over of what was read before
        until, woken = newest, 0
    events = db.rows(_READ, at, until, limit)
    until = events[-1][0] if events else until
    meant = [saga for (saga,) in db.rows(_MEANT, at, until, woken, portion)]
    wake(db, meant)
    if len(meant) < portion:
        db.run("UPDATE holdfast_saga_reader SET position = ?", until)
    else:  # of these events there may be more to tell
        db.run("UPDATE holdfast_saga_reader SET until = ?, woken = ?", until, meant[-1])
    return len(events)


def _reader(db: Db) -> tuple[int | None, int, int]:
    row = db.row("SELECT position, until, woken FROM holdfast_saga_reader")
    assert row is not None
    return row[0], row[1], row[2]


def has_news(db: Db) -> bool:
    """Whether there is anything to read, or to pass by."""
    sql = """SELECT r.position IS NOT c.value FROM holdfast_saga_reader AS r, holdfast_counter AS c WHERE c.name = 'position'"""
    return bool(db.value(sql))


def _is_awaited(db: Db) -> bool:
    return db.value("SELECT 1 FROM holdfast_saga_wait WHERE kind = 'event' LIMIT 1") is not None


_READ = "SELECT position FROM holdfast_outbox WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"
_MEANT = """
    SELECT DISTINCT w.saga FROM holdfast_outbox AS o CROSS JOIN holdfast_saga_wait AS w
    ON w.kind = 'event' AND w.name = o.type AND (w.key IS NULL OR w.key = o.key)
    CROSS JOIN holdfast_saga AS s ON s.seq = w.saga AND o.seq > s.event_seq AND (s.event_seq >= 0 OR s.started_at <= o.time)
    WHERE o.position > ? AND o.position <= ? AND w.saga > ? ORDER BY w.saga LIMIT ?"""


def signal(db: Db, saga_id: str, name: str, value: str) -> SagaAnswer:
    row = db.row("SELECT seq, state FROM holdfast_saga WHERE id = ?", saga_id)
    if row is None:
        return SagaAnswer(saga_id, "missing")
    saga, state = row[0], SagaState(row[1])
    if state in OVER:
        return SagaAnswer(saga_id, "over", state)
    db.run(_SEND, saga, name, value, db.now)
    listens = "SELECT 1 FROM holdfast_saga_wait WHERE saga = ? AND kind = 'signal' AND name = ?"
    if db.value(listens, saga, name):
        wake(db, [saga])
    return SagaAnswer(saga_id, "accepted", state)


def waiting_for(db: Db, kind: str, name: str) -> list[int]:
    """The sagas that listen for this."""
    sql = "SELECT DISTINCT saga FROM holdfast_saga_wait WHERE kind = ? AND name = ?"
    return [saga for (saga,) in db.rows(sql, kind, name)]


def forget(db: Db, saga: int) -> None:
    """It is undone, and what it was waiting for then does not come any more: nobody shall look through it for each event."""
    db.run("DELETE FROM holdfast_saga_wait WHERE saga = ?", saga)


def wake(db: Db, sagas: Sequence[int]) -> None:
    """Their jobs are ready; one that runs may not rest before it has looked again."""
    if not sagas:
        return
    found = numbers(sagas)
    db.run(_RUNNING, found)
    rouse(db, db.rows(_RESTING, found))


def rouse(db: Db, resting: Sequence[tuple[int, int]]) -> None:
    """Pairs of numbers: of a job that is held, and of its saga."""
    if not resting:
        return
    rank = db.draw("rank", len(resting))
    sql = "UPDATE holdfast_queued SET held = NULL, run_at = NULL, rank = ? WHERE seq = ?"
    db.run_many(sql, [(rank + place, job) for place, (job, _) in enumerate(resting)])
    sql = (
        "UPDATE holdfast_saga SET state = 'running', waits = NULL, at = ? WHERE seq = ? AND state = 'waiting'"
    )
    db.run_many(sql, [(db.now, saga) for _, saga in resting])
