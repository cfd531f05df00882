"""End one job that has its turn in an order, and pass the turn on, in one statement: most deliveries end so."""

from __future__ import annotations

from holdfast.kernel.outcomes import Done
from holdfast.store.postgres.doubts import HAS_STEPS
from holdfast.store.postgres.locks import Keys, lock_chain, lock_order
from holdfast.store.postgres.promotion import pass_on
from holdfast.store.postgres.rows import MOVED, MOVED_J, held_by
from holdfast.store.records import Finish
from holdfast.store.statements import Procedure, Statement


def is_in_order(item: Finish) -> bool:
    """Whether it simply ends, and only the next in its order may wait for it."""
    claim = item.claim
    return (
        type(item.outcome) is Done
        and claim.ordered is not None
        and claim.concurrency is None
        and not claim.has_steps
    )


def finish_in_order(item: Finish, *, plans: bool = False) -> Procedure[bool]:
    """False: it was not written, because the claim was lost or the job has steps after all. `plans`: see `lock_order`."""
    claim, keys = item.claim, Keys(item.claim.ordered, None)
    result = item.outcome.result if isinstance(item.outcome, Done) else None
    yield from lock_order(keys, plans=plans)
    rows = yield Statement(_FINISH, (claim.job_id, claim.token, result))
    for (is_needy,) in rows:
        if is_needy:
            yield from lock_chain([keys])
            yield from pass_on([keys])
    return bool(rows)


# The next in the order gets the turn here, unless it needs more than that: a slot, a place in its tenant's window, or time.
_FINISH = f"""
WITH gone AS (
    DELETE FROM holdfast.job j USING (VALUES ($1::uuid, $2::bigint, $3::text)) AS g(id, token, result)
    WHERE {held_by("g")} AND NOT {HAS_STEPS}
    RETURNING {MOVED_J}, g.result),
kept AS (
    INSERT INTO holdfast.history ({MOVED}, state, finished_at, result)
    SELECT {MOVED}, 'succeeded', (SELECT holdfast.now()), result FROM gone),
next AS MATERIALIZED (
    SELECT w.* FROM gone CROSS JOIN LATERAL (
        SELECT j.id, j.concurrency_key IS NOT NULL OR j.tenant IS NOT NULL
            OR coalesce(j.run_at > holdfast.now(), false) AS is_needy
        FROM holdfast.job j
        WHERE j.ordering_key = gone.ordering_key AND j.held = 'ordering' ORDER BY j.rank LIMIT 1 FOR UPDATE) w
    WHERE NOT EXISTS (
        SELECT FROM holdfast.job t WHERE t.ordering_key = gone.ordering_key AND t.has_turn AND t.id <> gone.id)),
promoted AS (
    UPDATE holdfast.job j SET held = NULL, has_turn = true, rank = nextval('holdfast.rank')
    FROM next WHERE j.id = next.id AND NOT next.is_needy)
SELECT coalesce((SELECT is_needy FROM next), false) FROM gone"""
