"""What sagas wait for: who listens is remembered with the look, and what comes wakes only those.

Locks are taken in one order: what is waited for (a saga's row, or that of the reader of events), then the row of a job,
then that of its saga.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.store import saga_verdicts as verdicts
from holdfast.store.postgres.outbox import published_before
from holdfast.store.postgres.relaying import COLUMNS, fence, to_event
from holdfast.store.postgres.rows import held_by
from holdfast.store.postgres.steps import Write
from holdfast.store.postgres.steps import write as write_steps
from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import OVER, Heard, SagaAnswer, SagaState, Wait
from holdfast.store.statements import Procedure, Statement
from holdfast.store.steps import Progress, Step


def listen(claim: Claim, step: Step, wait: Wait) -> Procedure[Heard | None]:
    end = (yield from _end_of(wait)) if wait.kind == "saga" else None
    if wait.kind == "event":
        yield Statement("SELECT FROM holdfast.saga_reader FOR SHARE")
    rows = yield Statement(_HELD, ([claim.job_id], [claim.token]))
    if not rows:
        return None
    saga, asked, *began = rows[0]
    match wait.kind:
        case "signal":
            result = yield from _take_signal(saga, wait.name, step.name)
        case "event":
            result = yield from _find_event((began[0], began[1], began[2]), wait)
        case "saga":
            result = end
    if result is None and wait.give_up:
        result = verdicts.TIMED_OUT
    if result is None:
        yield from write_steps([Write(claim, step)])
        yield Statement(_LISTEN, (saga, step.name, wait.kind, wait.name, wait.key))
    else:
        yield from write_steps([Write(claim, replace(step, progress=Progress.DONE, result=result))])
        yield Statement(_FORGET, (saga, step.name))
    return Heard(result, asked)


_HELD = f"""
SELECT s.seq, s.asked, s.event_seq, s.event_position, date_part('epoch', s.started_at)
FROM unnest($1::uuid[], $2::bigint[]) AS g(id, token), holdfast.job j, holdfast.saga s
WHERE {held_by("g")} AND s.job_id = ANY(ARRAY[g.id]) FOR UPDATE OF j, s"""
_LISTEN = """INSERT INTO holdfast.saga_wait (saga, step, kind, name, key)
VALUES ($1::bigint, $2::text, $3::text, $4::text, $5::text) ON CONFLICT DO NOTHING"""
_FORGET = "DELETE FROM holdfast.saga_wait WHERE saga = $1::bigint AND step = $2::text"


def _take_signal(saga: int, name: str, step: str) -> Procedure[str | None]:
    rows = yield Statement(_SIGNAL, (saga, name, step))
    if not rows:
        return None
    taken = "UPDATE holdfast.saga_signal SET taken_by = $2::text WHERE seq = $1::bigint"
    yield Statement(taken, (rows[0][0], step))
    return verdicts.came(rows[0][1])


# The one that this step has taken before, else the oldest that nobody has.
_SIGNAL = """
SELECT seq, value FROM holdfast.saga_signal
WHERE saga = $1::bigint AND name = $2::text AND (taken_by IS NULL OR taken_by = $3::text)
ORDER BY taken_by IS NULL, seq LIMIT 1"""


def _end_of(wait: Wait) -> Procedure[str | None]:
    """Its row is locked from now on: it ends before this, or after it and sees who waits."""
    sql = "UPDATE holdfast.saga SET watched = true WHERE id = $1::text RETURNING state, result, error"
    rows = yield Statement(sql, (wait.name,))
    return verdicts.ended(*rows[0], undone=wait.undone) if rows else None


def _find_event(began: tuple[int, int, float], wait: Wait) -> Procedure[str | None]:
    """The first since the saga began. By its key, or through the log from then on."""
    seq, position, since = began
    if seq >= 0:
        since = 0.0
    elif wait.key is None:
        position = yield from published_before(since)
    if wait.key is None:
        rows = yield Statement(_OF_TYPE, (wait.name, max(wait.after, position), seq, since))
    else:
        rows = yield Statement(_OF_KEY, (wait.name, wait.after, seq, since, wait.key))
    return verdicts.event_came(to_event(rows[0])) if rows else None


_OF_TYPE = f"""
SELECT {COLUMNS} FROM holdfast.outbox o
WHERE o.type = $1::text AND o.position > $2::bigint AND o.seq > $3::bigint AND o.time >= to_timestamp($4::float8)
ORDER BY o.position LIMIT 1"""
_OF_KEY = f"""
SELECT {COLUMNS} FROM holdfast.outbox o
WHERE o.key = $5::text AND o.key IS NOT NULL AND o.type = $1::text AND o.position > $2::bigint
    AND o.seq > $3::bigint AND o.time >= to_timestamp($4::float8)
