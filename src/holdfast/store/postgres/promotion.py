"""From held to ready: look at what is taken of the keys, let the ladder decide, write the decision.

The keys are locked by whoever calls this (see locks), so the facts cannot change between looking and writing.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.ladder import Facts, Rung, Waiting, climb
from holdfast.store.postgres.locks import Keys
from holdfast.store.postgres.rows import WAITING, same_id, to_waiting
from holdfast.store.statements import Procedure, Statement

WINDOW = 100  # ready jobs of one tenant in one queue, when the caller does not say
CHUNK = 100  # jobs with keys in one transaction: each key is a lock in the server's one lock table


def pass_on(keys: Sequence[Keys], *, window: int = WINDOW) -> Procedure[int]:
    """Promote whoever waits for these keys: the next in order, and one for each free slot. Returns how many are ready."""
    orders = sorted({key.ordered for key in keys if key.ordered is not None})
    slots = sorted({key.concurrency for key in keys if key.concurrency is not None})
    found: dict[str, Waiting] = {}
    for sql, names in ((_NEXT_IN_ORDER, orders), (_NEXT_FOR_SLOTS, slots)):
        if names:
            rows = yield Statement(sql, (names,))
            found |= {row[0]: to_waiting(row) for row in rows}
    waiting = list(found.values())
    facts = yield from look_at(waiting, behind=False)
    return (yield from apply(climb(waiting, facts, window=window)))


# These wait for a row's lock instead of skipping it: skipping the first in order would let the second overtake it.
_NEXT_IN_ORDER = f"""
WITH free AS MATERIALIZED (
    SELECT k.key FROM unnest($1::text[]) AS k(key)
    WHERE NOT EXISTS (SELECT FROM holdfast.job t WHERE t.ordering_key = k.key AND t.has_turn))
SELECT {WAITING} FROM free CROSS JOIN LATERAL (
    SELECT * FROM holdfast.job j WHERE j.ordering_key = free.key AND j.held = 'ordering'
    ORDER BY j.rank LIMIT 1 FOR UPDATE) w"""
_NEXT_FOR_SLOTS = f"""
WITH free AS MATERIALIZED (
    SELECT k.key, h.most - (
        SELECT count(*) FROM holdfast.job t WHERE t.concurrency_key = k.key AND t.slot IS NOT NULL) AS number
    FROM unnest($1::text[]) AS k(key) CROSS JOIN LATERAL (
        SELECT j.concurrency_limit AS most FROM holdfast.job j
        WHERE j.concurrency_key = k.key AND j.held = 'concurrency' ORDER BY j.priority DESC, j.rank LIMIT 1) h)
SELECT {WAITING} FROM free CROSS JOIN LATERAL (
    SELECT * FROM holdfast.job j WHERE j.concurrency_key = free.key AND j.held = 'concurrency'
    ORDER BY j.priority DESC, j.rank LIMIT greatest(free.number, 0) FOR UPDATE) w"""


def look_at(waiting: Sequence[Waiting], *, behind: bool) -> Procedure[Facts]:
    """What is taken of the keys of these jobs.

    `behind`: a turn is taken too when an earlier job waits for it, and a window is full when one waits for that.
    """
    orders = (
        {job.ordered for job in waiting if job.ordered is not None and not job.has_turn} if behind else ()
    )
    slots = {job.concurrency for job in waiting if job.concurrency is not None}
    places = sorted({(job.queue, job.tenant) for job in waiting if job.tenant is not None})
    facts = Facts()
    if not (orders or slots or places):
        return facts
    queues, tenants = [queue for queue, _ in places], [tenant for _, tenant in places]
    params = (sorted(orders), sorted(slots), queues, tenants, behind)
    stopped: list[str] = []
    for kind, name, tenant, number in (yield Statement(_FACTS, params)):
        if kind == "turn":
            facts.turns.add(name)
        elif kind == "slot":
            facts.slots.setdefault(name, set()).add(number)
        elif kind == "ready":
            facts.ready[name, tenant] = number
        elif kind == "line":
            facts.lines.add((name, tenant))
        else:
            stopped.append(name)
    if stopped:
        yield from _keep_stopped(stopped, facts)
    return facts


def _keep_stopped(stopped: Sequence[str], facts: Facts) -> Procedure[None]:
    """With their rows locked, so that none is forgotten before the jobs that are held for it can be seen.

    One that another has just now is taken for running: what is ready of it is not claimed while it is paused.
    """
    sql = "SELECT key, resumed_at IS NULL FROM holdfast.tenant WHERE key = ANY($1::text[]) FOR SHARE SKIP LOCKED"
    for key, is_paused in (yield Statement(sql, (sorted(set(stopped)),))):
        (facts.paused if is_paused else facts.resumed).add(key)


_FACTS = """
SELECT 'turn', k.key, NULL::text, 0 FROM unnest($1::text[]) AS k(key)
    WHERE EXISTS (SELECT FROM holdfast.job j WHERE j.ordering_key = k.key AND j.has_turn)
        OR EXISTS (SELECT FROM holdfast.job j WHERE j.ordering_key = k.key AND j.held = 'ordering')
