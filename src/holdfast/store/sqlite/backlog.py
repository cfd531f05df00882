"""What waits, for whom, and who is alive, for a diagnosis: no count goes on for ever."""

from __future__ import annotations

from collections import Counter

from holdfast.store.findings import (
    COUNTED,
    DIED_LATELY,
    SAMPLED,
    STUCK_AFTER,
    Backlog,
    Dead,
    Died,
    read_serves,
)
from holdfast.store.sqlite.connection import Db


def backlog(db: Db) -> Backlog:
    undecided = db.row(_UNDECIDED, db.now)
    died = db.row(_DIED, db.now, db.now - DIED_LATELY)
    return Backlog(
        running=db.value("SELECT count(*) FROM holdfast_running"),
        stuck=db.value("SELECT count(*) FROM holdfast_running WHERE lease_until < ?", db.now - STUCK_AFTER),
        paused=[(queue, number) for queue, number in db.rows(_PAUSED, COUNTED) if number],
        unknown=[(task, number) for task, number in db.rows(_UNKNOWN, COUNTED)],
        undecided=None if undecided is None else (undecided[0], undecided[1]),
        oldest=_oldest(db),
        waiting=_waiting(db),
        dead=[Dead(*row) for row in db.rows(_DEAD, db.now, COUNTED)],
        serves=read_serves(db.rows(_SERVES, db.now)),
        alive=db.value("SELECT count(*) FROM holdfast_worker WHERE until > ?", db.now),
        died=None if died is None else Died(*died),
    )


def waits(db: Db, limit: int) -> dict[str, float]:
    """For how long the oldest ready job of each queue has waited."""
    ages = [(queue, db.value(_OLDEST, queue, db.now)) for (queue,) in db.rows(_QUEUES, limit)]
    return {queue: max(0.0, age) for queue, age in ages if age is not None}


def _oldest(db: Db) -> tuple[str, float] | None:
    return max(waits(db, SAMPLED).items(), key=lambda each: each[1], default=None)


def _waiting(db: Db) -> list[tuple[str, str, int]]:
    """Some of each queue; of what nobody has looked at yet, or whose time has come, some of all."""
    found = Counter[tuple[str, str]]()
    for (queue,) in db.rows(_QUEUES, SAMPLED):
        for task, number in db.rows(_OF_QUEUE, queue, SAMPLED):
            found[queue, task] += number
    for queue, task, number in db.rows(_NOT_YET_READY, db.now, SAMPLED):
        found[queue, task] += number
    return [(queue, task, number) for (queue, task), number in found.items()]


# One probe of the index for each queue, however many jobs it has.
_QUEUES = """WITH RECURSIVE q (queue) AS (
        SELECT (SELECT min(queue) FROM holdfast_queued WHERE held IS NULL AND NOT suspect)
        UNION ALL
        SELECT (SELECT min(n.queue) FROM holdfast_queued AS n WHERE n.held IS NULL AND NOT n.suspect AND n.queue > q.queue)
        FROM q WHERE q.queue IS NOT NULL LIMIT ?)
    SELECT queue FROM q WHERE queue IS NOT NULL AND queue NOT IN (SELECT name FROM holdfast_queue)"""
_OF_QUEUE = """SELECT j.task, count(*) FROM (
        SELECT seq FROM holdfast_queued WHERE queue = ? AND held IS NULL AND NOT suspect LIMIT ?) AS q
    CROSS JOIN holdfast_job AS j ON j.seq = q.seq GROUP BY 1"""
_NOT_YET_READY = """SELECT j.queue, j.task, count(*) FROM (
        SELECT * FROM (SELECT seq FROM holdfast_queued WHERE held = 'arrived' LIMIT ?2)
        UNION ALL SELECT * FROM (SELECT seq FROM holdfast_queued WHERE held = 'time' AND run_at <= ?1 LIMIT ?2)) AS q
    CROSS JOIN holdfast_job AS j ON j.seq = q.seq
    WHERE j.queue NOT IN (SELECT name FROM holdfast_queue) GROUP BY 1, 2"""
_PAUSED = """SELECT p.name, (SELECT count(*) FROM (
        SELECT 1 FROM holdfast_queued AS q WHERE q.queue = p.name AND q.held IS NULL AND NOT q.suspect LIMIT ?))
    FROM holdfast_queue AS p ORDER BY 2 DESC, 1"""
_UNKNOWN = """SELECT j.task, count(*) FROM (
        SELECT seq FROM holdfast_queued WHERE held = 'unknown_task' LIMIT ?) AS q
    CROSS JOIN holdfast_job AS j ON j.seq = q.seq GROUP BY 1 ORDER BY 2 DESC, 1"""
# Of each priority, the first in its order has waited longest. The few suspects wait beside them.
_OLDEST = """WITH RECURSIVE p (priority) AS (
        SELECT (SELECT max(priority) FROM holdfast_queued WHERE queue = ?1 AND held IS NULL AND NOT suspect)
        UNION ALL
        SELECT (SELECT max(n.priority) FROM holdfast_queued AS n
            WHERE n.queue = ?1 AND n.held IS NULL AND NOT n.suspect AND n.priority < p.priority)
        FROM p WHERE p.priority IS NOT NULL),
    first (seq) AS (
        SELECT (SELECT seq FROM holdfast_queued AS n WHERE n.queue = ?1 AND n.held IS NULL AND NOT n.suspect
            AND n.priority = p.priority ORDER BY n.rank LIMIT 1) FROM p WHERE p.priority IS NOT NULL
        UNION ALL
        SELECT (SELECT seq FROM holdfast_queued WHERE queue = ?1 AND held IS NULL AND suspect ORDER BY rank LIMIT 1))
    SELECT ?2 - min(max(j.enqueued_at, coalesce(q.run_at, 0))) FROM first
    CROSS JOIN holdfast_queued AS q ON q.seq = first.seq CROSS JOIN holdfast_job AS j ON j.seq = q.seq"""
_UNDECIDED = """SELECT count(*), ? - min(j.enqueued_at) FROM holdfast_parked AS p JOIN holdfast_job AS j USING (seq)
    WHERE p.state = 'unknown' HAVING count(*) > 0"""
_DEAD = """SELECT j.task, count(*), ? - max(coalesce(p.started_at, j.enqueued_at)) FROM (
        SELECT seq, started_at FROM holdfast_parked WHERE state = 'dead' ORDER BY seq DESC LIMIT ?) AS p
    CROSS JOIN holdfast_job AS j ON j.seq = p.seq GROUP BY 1 ORDER BY 2 DESC, 1"""
_SERVES = """SELECT DISTINCT queues, tasks FROM holdfast_worker
    WHERE role = 'worker' AND until > ? AND NOT draining"""
# Of max() in SQLite, the other columns are those of the row that has it.
_DIED = """SELECT count(*), name, ?1 - max(until), sum(rescued) FROM holdfast_worker
    WHERE until <= ?1 AND until > ?2 HAVING count(*) > 0"""
