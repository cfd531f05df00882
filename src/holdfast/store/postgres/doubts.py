"""Effects of jobs that may have been done, and of which nobody knows: they wait for a person from now on."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.postgres.rows import same_id
from holdfast.store.statements import Procedure, Statement

# Of a job's row: whether its generation has steps. Evaluated again when the row was waited for, so it is never too old.
HAS_STEPS = "coalesce(j.steps_of = j.generation, false)"


def leave_to_person(job_ids: Sequence[str]) -> Procedure[dict[str, list[str]]]:
    """The names of such effects by job, in order; they are unknown from now on.

    The rows of the jobs are locked, by an earlier statement: this one sees every step that was written before.
    """
    found: dict[str, list[str]] = {}
    for job_id, name in (yield Statement(_LEAVE, (sorted(job_ids),))):
        found.setdefault(job_id, []).append(name)
    return found


# What is unknown waits for a person, of whichever kind it is.
_LEAVE = f"""
WITH open AS MATERIALIZED (
    SELECT s.job_id, s.generation, s.name, s.number, s.progress
    FROM unnest($1::uuid[]) AS g(id), holdfast.job j, holdfast.step s
    WHERE {same_id("g")} AND s.job_id = ANY(ARRAY[g.id]) AND s.generation = j.generation
        AND (s.progress = 'unknown' OR s.kind = 'at_most_once' AND s.progress IN ('begun', 'sought'))),
marked AS (
    UPDATE holdfast.step s SET progress = 'unknown', at = holdfast.now() FROM open o
    WHERE s.job_id = ANY(ARRAY[o.job_id]) AND s.generation = o.generation AND s.name = o.name AND o.progress IN ('begun', 'sought'))
SELECT job_id::text, name FROM open ORDER BY job_id, number, name"""
