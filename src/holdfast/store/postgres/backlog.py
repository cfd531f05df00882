"""What waits, for whom, and who is alive, for a diagnosis: no count goes on for ever."""

from __future__ import annotations

from collections import Counter
from typing import Any

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


async def backlog(connection: Any) -> Backlog:
    [(running, stuck)] = await connection.fetch(_RUNNING, STUCK_AFTER)
    oldest, undecided = (
        await connection.fetch(f"{OLDEST} LIMIT 1", SAMPLED),
        await connection.fetch(_UNDECIDED),
    )
    died = await connection.fetch(_DIED, DIED_LATELY)
    return Backlog(
        running=running,
        stuck=stuck,
        paused=[(row[0], row[1]) for row in await connection.fetch(_PAUSED, COUNTED) if row[1]],
        unknown=[(row[0], row[1]) for row in await connection.fetch(_UNKNOWN, COUNTED)],
        undecided=(undecided[0][0], undecided[0][1]) if undecided else None,
        oldest=(oldest[0][0], oldest[0][1]) if oldest else None,
        waiting=await _waiting(connection),
        dead=[Dead(*row) for row in await connection.fetch(_DEAD, COUNTED)],
        serves=read_serves(await connection.fetch(_SERVES)),
        alive=(await connection.fetch(_ALIVE))[0][0],
        died=Died(died[0][3], *died[0][:3]) if died else None,
    )


async def _waiting(connection: Any) -> list[tuple[str, str, int]]:
    """Some of each queue; of what nobody has looked at yet, or whose time has come, some of all."""
    found = Counter[tuple[str, str]]()
    for question in (_READY, _NOT_YET_READY):
        for queue, task, number in await connection.fetch(question, SAMPLED):
            found[queue, task] += number
    return [(queue, task, number) for (queue, task), number in found.items()]


_RUNNING = """
SELECT count(*), count(*) FILTER (WHERE lease_until < holdfast.now() - make_interval(secs => $1::float8))
FROM holdfast.job WHERE state = 'running'"""
# One probe of the index for each queue, however many jobs it has.
_QUEUES = """
WITH RECURSIVE q AS (
    (SELECT queue FROM holdfast.job WHERE state = 'queued' AND held IS NULL AND NOT suspect ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT n.queue FROM holdfast.job AS n
        WHERE n.state = 'queued' AND n.held IS NULL AND NOT n.suspect AND n.queue > q.queue ORDER BY n.queue LIMIT 1)
    FROM q WHERE q.queue IS NOT NULL),
chosen AS (SELECT queue FROM q WHERE queue IS NOT NULL AND queue NOT IN (SELECT name FROM holdfast.queue) LIMIT $1)"""
_READY = f"""{_QUEUES}
SELECT chosen.queue, j.task, count(*) FROM chosen CROSS JOIN LATERAL (
    SELECT task FROM holdfast.job WHERE queue = chosen.queue AND state = 'queued' AND held IS NULL AND NOT suspect LIMIT $1) AS j
GROUP BY 1, 2"""
# Of each priority, the first in its order has waited longest. The few suspects wait beside them.
OLDEST = f"""{_QUEUES}
SELECT chosen.queue, date_part('epoch', holdfast.now() - min(first.since)) FROM chosen CROSS JOIN LATERAL (
    WITH RECURSIVE p AS (
        (SELECT priority FROM holdfast.job AS j
            WHERE j.queue = chosen.queue AND j.state = 'queued' AND j.held IS NULL AND NOT j.suspect
            ORDER BY j.priority DESC LIMIT 1)
        UNION ALL
        SELECT (SELECT j.priority FROM holdfast.job AS j
            WHERE j.queue = chosen.queue AND j.state = 'queued' AND j.held IS NULL AND NOT j.suspect
                AND j.priority < p.priority
            ORDER BY j.priority DESC LIMIT 1)
        FROM p WHERE p.priority IS NOT NULL)
    SELECT (SELECT greatest(j.enqueued_at, j.run_at) FROM holdfast.job AS j
        WHERE j.queue = chosen.queue AND j.state = 'queued' AND j.held IS NULL AND NOT j.suspect
            AND j.priority = p.priority ORDER BY j.rank LIMIT 1) AS since
    FROM p WHERE p.priority IS NOT NULL
    UNION ALL
    (SELECT greatest(j.enqueued_at, j.run_at) FROM holdfast.job AS j
        WHERE j.queue = chosen.queue AND j.state = 'queued' AND j.held IS NULL AND j.suspect ORDER BY j.rank LIMIT 1)) AS first
GROUP BY 1 ORDER BY 2 DESC NULLS LAST"""
_NOT_YET_READY = """
SELECT queue, task, count(*) FROM (
    (SELECT queue, task FROM holdfast.job WHERE held = 'arrived' LIMIT $1)
    UNION ALL
    (SELECT queue, task FROM holdfast.job WHERE held = 'time' AND run_at <= holdfast.now() LIMIT $1)) AS j
WHERE queue NOT IN (SELECT name FROM holdfast.queue) GROUP BY 1, 2"""
_PAUSED = """
SELECT p.name, (SELECT count(*) FROM (SELECT 1 FROM holdfast.job AS j
    WHERE j.queue = p.name AND j.state = 'queued' AND j.held IS NULL AND NOT j.suspect LIMIT $1) AS c)
FROM holdfast.queue AS p ORDER BY 2 DESC, 1"""
_UNKNOWN = """
SELECT task, count(*) FROM (SELECT task FROM holdfast.job WHERE held = 'unknown_task' LIMIT $1) AS j
GROUP BY 1 ORDER BY 2 DESC, 1"""
_UNDECIDED = """
SELECT count(*), date_part('epoch', holdfast.now() - min(enqueued_at)) FROM holdfast.job WHERE state = 'unknown'
HAVING count(*) > 0"""
_DEAD = """
SELECT task, count(*), date_part('epoch', holdfast.now() - max(began)) FROM (
    SELECT task, coalesce(started_at, enqueued_at) AS began FROM holdfast.job WHERE state = 'dead' ORDER BY rank DESC LIMIT $1) AS j
GROUP BY 1 ORDER BY 2 DESC, 1"""
_SERVES = """
SELECT DISTINCT queues, tasks FROM holdfast.worker WHERE role = 'worker' AND until > holdfast.now() AND NOT draining"""
_ALIVE = "SELECT count(*) FROM holdfast.worker WHERE until > holdfast.now()"
_DIED = """
SELECT name, date_part('epoch', n.now - until), sum(rescued) OVER ()::bigint, count(*) OVER ()
FROM holdfast.worker CROSS JOIN (SELECT holdfast.now() AS now) AS n
WHERE until <= n.now AND until > n.now - make_interval(secs => $1::float8) ORDER BY until DESC LIMIT 1"""
