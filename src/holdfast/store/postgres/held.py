"""Why queued jobs do not run yet, and who has what they wait for: two reads for any number of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.held_records import HeldBy, HeldRow, Holder, held_by, holders
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import State


def why(job_ids: Sequence[str]) -> Procedure[dict[str, HeldBy]]:
    rows = [HeldRow(*row) for row in (yield Statement(_ROWS, (list(job_ids),)))]
    found: dict[str, Holder] = {}
    if wanted := holders(rows):
        for job_id, task, state, since in (yield Statement(_HOLDERS, (wanted,))):
            found[job_id] = Holder(job_id, task, State(state), since)
    return {row.id: answer for row in rows if (answer := held_by(row, found)) is not None}


_ROWS = """
SELECT j.id::text, j.held, j.queue, j.task, date_part('epoch', j.run_at), j.ordering_key, j.concurrency_key,
    j.concurrency_limit, j.tenant, CASE WHEN j.held = 'guard' THEN coalesce(j.waits_for, j.guard) ELSE j.guard END, CASE WHEN j.held = 'time' THEN j.waits_for END, l.owner, p.paused_by,
    CASE WHEN j.held = 'waiting' THEN (SELECT s.waits FROM holdfast.saga AS s WHERE s.job_id = j.id) END,
    CASE j.held
        WHEN 'ordering' THEN (SELECT t.id::text FROM holdfast.job AS t
            WHERE t.ordering_key = j.ordering_key AND t.has_turn LIMIT 1)
        WHEN 'concurrency' THEN (SELECT t.id::text FROM holdfast.job AS t
            WHERE t.concurrency_key = j.concurrency_key AND t.slot IS NOT NULL ORDER BY t.slot LIMIT 1) END,
    CASE j.held
        WHEN 'concurrency' THEN (SELECT count(*) FROM holdfast.job AS t
            WHERE t.concurrency_key = j.concurrency_key AND t.slot IS NOT NULL)
        WHEN 'tenant' THEN (SELECT count(*) FROM holdfast.job AS t
            WHERE t.queue = j.queue AND t.tenant = j.tenant AND t.tenant IS NOT NULL AND t.state = 'queued'
                AND t.held IS NULL) END,
    n.reason, n.paused_by
FROM holdfast.job AS j
    LEFT JOIN holdfast.lease AS l ON j.held = 'time' AND l.name = j.waits_for AND l.until > (SELECT holdfast.now())
    LEFT JOIN holdfast.queue AS p ON p.name = j.queue
    LEFT JOIN holdfast.tenant AS n ON n.key = j.tenant AND n.resumed_at IS NULL
WHERE j.id = ANY($1::uuid[]) AND j.state = 'queued'"""
_HOLDERS = """
SELECT id::text, task, state, CASE WHEN state = 'running' THEN date_part('epoch', started_at) END
FROM holdfast.job WHERE id = ANY($1::uuid[])"""