UNION ALL
SELECT 'slot', j.concurrency_key, NULL, j.slot FROM holdfast.job j
    WHERE j.concurrency_key = ANY($2::text[]) AND j.slot IS NOT NULL
UNION ALL
SELECT 'ready', p.queue, p.tenant, count(j.id)::int
    FROM unnest($3::text[], $4::text[]) AS p(queue, tenant) JOIN holdfast.job j
        ON j.queue = p.queue AND j.tenant = p.tenant AND j.tenant IS NOT NULL AND j.state = 'queued' AND j.held IS NULL
    GROUP BY 1, 2, 3
UNION ALL
SELECT 'line', p.queue, p.tenant, 0 FROM unnest($3::text[], $4::text[]) AS p(queue, tenant) WHERE $5::bool AND EXISTS (
    SELECT FROM holdfast.job j WHERE j.queue = p.queue AND j.tenant = p.tenant AND j.held = 'tenant')
UNION ALL
SELECT 'stopped', t.key, NULL, 0 FROM holdfast.tenant t WHERE t.key = ANY($4::text[])"""


def apply(steps: Sequence[Rung]) -> Procedure[int]:
    """Write the decisions; returns how many became ready.

    Those, and the others whose time has come, are served after what was there before them.
    """
    if steps:
        columns = (
            [step.job_id for step in steps],
            [None if step.held is None else step.held.value for step in steps],
            [step.has_turn for step in steps],
            [step.slot for step in steps],
            [step.goes_last for step in steps],
        )
        yield Statement(_APPLY, columns)
    return sum(step.held is None for step in steps)


_APPLY = f"""
WITH steps AS MATERIALIZED (
    SELECT s.*, CASE WHEN s.goes_last THEN nextval('holdfast.rank') END AS rank
    FROM unnest($1::uuid[], $2::text[], $3::bool[], $4::int[], $5::bool[]) AS s(id, held, has_turn, slot, goes_last))
UPDATE holdfast.job j SET held = s.held, has_turn = s.has_turn, slot = s.slot, rank = coalesce(s.rank, j.rank)
FROM steps s WHERE {same_id("s")} AND j.state = 'queued'"""


def fill_windows(places: Sequence[tuple[str, str]], *, window: int) -> Procedure[int]:
    """Make jobs of these tenants ready until each has `window` ready ones, unless it is paused."""
    if not places:
        return 0
    rows = yield Statement(_FILL, ([queue for queue, _ in places], [tenant for _, tenant in places], window))
    return len(rows)


# No lock on the tenant: two at once may exceed the window a little, and a window is a share, not a limit.
_FILL = f"""
WITH next AS MATERIALIZED (
    SELECT w.id, nextval('holdfast.rank') AS rank FROM (
        SELECT g.* FROM unnest($1::text[], $2::text[]) AS g(queue, tenant)
        WHERE NOT EXISTS (SELECT FROM holdfast.tenant t WHERE t.key = g.tenant AND t.resumed_at IS NULL)) p
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM holdfast.job r WHERE r.queue = p.queue AND r.tenant = p.tenant
            AND r.tenant IS NOT NULL AND r.state = 'queued' AND r.held IS NULL) ready
    CROSS JOIN LATERAL (
        SELECT h.id FROM holdfast.job h WHERE h.queue = p.queue AND h.tenant = p.tenant AND h.held = 'tenant'
        ORDER BY h.priority DESC, h.rank LIMIT greatest($3::int - ready.number, 0) FOR UPDATE SKIP LOCKED) w)
UPDATE holdfast.job j SET held = NULL, rank = next.rank FROM next WHERE {same_id("next")} RETURNING j.id::text"""
