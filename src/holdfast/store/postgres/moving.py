"""Give a queued job another time or priority."""

from __future__ import annotations

from holdfast.store import saga_verdicts
from holdfast.store.fairness import ONE
from holdfast.store.moving import Move, Place, place_after
from holdfast.store.postgres.locks import Keys
from holdfast.store.postgres.moves import Locked, lock_job
from holdfast.store.postgres.promotion import fill_windows, pass_on
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import Held, State


def move(job_id: str, wish: Move) -> Procedure[State | None]:
    met = yield from lock_job(job_id, "j.state = 'queued'")
    if not isinstance(met, Locked):
        return met
    rows = yield Statement(_FOUND, (job_id, wish.at, wish.delay))
    held, by_time, has_no_turn, due, queue, concurrency, tenant, has_slot, saga = rows[0]
    if saga is not None:
        raise saga_verdicts.refuse_move(job_id, saga)
    before = after = None if held is None else Held(held)
    if wish.is_timed:
        needs_turn = has_no_turn and by_time
        shares = needs_turn or concurrency is not None or tenant is not None
        after = place_after(Place(before, has_no_turn and not needs_turn, shares), due=due)
    yield Statement(
        _MOVE, (job_id, wish.at, wish.delay, wish.priority, after, before is not None and after is None)
    )
    if after is Held.TIME and before is not Held.TIME:
        if has_slot:
            yield from pass_on([Keys(None, concurrency)])
        if tenant is not None and before is None:
            yield from fill_windows([(queue, tenant)], window=ONE)
    return State.QUEUED


_AT = "coalesce(to_timestamp($2::float8), holdfast.now() + make_interval(secs => $3::float8))"
_FOUND = f"""
SELECT j.held, j.by_time, j.ordering_key IS NOT NULL AND NOT j.has_turn, coalesce({_AT} <= holdfast.now(), false), j.queue,
    j.concurrency_key, j.tenant, j.slot IS NOT NULL,
    (SELECT s.id FROM holdfast.saga s WHERE s.job_id = j.id AND s.finished_at IS NULL)
FROM holdfast.job j WHERE j.id = $1::uuid"""
_ENTRY = f"""jsonb_strip_nulls(jsonb_build_object('o', 'moved', 'e', date_part('epoch', holdfast.now()),
        'd', date_part('epoch', {_AT}), 'p', $4::smallint))"""
# Of what its guard holds still: without its key nobody would let it go.
_KEPT = f"CASE WHEN {_AT} IS NULL OR $5::text = 'guard' THEN j.{{}} END"
_MOVE = f"""
UPDATE holdfast.job j SET priority = coalesce($4::smallint, j.priority), held = $5::text,
    run_at = coalesce({_AT}, j.run_at), due_at = coalesce({_AT}, j.due_at), words = {_KEPT.format("words")},
    story = holdfast.tell(j.story, {_ENTRY}), waits_for = {_KEPT.format("waits_for")},
    slot = CASE WHEN $5::text = 'time' THEN NULL ELSE j.slot END,
    rank = CASE WHEN $6::bool THEN nextval('holdfast.rank') ELSE j.rank END
WHERE j.id = $1::uuid AND j.state = 'queued'"""
