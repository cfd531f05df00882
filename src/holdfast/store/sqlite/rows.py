"""Which columns make which record, and the way from one to the other."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from holdfast.store.ladder import Waiting
from holdfast.store.records import AttemptError, Claim, JobRecord
from holdfast.store.states import Held, State

Row: TypeAlias = tuple[Any, ...]

# Looked up only of the few that have a guard and steps.
IS_DECIDED = (
    "CASE WHEN j.guard IS NOT NULL AND j.steps_of = j.generation THEN EXISTS (SELECT 1 FROM holdfast_step AS d "
    "WHERE d.seq = j.seq AND d.generation = j.generation AND d.progress = 'resolved') ELSE 0 END"
)
# The fields of a Claim after its token and lease; `attempt` and `alone` come from the row of the state.
CLAIM = (
    "j.task, j.queue, j.args, {attempt}, j.interruptions, {alone}, j.enqueued_at, j.generation, j.deadline, "
    "j.ordering_key, j.concurrency_key, j.tenant, j.guard, j.correlation_id, j.causation_id, j.trace, "
    f"j.unique_key, coalesce(j.steps_of = j.generation, 0), {IS_DECIDED}, j.put_offs, {{due}}, j.seq"
)
# The fields of a Waiting; `:now` is the database's clock.
WAITING = (
    "SELECT j.id, j.queue, coalesce(q.run_at, 0) <= :now, j.ordering_key, "
    "EXISTS (SELECT 1 FROM holdfast_turn AS t WHERE t.key = j.ordering_key AND t.seq = j.seq), "
    "j.concurrency_key, j.concurrency_limit, "
    "(SELECT s.slot FROM holdfast_slot AS s WHERE s.key = j.concurrency_key AND s.seq = j.seq), j.tenant, q.held, j.by_time, "
    "j.seq, q.rank FROM holdfast_queued AS q CROSS JOIN holdfast_job AS j ON j.seq = q.seq"
)
# The fields of a JobRecord. What is over has only what a history needs.
RECORD = """
    SELECT j.id, j.task, j.queue, j.args,
        CASE WHEN q.seq IS NOT NULL THEN 'queued' WHEN r.seq IS NOT NULL THEN 'running'
            ELSE coalesce(p.state, o.state) END AS state,
        q.held AS held, j.priority, coalesce(q.attempt, r.attempt, p.attempt, o.attempt), j.interruptions,
        iif(o.seq IS NULL, j.strikes, 0), o.seq IS NULL AND j.interruptions > 0,
        coalesce(q.token, r.token, p.token, o.token), r.lease_until, coalesce(r.worker, p.worker, o.worker),
        q.run_at, iif(o.seq IS NULL, j.expires_at, NULL), iif(o.seq IS NULL, j.deadline, NULL), j.enqueued_at,
        coalesce(r.started_at, p.started_at, o.started_at), o.finished_at,
        coalesce(r.stop, p.reason, o.reason, iif(q.held IN ('time', 'guard'), q.reason, NULL)), o.result, j.errors, j.unique_key, j.ordering_key, j.concurrency_key,
        j.tenant, j.guard, j.correlation_id, j.causation_id, j.trace, j.generation, r.progress, r.note, j.due_at, p.look_at
    FROM holdfast_job AS j
    LEFT JOIN holdfast_queued AS q ON q.seq = j.seq
    LEFT JOIN holdfast_running AS r ON r.seq = j.seq
    LEFT JOIN holdfast_parked AS p ON p.seq = j.seq
    LEFT JOIN holdfast_over AS o ON o.seq = j.seq"""

_FIELDS = JobRecord.__struct_fields__[:-1]  # without the last, which is asked for by another verb
_errors = msgspec.json.Decoder(tuple[AttemptError, ...])


def to_claim(row: Row, token: int, lease_until: float) -> Claim:
    kept = (*row[7:-5], bool(row[-5]), bool(row[-4]), *row[-3:])
    return Claim(row[0], token, lease_until, *row[1:6], bool(row[6]), *kept)  # type: ignore[call-arg]


def to_waiting(row: Row) -> Waiting:
    job_id, queue, due, ordered, has_turn, concurrency, limit, slot, tenant, was, by_time, *rest = row
    keys = (concurrency, limit, slot, tenant)
    return Waiting(job_id, queue, bool(due), ordered, bool(has_turn), *keys, was, bool(by_time), *rest)


def to_record(row: Row) -> JobRecord:
    values = dict(zip(_FIELDS, row, strict=True))
    values["state"] = State(values["state"])
    values["held"] = None if values["held"] is None else Held(values["held"])
    values["suspect"] = bool(values["suspect"])
    values["errors"] = () if values["errors"] is None else _errors.decode(values["errors"])
    return JobRecord(**values)