ORDER BY o.version LIMIT 1"""


def hear(lease: Lease, *, limit: int, portion: int) -> Procedure[int | None]:
    """While nobody waits, the reader goes to the end of the log: who begins to wait looks there first."""
    if not (yield from fence(lease)):
        return None
    [(at, until, woken)] = yield Statement(
        "SELECT position, until, woken FROM holdfast.saga_reader FOR UPDATE"
    )
    [(newest, is_awaited)] = yield Statement(_NEWEST)
    if at is None or at >= newest or not is_awaited:
        if at != newest:
            yield Statement(_GO_TO, (newest,))
        return 0
    if until <= at:  # nothing is left over of what was read before
        until, woken = newest, 0
    events = yield Statement(_READ, (at, until, limit))
    until = events[-1][0] if events else until
    meant = yield Statement(_MEANT, (at, until, woken, portion))
    yield from wake([saga for saga, had_begun in meant if had_begun])
    if len(meant) < portion:
        yield Statement(_GO_TO, (until,))
    else:  # of these events there may be more to tell
        yield Statement(_GO_ON, (until, meant[-1][0]))
    return len(events)


_GO_TO = "UPDATE holdfast.saga_reader SET position = $1::bigint"
_GO_ON = "UPDATE holdfast.saga_reader SET until = $1::bigint, woken = $2::bigint"


def has_news() -> Procedure[bool]:
    """Whether there is anything to read, or to pass by."""
    sql = "SELECT r.position IS DISTINCT FROM p.value FROM holdfast.saga_reader r, holdfast.event_position p"
    [(found,)] = yield Statement(sql)
    return bool(found)


_NEWEST = """
SELECT (SELECT value FROM holdfast.event_position), EXISTS (SELECT FROM holdfast.saga_wait WHERE kind = 'event')"""
_READ = """SELECT position FROM holdfast.outbox WHERE position > $1::bigint AND position <= $2::bigint
    ORDER BY position LIMIT $3"""
_MEANT = """
SELECT m.saga, CASE WHEN s.event_seq < 0 THEN s.started_at <= m.time ELSE s.event_seq < m.seq END FROM (
    SELECT w.saga, max(o.time) AS time, max(o.seq) AS seq FROM holdfast.outbox o
    JOIN holdfast.saga_wait w ON w.kind = 'event' AND w.name = o.type AND (w.key IS NULL OR w.key = o.key)
    WHERE o.position > $1::bigint AND o.position <= $2::bigint AND w.saga > $3::bigint
    GROUP BY w.saga ORDER BY w.saga LIMIT $4) m
JOIN holdfast.saga s ON s.seq = m.saga ORDER BY m.saga"""


def signal(saga_id: str, name: str, value: str) -> Procedure[SagaAnswer]:
    rows = yield Statement("SELECT job_id::text FROM holdfast.saga WHERE id = $1::text", (saga_id,))
    if not rows:
        return SagaAnswer(saga_id, "missing")
    yield Statement("SELECT FROM holdfast.job WHERE id = $1::uuid FOR UPDATE", (rows[0][0],))
    rows = yield Statement("SELECT seq, state FROM holdfast.saga WHERE id = $1::text FOR UPDATE", (saga_id,))
    if not rows:
        return SagaAnswer(saga_id, "missing")
    saga, state = rows[0][0], SagaState(rows[0][1])
    if state in OVER:
        return SagaAnswer(saga_id, "over", state)
    yield Statement(_SEND, (saga, name, value))
    listens = """SELECT FROM holdfast.saga_wait
        WHERE saga = $1::bigint AND kind = 'signal' AND name = $2::text LIMIT 1"""
    if (yield Statement(listens, (saga, name))):
        yield from wake([saga])
    return SagaAnswer(saga_id, "accepted", state)


_SEND = """INSERT INTO holdfast.saga_signal (saga, name, value) VALUES ($1::bigint, $2::text, $3::text)"""


def waiting_for(kind: str, names: Sequence[str]) -> Procedure[list[int]]:
    """The sagas that listen for one of these."""
    sql = "SELECT DISTINCT saga FROM holdfast.saga_wait WHERE kind = $1::text AND name = ANY($2::text[]) ORDER BY saga"
    return [row[0] for row in (yield Statement(sql, (kind, list(names))))]


def wake(sagas: Sequence[int]) -> Procedure[None]:
    """Their jobs are ready; one that runs may not rest before it has looked again."""
    if sagas:
        yield Statement(_LOCK_JOBS, (list(sagas),))
        yield Statement(_WAKE, (list(sagas),))


_LOCK_JOBS = """
SELECT FROM holdfast.job WHERE id = ANY(ARRAY(SELECT job_id FROM holdfast.saga WHERE seq = ANY($1::bigint[])))
ORDER BY id FOR UPDATE"""
# Sagas that a person has to look at keep what comes, and stay where they are.
ROUSE = """
UPDATE holdfast.job j SET held = NULL, run_at = NULL, rank = nextval('holdfast.rank')
FROM found f WHERE j.id = ANY(ARRAY[f.job_id]) AND j.state = 'queued' AND j.held IN ('time', 'waiting')
RETURNING j.id"""
_AT_REST = "j.state = 'queued' AND j.held IN ('time', 'waiting')"
# Whether it was at rest is asked of its row as it was before: to join what was changed here would be a loop in a loop.
_WAKE = f"""
WITH found AS MATERIALIZED (
    SELECT s.seq, s.job_id FROM holdfast.saga s
    WHERE s.seq = ANY($1::bigint[]) AND s.state IN ('running', 'waiting', 'compensating') ORDER BY s.seq FOR UPDATE),
roused AS ({ROUSE})
UPDATE holdfast.saga s SET woken = s.woken OR j.lease_until IS NOT NULL,
    state = CASE WHEN s.state = 'waiting' AND {_AT_REST} THEN 'running' ELSE s.state END,
    waits = CASE WHEN {_AT_REST} THEN NULL ELSE s.waits END
FROM found f LEFT JOIN holdfast.job j ON j.id = f.job_id WHERE s.seq = f.seq"""
