"""From rows to records. Ids come as text and times as seconds, so that every driver hands over the same values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdfast.store.ladder import Waiting
from holdfast.store.records import AttemptError, Claim, JobRecord
from holdfast.store.states import Held, State

# Looked up only of the few that have a guard and steps.
IS_DECIDED = """CASE WHEN j.guard IS NOT NULL AND j.steps_of = j.generation THEN EXISTS (SELECT FROM holdfast.step d
    WHERE d.job_id = j.id AND d.generation = j.generation AND d.progress = 'resolved') ELSE false END"""
# In the order of Claim's fields, and what its place among others is decided by.
CLAIM = f"""j.id::text, j.token, date_part('epoch', j.lease_until), j.task, j.queue, j.args, j.attempt,
    j.interruptions, j.alone, date_part('epoch', j.enqueued_at), j.generation, date_part('epoch', j.deadline),
    j.ordering_key, j.concurrency_key, j.tenant, j.guard, j.correlation_id, j.causation_id, j.trace, j.unique_key,
    coalesce(j.steps_of = j.generation, false), {IS_DECIDED}, j.put_offs,
    CASE WHEN j.run_at > j.enqueued_at THEN date_part('epoch', j.run_at) END"""
# In the order of Waiting's fields.
WAITING = """w.id::text, w.queue, coalesce(w.run_at <= holdfast.now(), true), w.ordering_key, w.has_turn,
    w.concurrency_key, w.concurrency_limit, w.slot, w.tenant, w.held, w.by_time"""
# Moved to the history as they are.
_MOVED = (
    "id, token, enqueued_at, started_at, attempt, interruptions, generation, priority, task, queue, args, worker, "
    "errors, unique_key, ordering_key, concurrency_key, tenant, guard, correlation_id, causation_id, trace, steps_of, "
    "due_at, story"
)
MOVED = _MOVED
MOVED_J = ", ".join(f"j.{name.strip()}" for name in _MOVED.split(","))
_SHARED = """{t}.id::text, {t}.task, {t}.queue, {t}.args, {t}.state, {t}.priority, {t}.attempt, {t}.interruptions,
    {t}.token, {t}.worker, date_part('epoch', {t}.enqueued_at), date_part('epoch', {t}.started_at), {reason},
    {t}.errors::text, {t}.unique_key, {t}.ordering_key, {t}.concurrency_key, {t}.tenant, {t}.guard,
    {t}.correlation_id, {t}.causation_id, {t}.trace, {t}.generation, date_part('epoch', {t}.due_at)"""
# In the order that `to_record` reads; both have the same columns, so that they can be one answer.
_PUT_OFF = "CASE WHEN j.held IN ('time', 'guard') THEN j.words ELSE j.reason END"
LIVE = f"""{_SHARED.format(t="j", reason=_PUT_OFF)}, j.held, j.strikes, j.suspect, date_part('epoch', j.lease_until),
    date_part('epoch', j.run_at), date_part('epoch', j.expires_at), date_part('epoch', j.deadline),
    NULL::float8, NULL::text, j.progress, j.note, date_part('epoch', j.look_at)"""
OVER = f"""{_SHARED.format(t="h", reason="h.reason")}, NULL::text, 0, false, NULL::float8,
    NULL::float8, NULL::float8, NULL::float8,
    date_part('epoch', h.finished_at), h.result, NULL::float8, NULL::text, NULL::float8"""


def same_id(given: str, job: str = "j") -> str:
    """The jobs with the ids of `given`, looked up one by one in job_pkey: written so, no other plan is possible.

    Written as `j.id = g.id`, the planner also weighs walking through all jobs and looking for each in the given ones.
    It takes that for cheap when its statistics say that next to no job fits, as they do after ANALYZE while nothing ran.
    """
    return f"{job}.id = ANY(ARRAY[{given}.id])"


def one_by_one(subquery: str) -> str:
    """A subquery of EXISTS or LATERAL that is asked anew for each row around it, and so by the index of what it compares.

    Else it is a join to the planner. Its statistics of an empty table, and its guess of ten for any number of given rows, make it
    walk through all jobs for each of them. OFFSET forbids that; with LIMIT, EXISTS would be a join all the same.
    """
    return f"{subquery} OFFSET 0"


def held_by(given: str) -> str:
    """Running, and by the token of `given`. CASE, because the planner must not guess how many jobs run."""
    return f"{same_id(given)} AND CASE WHEN j.lease_until IS NOT NULL THEN j.token = {given}.token END"


def one_story(table: str, order: str, place: int) -> tuple[str, str]:
    """What has this correlation id, and the order, newest first, that only the index of these ids has.

    With `=`, any index with the order of the rest would do, and the planner would walk through all of it.
    """
    column = f"{table}.correlation_id"
    given = f"${place}::text"
    return f"{column} >= {given} AND {column} <= {given}", f"{column} DESC, {table}.{order} DESC"


# A condition that is true, and makes a statement of its own wait no longer than a moment for a lock: it is evaluated
# before anything is locked, and the setting ends with the statement's transaction.
SOON = "(SELECT set_config('lock_timeout', '200ms', true)) IS NOT NULL"


_errors = msgspec.json.Decoder(tuple[AttemptError, ...])


def to_claims(rows: Sequence[Sequence[Any]], queues: Iterable[str]) -> list[Claim]:
    """Rows of CLAIM, priority and rank; RETURNING promises no order, so it is made here: that of the queues first."""
    places = {queue: place for place, queue in enumerate(queues)}

    def place(row: Sequence[Any]) -> tuple[int, int, int]:
        return places[row[4]], -row[-2], row[-1]

    return [Claim(*row[:-2]) for row in sorted(rows, key=place)]


def to_waiting(row: Sequence[Any]) -> Waiting:
    return Waiting(*row)


def to_record(row: Sequence[Any]) -> JobRecord:
    return JobRecord(
        id=row[0],
        task=row[1],
        queue=row[2],
        args=row[3],
        state=State(row[4]),
        priority=row[5],
        attempt=row[6],
        interruptions=row[7],
        token=row[8],
        worker=row[9],
        enqueued_at=row[10],
        started_at=row[11],
        reason=row[12],
        errors=() if row[13] is None else _errors.decode(row[13]),
        unique=row[14],
        ordered=row[15],
        concurrency=row[16],
        tenant=row[17],
        guard=row[18],
        correlation_id=row[19],
        causation_id=row[20],
        trace=row[21],
        generation=row[22],
        due_at=row[23],
        held=None if row[24] is None else Held(row[24]),
        strikes=row[25],
        suspect=row[26],
        lease_until=row[27],
        run_at=row[28],
        expires_at=row[29],
        deadline=row[30],
        finished_at=row[31],
        result=row[32],
        progress=row[33],
        note=row[34],
        look_at=row[35],
    )
