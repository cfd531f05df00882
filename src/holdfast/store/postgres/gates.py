"""Jobs that their guards hold: which keys have any, let go of some of each, and hold what would be refused."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.store.postgres.promotion import fill_windows
from holdfast.store.postgres.rows import IS_DECIDED, same_id
from holdfast.store.records import GATED_COUNTED, Gated
from holdfast.store.statements import Procedure, Statement

# Of a job that its guard holds. One that a step's guard has refused waits for that; the others for that of their task.
GATE = "coalesce(j.waits_for, j.guard)"
_LET_GO = f"""UPDATE holdfast.job j SET rank = ranked.rank,
    held = CASE WHEN j.concurrency_key IS NULL AND j.tenant IS NULL THEN NULL ELSE 'arrived' END
FROM ranked WHERE {same_id("ranked")}"""


def let_go(which: str, limit: str) -> str:
    """The oldest of these jobs. What has a concurrency key or a tenant is looked at again; the rest is ready."""
    return f"""
WITH freed AS MATERIALIZED (
    SELECT j.id FROM holdfast.job j WHERE {which}
    ORDER BY j.rank LIMIT {limit} FOR UPDATE SKIP LOCKED),
ranked AS MATERIALIZED (SELECT freed.id, nextval('holdfast.rank') AS rank FROM freed)
{_LET_GO} RETURNING j.id::text"""


def gated(after: str | None, limit: int) -> Procedure[list[Gated]]:
    rows = yield Statement(_GATED, (after, limit, GATED_COUNTED))
    return [Gated(row[0], row[1]) for row in rows]


# By jumping from one guard to the next: one of them may hold a million jobs.
_LISTED = f"""found AS (
    (SELECT {GATE} AS guard, 1 AS number FROM holdfast.job j WHERE j.held = 'guard' AND {GATE} > coalesce($1::text, '')
        ORDER BY {GATE} LIMIT 1)
    UNION ALL SELECT (SELECT {GATE} FROM holdfast.job j WHERE j.held = 'guard' AND {GATE} > found.guard
        ORDER BY {GATE} LIMIT 1), found.number + 1 FROM found WHERE found.guard IS NOT NULL AND found.number < $2),
listed AS (SELECT guard FROM found WHERE guard IS NOT NULL)"""
_GATED = f"""
WITH RECURSIVE {_LISTED}
(SELECT NULL AS guard, count(*) FROM (SELECT FROM holdfast.job j WHERE j.held = 'guard' AND {GATE} IS NULL
    AND $1::text IS NULL LIMIT $3) AS lone HAVING count(*) > 0)
UNION ALL (SELECT listed.guard, (SELECT count(*) FROM (
        SELECT FROM holdfast.job j WHERE j.held = 'guard' AND {GATE} = listed.guard LIMIT $3) AS counted)
    FROM listed)
ORDER BY 1 NULLS FIRST LIMIT $2"""
_GATES = f"WITH RECURSIVE {_LISTED} SELECT guard FROM listed ORDER BY 1 LIMIT $2"


def gates(after: str | None, limit: int) -> Procedure[list[str]]:
    return [row[0] for row in (yield Statement(_GATES, (after, limit)))]


def open_gates(numbers: Mapping[str, int]) -> Procedure[dict[str, int]]:
    rows = yield Statement(_OPEN, (list(numbers), list(numbers.values())))
    return dict.fromkeys(numbers, 0) | {row[0]: row[1] for row in rows}


_OPEN = f"""
WITH freed AS MATERIALIZED (
    SELECT f.id, f.rank FROM unnest($1::text[], $2::int[]) AS w(guard, number) CROSS JOIN LATERAL (
        SELECT j.id, j.rank FROM holdfast.job j WHERE j.held = 'guard' AND {GATE} = w.guard AND j.state = 'queued'
        ORDER BY j.rank LIMIT w.number FOR UPDATE SKIP LOCKED) AS f),
ranked AS MATERIALIZED (
    SELECT o.id, nextval('holdfast.rank') AS rank FROM (SELECT id FROM freed ORDER BY rank) AS o),
gone AS ({_LET_GO} RETURNING {GATE} AS guard)
SELECT guard, count(*) FROM gone GROUP BY guard"""


class Refused(msgspec.Struct, frozen=True):
    """Whose jobs are held before anyone claims them: of some keys, or of tasks behind some guards."""

    queues: list[str]
    keys: list[str]
    guards: list[str]
    tasks: list[str]
    limit: int


def shut_gates(refused: Refused, window: int) -> Procedure[int]:
    given = (refused.queues, refused.limit, refused.keys, refused.tasks, refused.guards)
    rows = yield Statement(_SHUT, given)
    yield from fill_windows(sorted({(row[0], row[1]) for row in rows if row[1] is not None}), window=window)
    return len(rows)


# Only what claims would come upon next: the rest of a long queue is in nobody's way yet. Locked is only what is held: who
# claims skips what is locked, and would find none of the others. `ctid` as in claiming: one that moved is not held.
_SHUT = f"""
WITH head AS MATERIALIZED (
    SELECT h.* FROM unnest($1::text[]) AS w(queue) CROSS JOIN LATERAL (
        SELECT j.ctid, j.guard, j.task, j.concurrency_key, {IS_DECIDED} AS decided FROM holdfast.job j
        WHERE j.queue = w.queue AND NOT j.suspect AND j.state = 'queued' AND j.held IS NULL
        ORDER BY j.priority DESC, j.rank LIMIT $2) AS h),
refused AS MATERIALIZED (
    SELECT h.ctid FROM head AS h WHERE h.concurrency_key IS NULL AND NOT h.decided AND (h.guard = ANY($3::text[])
        OR (h.task = ANY($4::text[]) AND EXISTS (
            SELECT FROM unnest($5::text[]) AS g(name) WHERE h.guard = g.name OR starts_with(h.guard, g.name || '/'))))),
free AS MATERIALIZED (
    SELECT j.ctid FROM holdfast.job j WHERE j.ctid = ANY(ARRAY(SELECT ctid FROM refused)) FOR UPDATE SKIP LOCKED)
UPDATE holdfast.job j SET held = 'guard', waits_for = NULL, words = NULL
WHERE j.ctid = ANY(ARRAY(SELECT ctid FROM free)) RETURNING j.queue, j.tenant"""
