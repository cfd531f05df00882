"""What people decide about sagas, and what upkeep does for them: cancel, let go on, settle, park, forget."""

from __future__ import annotations

import msgspec

from holdfast.store import saga_verdicts as verdicts
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.saga_waits import ROUSE
from holdfast.store.saga_records import STUCK, SagaAnswer, SagaState
from holdfast.store.statements import Procedure, Statement
from holdfast.store.steps import Progress


class Found(msgspec.Struct, frozen=True):
    """A saga and its job, their rows locked."""

    seq: int
    state: SagaState
    undoing: bool
    pivot: str | None
    job_id: str
    generation: int | None = None  # None: its job is over, or gone


def _find(saga_id: str) -> Procedure[Found | None]:
    rows = yield Statement("SELECT job_id::text FROM holdfast.saga WHERE id = $1::text", (saga_id,))
    if not rows:
        return None
    locked = "SELECT generation FROM holdfast.job WHERE id = $1::uuid FOR UPDATE"
    jobs = yield Statement(locked, (rows[0][0],))
    rows = yield Statement(_LOCK, (saga_id,))
    if not rows:
        return None
    seq, state, undoing, pivot, job_id = rows[0]
    return Found(seq, SagaState(state), undoing, pivot, job_id, jobs[0][0] if jobs else None)


_LOCK = "SELECT seq, state, undoing, pivot, job_id::text FROM holdfast.saga WHERE id = $1::text FOR UPDATE"


def cancel(saga_id: str, *, actor: str, reason: str, done_too: bool) -> Procedure[SagaAnswer]:
    found = yield from _find(saga_id)
    if found is None:
        return SagaAnswer(saga_id, "missing")
    refused = verdicts.may_cancel(
        saga_id, found.state, undoing=found.undoing, pivot=found.pivot, done_too=done_too
    )
    if refused is not None:
        return refused
    if found.state is SagaState.DONE:
        return (yield from _undo_done(found, saga_id, actor=actor, reason=reason))
    if found.generation is None:
        return SagaAnswer(saga_id, "no_job", found.state)
    asked = "UPDATE holdfast.saga SET asked = $2::text, at = holdfast.now() WHERE seq = $1::bigint"
    yield Statement(asked, (found.seq, reason))
    yield audited([verdicts.cancelled(saga_id, found.state, actor=actor, reason=reason)])
    return SagaAnswer(saga_id, "accepted", (yield from _go_on(found)))


def _undo_done(found: Found, saga_id: str, *, actor: str, reason: str) -> Procedure[SagaAnswer]:
    """Its job is live again, whether it is over or died when its saga was: what it has done stands in its steps."""
    is_live = found.generation is not None
    if not (yield Statement(_QUEUE if is_live else _REVIVE, (found.job_id,))):
        return SagaAnswer(saga_id, "ending" if is_live else "no_job", found.state)
    yield Statement(_UNDO_DONE, (found.seq, reason))
    yield audited([verdicts.cancelled(saga_id, found.state, actor=actor, reason=reason)])
    return SagaAnswer(saga_id, "accepted", SagaState.COMPENSATING)


_REVIVED = (
    "id, token, enqueued_at, generation, priority, task, queue, args, correlation_id, causation_id, trace, steps_of, "
    "due_at, story"
)
_REVIVE = f"""
WITH gone AS (DELETE FROM holdfast.history WHERE id = $1::uuid RETURNING {_REVIVED})
INSERT INTO holdfast.job ({_REVIVED}) SELECT {_REVIVED} FROM gone RETURNING id"""
_UNDO_DONE = """
UPDATE holdfast.saga SET state = 'compensating', undoing = true, error = $2::text, cause = $2::text, result = NULL, finished_at = NULL,
    decided_at = holdfast.now(), at = holdfast.now() WHERE seq = $1::bigint"""


def retry(saga_id: str, *, actor: str) -> Procedure[SagaAnswer]:
    found = yield from _find(saga_id)
    if found is None:
        return SagaAnswer(saga_id, "missing")
    if (refused := verdicts.may_go_on(saga_id, found.state)) is not None:
        return refused
    if found.generation is None:
        return SagaAnswer(saga_id, "no_job", found.state)
    yield audited([verdicts.retried(saga_id, found.state, actor=actor)])
    return SagaAnswer(saga_id, "accepted", (yield from _go_on(found)))


