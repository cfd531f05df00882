"""Write a saga's steps, moves and rests under the claims of its jobs: many sagas in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.store.postgres.rows import SOON, held_by, same_id
from holdfast.store.postgres.saga_waits import waiting_for, wake
from holdfast.store.postgres.steps import KEEP
from holdfast.store.records import Claim
from holdfast.store.saga_records import OVER, Move, Rest, Written
from holdfast.store.statements import Procedure, Statement
from holdfast.store.steps import Step


class SagaWrite(msgspec.Struct, frozen=True):
    claim: Claim
    step: Step | None
    move: Move | None
    rest: Rest | None

    @property
    def is_end(self) -> bool:
        return self.move is not None and self.move.state in OVER


def write(writes: Sequence[SagaWrite], *, impatient: bool = False) -> Procedure[list[Written | None]]:
    """`impatient`: who would wait for another's lock is blocked instead, after a moment.

    One that ends, and for which others wait, is not moved: see `end`.
    """
    rows = yield Statement(_WRITE[impatient], (*_columns(sorted(writes, key=_by_id)), False))
    return _answers(writes, rows)


def end(one: SagaWrite) -> Procedure[Written | None]:
    """The same for a saga that others wait for: they are woken in this transaction."""
    rows = yield Statement(_WRITE[False], (*_columns([one]), True))
    [written] = _answers([one], rows)
    if written is not None and written.moved:
        saga = yield Statement("SELECT id FROM holdfast.saga WHERE job_id = $1::uuid", (one.claim.job_id,))
        yield from wake((yield from waiting_for("saga", [saga[0][0]])))
    return written


def _answers(writes: Sequence[SagaWrite], rows: Sequence[Sequence[Any]]) -> list[Written | None]:
    found = {(row[0], row[1]): Written(row[2], row[3], row[4]) for row in rows}
    return [found.get((each.claim.job_id, None if each.step is None else each.step.name)) for each in writes]


def _by_id(each: SagaWrite) -> str:
    return each.claim.job_id


def _columns(writes: Sequence[SagaWrite]) -> tuple[list[Any], ...]:
    steps, moves = [each.step for each in writes], [each.move for each in writes]
    rests = [each.rest for each in writes]
    return (
        [each.claim.job_id for each in writes],
        [each.claim.token for each in writes],
        [None if step is None else step.name for step in steps],
        [None if step is None else step.number for step in steps],
        [None if step is None else step.kind.value for step in steps],
        [None if step is None else step.progress.value for step in steps],
        [None if step is None else step.branch for step in steps],
        [None if step is None else step.fingerprint for step in steps],
        [None if step is None else step.result for step in steps],
        [None if step is None else step.plan for step in steps],
        [None if step is None else step.tries for step in steps],
        [None if step is None else step.error for step in steps],
        [None if step is None else step.calls for step in steps],
        [None if step is None else step.intent for step in steps],
        [None if step is None else step.took for step in steps],
        [None if move is None else move.state.value for move in moves],
        [move is not None and move.undoing for move in moves],
        [None if move is None else move.error for move in moves],
        [None if move is None else move.result for move in moves],
        [None if move is None else move.pivot for move in moves],
        [None if move is None else move.waits for move in moves],
        [rest is not None for rest in rests],
        [None if rest is None else rest.after for rest in rests],
    )


# The rows of the job and of its saga are locked until the commit, in this order by everyone: whoever wakes the saga, or
# wants it undone, comes before this and is seen, or after it and finds the job at rest. What is over stays so; and one that
# someone wants undone, who was told that it will be, is not done. One that rests is no suspect: it may live for months, and
# deaths of workers under what it did before do not count against what it does next.
_WRITE = {
    impatient: f"""
