"""Steps go with their jobs: a part at a time, before the history forgets those."""

from __future__ import annotations

from holdfast.store.postgres.rows import same_id
from holdfast.store.statements import Procedure, Statement

PAGE = 500  # jobs in one transaction
PAGES = 20  # of one prune; the next goes on
FIRST = "00000000-0000-0000-0000-000000000000"


def forget_steps(table: str, after: str) -> Procedure[str | None]:
    """Of the next jobs of a day that is about to be dropped. Returns the last of them; None: there are no more."""
    if not (yield Statement("SELECT 1 WHERE to_regclass($1::text) IS NOT NULL", (table,))):
        return None  # another has dropped it
    rows = yield Statement(_FORGET.format(table=table), (after, PAGE))
    number, last = rows[0]
    return last if number == PAGE else None


# By the index history_with_steps: jobs that never had a step are not looked at.
_FORGET = """
WITH page AS MATERIALIZED (
    SELECT h.id FROM {table} h WHERE h.steps_of IS NOT NULL AND h.id > $1::uuid ORDER BY h.id LIMIT $2),
gone AS (DELETE FROM holdfast.step s USING page p WHERE s.job_id = ANY(ARRAY[p.id]))
SELECT (SELECT count(*) FROM page), (SELECT id::text FROM page ORDER BY id DESC LIMIT 1)"""


def forget_stray_steps(after: str) -> Procedure[tuple[str | None, int]]:
    """Steps without a job, such as someone has deleted by hand, among the next jobs that have steps.

    Returns the last of those, None at the end, and how many jobs were missing.
    """
    rows = yield Statement(_FORGET_STRAYS, (after, PAGE))
    number, last, missing = rows[0]
    return last if number == PAGE else None, missing


_FORGET_STRAYS = f"""
WITH page AS MATERIALIZED (
    SELECT DISTINCT s.job_id AS id FROM holdfast.step s WHERE s.job_id > $1::uuid ORDER BY s.job_id LIMIT $2),
stray AS MATERIALIZED (
    SELECT p.id FROM page p WHERE NOT EXISTS (SELECT FROM holdfast.job j WHERE {same_id("p")})
        AND NOT EXISTS (SELECT FROM holdfast.history h WHERE {same_id("p", "h")})),
gone AS (DELETE FROM holdfast.step s USING stray p WHERE s.job_id = ANY(ARRAY[p.id]))
SELECT (SELECT count(*) FROM page), (SELECT id::text FROM page ORDER BY id DESC LIMIT 1), (SELECT count(*) FROM stray)"""
