"""Why queued jobs do not run yet, and who has what they wait for: two reads for any number of jobs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.held_records import HeldBy, HeldRow, Holder, held_by, holders
from holdfast.store.sqlite.connection import Db
from holdfast.store.states import State


def why(db: Db, job_ids: Sequence[str]) -> dict[str, HeldBy]:
    rows = [HeldRow(*row) for row in db.rows(_ROWS, _ids(job_ids), db.now)]
    found = {
        row[0]: Holder(row[0], row[1], State(row[2]), row[3])
        for row in db.rows(_HOLDERS, _ids(holders(rows)))
    }
    return {row.id: answer for row in rows if (answer := held_by(row, found)) is not None}


def _ids(job_ids: Sequence[str]) -> str:
    return msgspec.json.encode(job_ids).decode()


_ROWS = """
    SELECT j.id, q.held, j.queue, j.task, q.run_at, j.ordering_key, j.concurrency_key, j.concurrency_limit, j.tenant,
        coalesce(q.gate, j.guard), q.waits_for, l.owner, p.paused_by,
        CASE WHEN q.held = 'waiting' THEN (SELECT s.waits FROM holdfast_saga AS s WHERE s.job_id = j.id) END,
        (SELECT h.id FROM holdfast_job AS h WHERE h.seq = CASE q.held
            WHEN 'ordering' THEN (SELECT t.seq FROM holdfast_turn AS t WHERE t.key = j.ordering_key)
            WHEN 'concurrency' THEN (SELECT min(s.seq) FROM holdfast_slot AS s WHERE s.key = j.concurrency_key) END),
        CASE q.held WHEN 'concurrency' THEN (SELECT count(*) FROM holdfast_slot AS s WHERE s.key = j.concurrency_key)
            WHEN 'tenant' THEN (SELECT count(*) FROM holdfast_queued AS w
                WHERE w.queue = q.queue AND w.tenant = q.tenant AND w.tenant IS NOT NULL AND w.held IS NULL) END,
        n.reason, n.paused_by
    FROM json_each(?1) AS g CROSS JOIN holdfast_job AS j ON j.id = g.value
    CROSS JOIN holdfast_queued AS q ON q.seq = j.seq
    LEFT JOIN holdfast_lease AS l ON l.name = q.waits_for AND l.until > ?2
    LEFT JOIN holdfast_queue AS p ON p.name = j.queue
    LEFT JOIN holdfast_tenant AS n ON n.key = j.tenant AND n.resumed_at IS NULL"""
_HOLDERS = """
    SELECT j.id, j.task, CASE WHEN r.seq IS NOT NULL THEN 'running' WHEN q.seq IS NOT NULL THEN 'queued'
        ELSE coalesce(p.state, 'succeeded') END, r.started_at
    FROM json_each(?) AS g CROSS JOIN holdfast_job AS j ON j.id = g.value
    LEFT JOIN holdfast_running AS r ON r.seq = j.seq LEFT JOIN holdfast_queued AS q ON q.seq = j.seq
    LEFT JOIN holdfast_parked AS p ON p.seq = j.seq"""