WITH held AS MATERIALIZED (
    SELECT g.*, holdfast.now() AS now, j.generation, j.steps_of, s.seq AS saga, s.asked, s.woken,
        s.asked IS NOT NULL AND s.pivot IS NULL AND NOT s.undoing AND NOT g.undoing AS wanted,
        g.state IS NOT NULL AND s.finished_at IS NULL
            AND (g.state <> 'done' OR s.asked IS NULL OR s.pivot IS NOT NULL)
            AND (g.state NOT IN ('done', 'undone') OR NOT s.watched OR $24::bool) AS moves
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::int[], $12::text[], $13::int[], $14::bool[], $15::float8[], $16::text[],
        $17::bool[], $18::text[], $19::text[], $20::text[], $21::text[], $22::bool[], $23::float8[])
        AS g(id, token, name, number, kind, progress, branch, fingerprint, result, plan, tries, error, calls, intent, took,
            state, undoing, saga_error, saga_result, pivot, waits, rests, after), holdfast.job j, holdfast.saga s
    WHERE {held_by("g")} AND s.job_id = ANY(ARRAY[g.id]) AND {SOON if impatient else "true"}
    ORDER BY g.id FOR UPDATE OF j, s),
marked AS (
    UPDATE holdfast.job j SET steps_of = j.generation
    FROM (SELECT DISTINCT id FROM held h WHERE h.name IS NOT NULL AND NOT h.rests
        AND h.steps_of IS DISTINCT FROM h.generation) h WHERE {same_id("h")}),
kept AS ({KEEP} RETURNING s.job_id, s.name),
moved AS (
    UPDATE holdfast.saga s SET
        state = CASE WHEN h.moves THEN h.state ELSE s.state END,
        undoing = s.undoing OR (h.moves AND h.undoing),
        at = CASE WHEN h.moves THEN h.now ELSE s.at END,
        waits = CASE WHEN h.moves THEN h.waits ELSE s.waits END,
        pivot = coalesce(CASE WHEN h.moves THEN h.pivot END, s.pivot),
        decided_at = coalesce(s.decided_at, CASE WHEN h.moves AND h.undoing THEN h.now END),
        finished_at = CASE WHEN h.moves AND h.state IN ('done', 'undone') THEN h.now ELSE s.finished_at END,
        error = CASE WHEN NOT h.moves THEN s.error WHEN h.state = 'done' THEN NULL WHEN h.state = 'undone' THEN s.cause
            ELSE coalesce(h.saga_error, s.error) END,
        cause = CASE WHEN h.moves AND h.undoing AND NOT s.undoing THEN coalesce(h.saga_error, s.error) ELSE s.cause END,
        result = CASE WHEN h.moves THEN h.saga_result ELSE s.result END,
        woken = s.woken AND NOT h.rests
    FROM held h WHERE s.seq = h.saga AND (h.moves OR h.rests)),
forgotten AS (
    DELETE FROM holdfast.saga_wait w USING held h WHERE w.saga = h.saga AND h.moves AND h.state = 'undone'),
rested AS (
    UPDATE holdfast.job j SET state = 'queued', lease_until = NULL, worker = NULL, started_at = NULL, alone = false,
        progress = NULL, note = NULL, words = NULL, attempt = j.attempt - 1, interruptions = 0, strikes = 0, suspect = false,
        steps_of = CASE WHEN h.name IS NOT NULL THEN j.generation ELSE j.steps_of END,
        held = CASE WHEN h.at_once THEN NULL WHEN h.after IS NULL THEN 'waiting' WHEN h.after > 0 THEN 'time' END,
        run_at = CASE WHEN h.at_once THEN NULL ELSE h.now + make_interval(secs => h.after) END,
        rank = CASE WHEN h.at_once OR h.after <= 0 THEN nextval('holdfast.rank') ELSE j.rank END
    FROM (SELECT *, (woken OR wanted) AND coalesce(state, '') NOT IN ('needs_operator', 'parked') AS at_once
        FROM held WHERE rests) h
    WHERE {same_id("h")})
SELECT h.id::text, h.name,
    h.name IS NULL OR EXISTS (SELECT FROM kept k WHERE k.job_id = h.id AND k.name = h.name), h.moves, h.asked
FROM held h"""
    for impatient in (False, True)
}
