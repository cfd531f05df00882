"""Unknown jobs whose lookups are due: given out for a look while they stay unknown, and what a look in vain leaves."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.postgres.rows import CLAIM, same_id
from holdfast.store.records import Claim
from holdfast.store.statements import Procedure, Statement


def is_due() -> Procedure[bool]:
    sql = """SELECT EXISTS (SELECT FROM holdfast.job j
        WHERE j.look_at IS NOT NULL AND j.look_at <= (SELECT holdfast.now()))"""
    return bool((yield Statement(sql))[0][0])


def to_look(
    tasks: Sequence[str], queues: Sequence[str] | None, *, lease: float, limit: int
) -> Procedure[list[Claim]]:
    given = (list(tasks), None if queues is None else list(queues), limit, float(lease))
    return [Claim(*row) for row in (yield Statement(_TAKE, given))]


_TAKE = f"""
WITH due AS MATERIALIZED (
    SELECT j.id FROM holdfast.job j WHERE j.look_at IS NOT NULL AND j.look_at <= (SELECT holdfast.now())
        AND j.state = 'unknown' AND j.task = ANY($1::text[]) AND ($2::text[] IS NULL OR j.queue = ANY($2::text[]))
        AND NOT EXISTS (SELECT FROM holdfast.queue q WHERE q.name = j.queue)
    ORDER BY j.look_at LIMIT $3 FOR UPDATE OF j SKIP LOCKED)
UPDATE holdfast.job j SET look_at = holdfast.now() + make_interval(secs => $4::float8) FROM due
WHERE {same_id("due")} RETURNING {CLAIM.replace("j.lease_until", "j.look_at")}"""


def looked(job_id: str, token: int, *, after: float | None, counted: bool) -> Procedure[bool]:
    return bool((yield Statement(_LOOKED, (job_id, token, after, counted))))


_LOOKED = """
WITH looked AS (
    UPDATE holdfast.job j SET look_at = holdfast.now() + make_interval(secs => $3::float8)
    WHERE j.id = $1::uuid AND j.token = $2::bigint AND j.state = 'unknown' RETURNING j.id, j.generation),
counted AS (
    UPDATE holdfast.step s SET looks = s.looks + 1 FROM looked l
    WHERE $4::bool AND s.job_id = l.id AND s.generation = l.generation AND s.progress = 'unknown')
SELECT id FROM looked"""