def settle(saga_id: str, step: str, *, done: bool, result: str | None, actor: str) -> Procedure[SagaAnswer]:
    found = yield from _find(saga_id)
    if found is None:
        return SagaAnswer(saga_id, "missing")
    if (refused := verdicts.may_go_on(saga_id, found.state)) is not None:
        return refused
    if found.generation is None:
        return SagaAnswer(saga_id, "no_job", found.state)
    rows = yield Statement(_STEPS, (found.job_id, found.generation))
    steps = [(row[0], row[1], row[2]) for row in rows]
    open_ = verdicts.to_decide(steps, no_way_back=found.pivot is not None and not found.undoing)
    if step not in open_:
        return SagaAnswer(saga_id, "no_such_step", found.state, open_)
    progress = Progress.RESOLVED if done else Progress.FAILED
    given = verdicts.as_decided(step, result) if done else None
    decided = (found.job_id, found.generation, step, progress.value, given)
    yield Statement(_DECIDE, decided)
    yield audited([verdicts.settled(saga_id, found.state, step, done=done, result=result, actor=actor)])
    left = tuple(each for each in open_ if each != step)
    return SagaAnswer(saga_id, "accepted", (yield from _go_on(found)), left)


_STEPS = f"""SELECT name, progress, left(result, {verdicts.SHOWN}) FROM holdfast.step
    WHERE job_id = $1::uuid AND generation = $2::int ORDER BY number, name"""
_DECIDE = """UPDATE holdfast.step SET progress = $4::text, result = $5::text, at = holdfast.now()
    WHERE job_id = $1::uuid AND generation = $2::int AND name = $3::text"""


def _go_on(found: Found) -> Procedure[SagaState]:
    """Its job is ready, whatever it was held for; one that is dead begins with all of its attempts."""
    state = verdicts.anew(undoing=found.undoing) if found.state in STUCK else found.state
    if found.state in STUCK:
        yield Statement(_ANEW, (found.job_id, found.generation))
    yield Statement(_QUEUE, (found.job_id,))
    rows = yield Statement(_GO_ON, (found.seq, state.value))
    return SagaState(rows[0][0])


_ANEW = """UPDATE holdfast.step SET tries = 0
    WHERE job_id = $1::uuid AND generation = $2::int AND progress NOT IN ('done', 'resolved')"""
_QUEUE = """
UPDATE holdfast.job SET state = 'queued', rank = nextval('holdfast.rank'), attempt = 0, interruptions = 0, strikes = 0, put_offs = 0,
    suspect = false, alone = false, run_at = NULL, expires_at = NULL, worker = NULL, started_at = NULL, reason = NULL,
    held = NULL
WHERE id = $1::uuid AND state IN ('dead', 'unknown') RETURNING id"""
_GO_ON = f"""
WITH found AS MATERIALIZED (SELECT s.seq, s.job_id FROM holdfast.saga s WHERE s.seq = $1::bigint),
roused AS ({ROUSE})
UPDATE holdfast.saga s SET woken = s.woken OR j.lease_until IS NOT NULL, at = holdfast.now(),
    state = CASE WHEN $2::text = 'waiting' AND r.id IS NOT NULL THEN 'running' ELSE $2::text END,
    waits = CASE WHEN r.id IS NOT NULL THEN NULL ELSE s.waits END
FROM found f LEFT JOIN holdfast.job j ON j.id = f.job_id LEFT JOIN roused r ON r.id = f.job_id WHERE s.seq = f.seq
RETURNING s.state"""


def park_lost(limit: int) -> Procedure[list[str]]:
    rows = yield Statement(_FIND_LOST, (limit,))
    if not rows:
        return []
    yield Statement(
        "SELECT FROM holdfast.job WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE",
        ([row[0] for row in rows],),
    )
    told = [verdicts.lost(row[2], row[3]) for row in rows]
    parked = yield Statement(_PARK, ([row[0] for row in rows], told))
    return [row[0] for row in parked]


_FIND_LOST = """
SELECT j.id::text, s.id, j.state, j.reason FROM holdfast.job j, holdfast.saga s
WHERE j.state IN ('dead', 'unknown') AND starts_with(j.task, 'saga:') AND s.job_id = ANY(ARRAY[j.id])
    AND s.state IN ('running', 'waiting', 'compensating') LIMIT $1"""
_PARK = """
UPDATE holdfast.saga s SET state = 'parked', error = g.told, waits = NULL, at = holdfast.now()
FROM unnest($1::uuid[], $2::text[]) AS g(id, told), holdfast.job j
WHERE s.job_id = ANY(ARRAY[g.id]) AND j.id = ANY(ARRAY[g.id]) AND j.state IN ('dead', 'unknown')
    AND s.state IN ('running', 'waiting', 'compensating')
RETURNING s.id"""


def prune(keep: float, limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (limit, float(keep)))))


_PRUNE = """
DELETE FROM holdfast.saga WHERE ctid = ANY(ARRAY(
    SELECT s.ctid FROM holdfast.saga s WHERE s.finished_at IS NOT NULL
        AND s.finished_at <= (SELECT holdfast.now()) - make_interval(secs => $2::float8)
        AND (s.parent IS NULL OR NOT EXISTS (SELECT FROM holdfast.saga p WHERE p.id = s.parent))
    ORDER BY s.finished_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING seq"""
