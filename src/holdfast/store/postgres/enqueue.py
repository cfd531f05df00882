"""Store new jobs: in one statement, whatever they ask for. Ids are minted by the caller, so repeating is safe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast.kernel.errors import StoreUnavailable, TooManyWaiting
from holdfast.store.postgres.locks import nobody_in
from holdfast.store.postgres.replacing import look, meet
from holdfast.store.postgres.rows import SOON, one_by_one
from holdfast.store.records import UNBOUNDED, Enqueued, NewJob, Standing
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import State
from holdfast.store.turns import turns

_LOOKS = 10  # for the holder of a unique key that ends just as we look for it


def is_single(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement is enough, so that it needs no transaction around it."""
    return len(jobs) <= 1 or all(job.unique is None for job in jobs)


def is_plain(jobs: Sequence[NewJob]) -> bool:
    """Whether all of them are ready at once and have nothing that must be looked at."""
    return all(job.is_plain for job in jobs)


def enqueue(
    jobs: Sequence[NewJob], *, again: bool = False, impatient: bool = False
) -> Procedure[list[Enqueued]]:
    """Store all of them, or raise and store none. Two jobs with one unique key: the first is stored.

    `impatient`: who would wait for another's lock is blocked instead, after a moment.
    """
    if not again and is_plain(jobs):
        if len(jobs) == 1:
            yield Statement(_ONE[impatient], _plain_row(jobs[0]))
        elif jobs:
            yield Statement(_PLAIN[impatient], plain_columns(jobs))
        return [Enqueued(job.id, True) for job in jobs]
    first: dict[str, NewJob] = {}
    for job in jobs:
        if job.unique is not None:
            first.setdefault(job.unique, job)
    once = [job for job in jobs if job.unique is None or first[job.unique] is job]
    stands = yield from _replace(once)
    left = [job for job in once if job.id not in stands]
    for _ in range(_LOOKS):
        if not left:
            break
        holders = yield from _store(left, again=again, impatient=impatient)
        taken = [job for job in left if holders.get(job.id, job.id) != job.id]
        stands |= yield from _look([job for job in taken if not job.replace], holders)
        stands |= yield from _replace(taken)  # what was taken after we looked
        left = [job for job in taken if job.id not in stands]
    if left:
        raise _busy(left[0])
    return [_answer(job, job if job.unique is None else first[job.unique], stands) for job in jobs]


def _answer(job: NewJob, chosen: NewJob, stands: Mapping[str, Standing]) -> Enqueued:
    """`chosen`: the first with its key in this call."""
    standing = stands.get(chosen.id)
    if standing is None and chosen is not job:
        standing = Standing(chosen.id, State.QUEUED, chosen.at)
    return Enqueued(chosen.id if standing is None else standing.id, standing is None, standing)


def _replace(jobs: Sequence[NewJob]) -> Procedure[dict[str, Standing]]:
    """By id, what stands under the keys of those that would replace it. In the order of the keys, as everyone locks them."""
    stands: dict[str, Standing] = {}
    for job in sorted((job for job in jobs if job.replace), key=lambda job: job.unique or ""):
        met = yield from meet(job)
        if met is not None and met.id != job.id:
            stands[job.id] = met
    return stands


def _look(jobs: Sequence[NewJob], holders: Mapping[str, str]) -> Procedure[dict[str, Standing]]:
    stands: dict[str, Standing] = {}
    for job in jobs:
        if (found := (yield from look(holders[job.id]))) is not None:
            stands[job.id] = found
    return stands


def _store(jobs: Sequence[NewJob], *, again: bool, impatient: bool) -> Procedure[Mapping[str, str]]:
    """Returns the holders of unique keys that were taken, by the id of the job that wanted it."""
    holders: dict[str, str] = {}
    left = list(jobs)
    for _ in range(_LOOKS):
        stored, found = yield from _insert(left, again=again, impatient=impatient)
        holders |= {job.id: found[job.id] for job in left if job.id not in stored and job.id in found}
        # The holder was committed after our statement began, or it has ended since.
        left = [job for job in left if job.unique and job.id not in stored and job.id not in holders]
        if left:
            rows = yield Statement(_HOLDERS, ([job.id for job in left], [job.unique for job in left]))
            holders |= {row[0]: row[1] for row in rows}
            left = [job for job in left if job.id not in holders]
        if not left:
            return holders
    raise _busy(left[0])


def _busy(job: NewJob) -> StoreUnavailable:
    return StoreUnavailable(
        f"The unique key {job.unique!r} was taken and freed {_LOOKS} times while the job was being stored. "
        "Nothing was stored; try again."
    )


def _insert(
    jobs: Sequence[NewJob], *, again: bool, impatient: bool
) -> Procedure[tuple[set[str], dict[str, str]]]:
    unique = any(job.unique is not None for job in jobs)
    bounded = any(job.max_waiting is not None for job in jobs)
    sql = _insert_sql(unique=unique, bounded=bounded, again=again, impatient=impatient)
    rows = yield Statement(sql, _columns(jobs))
    _refuse_crowd([row for row in rows if row[0] == "refused"])
    stored = {row[1] for row in rows if row[0] == "stored"}
    if again and stored:
        # The first try was stored and has ended between our look into the history and our insert: one is enough.
        yield Statement(_UNDO_REPEATED, (sorted(stored),))
    holders = {row[1]: row[2] for row in rows if row[0] == "holder"}
    return stored, holders | {row[1]: row[1] for row in rows if row[0] == "here"}


def enqueue_in_turn(jobs: Sequence[NewJob], free: Collection[str]) -> Procedure[bool]:
    """Store jobs without unique keys; whether promote must look at any of them.

    `free`: orders that the caller has locked because nobody seemed to be in them. The first job of one that still is so has its
    turn at once, and those behind it wait for that.
    """
    bounded = any(job.max_waiting is not None and job.max_waiting < UNBOUNDED for job in jobs)
    sql = _insert_sql(unique=False, bounded=bounded, again=False, impatient=False, turns=True)
    rows = yield Statement(sql, (*_columns(jobs), turns(jobs, free)))
    _refuse_crowd([row for row in rows if row[0] == "refused"])
    return any(row[2] == "arrived" for row in rows)


def _refuse_crowd(refused: Sequence[Sequence[Any]]) -> None:
    for _, task, _, new, waiting, limit in refused:
        raise TooManyWaiting(
            f"Task {task!r} has {waiting} jobs waiting and may have {limit} (max_waiting); "
            f"{new} more were refused and nothing was stored. Try again later, or raise max_waiting."
        )


# Ready at once: half of the columns, and the shortest way.
PLAIN = ("id", "task", "queue", "args", "priority", "generation", "correlation_id", "causation_id", "trace")
_PLAIN = {
    impatient: f"""
INSERT INTO holdfast.job ({", ".join(PLAIN)})
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::int[],
    $7::text[], $8::text[], $9::text[]) WHERE {SOON if impatient else "true"}
ON CONFLICT (id) DO NOTHING"""
    for impatient in (False, True)
}


# A single one is most of what callers ask for, and arrays of one cost both sides an eighth of the whole call.
_ONE = {
    impatient: f"""
INSERT INTO holdfast.job ({", ".join(PLAIN)})
SELECT $1::uuid, $2::text, $3::text, $4::text, $5::smallint, $6::int, $7::text, $8::text, $9::text
WHERE {SOON if impatient else "true"}
ON CONFLICT (id) DO NOTHING"""
    for impatient in (False, True)
}


# The same, and the news of it comes with its commit. Commits with a NOTIFY wait for each other, across all databases of a
# server: so only who finds nobody else at it does this, and the others tell afterwards (see wakeups).
_ONE_AND_TELL = f"""
{_ONE[True]}
RETURNING CASE WHEN pg_try_advisory_xact_lock($10::bigint) THEN pg_notify($11::text, $12::text)::text END"""


def enqueue_and_tell(job: NewJob, lock: int, channel: str, payload: str) -> Procedure[bool]:
    """Store one plain job; whether it was told of."""
    rows = yield Statement(_ONE_AND_TELL, (*_plain_row(job), lock, channel, payload))
    return bool(rows) and rows[0][0] is not None


def _plain_row(job: NewJob) -> tuple[Any, ...]:
    return (
        job.id, job.task, job.queue, job.args, job.priority, job.generation,
        job.correlation_id, job.causation_id, job.trace,
    )  # fmt: skip


def plain_columns(jobs: Sequence[NewJob]) -> tuple[list[Any], ...]:
    return (
        [job.id for job in jobs],
        [job.task for job in jobs],
        [job.queue for job in jobs],
        [job.args for job in jobs],
        [job.priority for job in jobs],
        [job.generation for job in jobs],
        [job.correlation_id for job in jobs],
        [job.causation_id for job in jobs],
        [job.trace for job in jobs],
    )


def _columns(jobs: Sequence[NewJob]) -> tuple[list[Any], ...]:
    return (
        *plain_columns(jobs),
        [job.delay for job in jobs],
        [job.at for job in jobs],
        [job.expires for job in jobs],
        [job.deadline for job in jobs],
        [job.unique for job in jobs],
        [job.ordered for job in jobs],
        [job.concurrency for job in jobs],
        [job.concurrency_limit for job in jobs],
        [job.tenant for job in jobs],
        [job.guard for job in jobs],
        [job.max_waiting for job in jobs],
        [job.within for job in jobs],
        [job.by_time for job in jobs],
    )


# Ranks are drawn in the caller's order, then rows are stored in the order of their unique keys:
# two callers with the same keys wait for each other in one order.
_GIVEN = """
given AS MATERIALIZED (
    SELECT g.*, {free} AS is_free, nextval('holdfast.rank') AS rank, clock.now,
        CASE WHEN g.delay > 0 THEN clock.now + make_interval(secs => g.delay) ELSE to_timestamp(g.at) END AS run_at
    FROM (SELECT holdfast.now() AS now) clock, unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[],
        $6::int[], $7::text[], $8::text[], $9::text[], $10::float8[], $11::float8[], $12::float8[], $13::float8[],
        $14::text[], $15::text[], $16::text[], $17::int[], $18::text[], $19::text[], $20::int[],
        $21::float8[], $22::bool[]{turns})
    AS g(id, task, queue, args, priority, generation, correlation_id, causation_id, trace, delay, at, expires, deadline,
        unique_key, ordering_key, concurrency_key, concurrency_limit, tenant, guard, max_waiting, within,
        by_time{turn}))"""
_PLAIN_GIVEN = _GIVEN.format(free="false", turns="", turn="")
_GIVEN_IN_TURN = _GIVEN.format(
    free=f"g.turn IS NOT NULL AND {nobody_in('g.ordering_key')}", turns=", $23::bool[]", turn=", turn"
)
# Whatever the statistics say, each is looked up by its index: see `one_by_one`.
_HOLDER = one_by_one(
    "SELECT j.id FROM holdfast.job j WHERE j.unique_key = g.unique_key AND j.unique_key IS NOT NULL AND j.state <> 'dead'"
)
_HERE = f"EXISTS ({one_by_one('SELECT FROM holdfast.job j WHERE j.id = g.id')})"
_OVER = f"EXISTS ({one_by_one('SELECT FROM holdfast.history h WHERE h.id = g.id')})"
_REFUSED = f"""
refused AS MATERIALIZED (
    SELECT * FROM (
        SELECT g.task, count(DISTINCT g.id) AS new, min(g.max_waiting) AS most, (
            SELECT count(*) FROM holdfast.job j WHERE j.bounded AND j.state = 'queued' AND j.task = g.task) AS waiting
        FROM given g WHERE g.max_waiting IS NOT NULL
            AND NOT {_HERE} AND NOT EXISTS ({_HOLDER}){{known}}
        GROUP BY g.task) crowd
    WHERE new + waiting > most)"""


# Nothing begins after it, so what has not begun by then has expired.
_DEADLINE = "least(to_timestamp(g.deadline), g.now + make_interval(secs => g.within))"


@cache
def _insert_sql(*, unique: bool, bounded: bool, again: bool, impatient: bool, turns: bool = False) -> str:
    parts, tests = [_GIVEN_IN_TURN if turns else _PLAIN_GIVEN], [SOON if impatient else "true"]
    answers = ["SELECT 'stored', id::text, held, 0::bigint, 0::bigint, 0 FROM stored"]
    if bounded:
        parts.append(_REFUSED.format(known=f" AND NOT {_OVER}" if again else ""))
        tests.append("NOT EXISTS (SELECT FROM refused)")
        answers.append("SELECT 'refused', task, NULL, new, waiting, most FROM refused")
    if again:
        tests.append(f"NOT {_OVER}")
        answers.append(f"SELECT 'here', g.id::text, NULL, 0, 0, 0 FROM given g WHERE {_OVER}")
    if unique:
        answers.append(f"SELECT 'here', g.id::text, NULL, 0, 0, 0 FROM given g WHERE {_HERE}")
        answers.append(
            f"SELECT 'holder', g.id::text, h.id::text, 0, 0, 0 FROM given g CROSS JOIN LATERAL ({_HOLDER}) h"
        )
    parts.append(f"""
stored AS (
    INSERT INTO holdfast.job (id, task, queue, args, priority, generation, correlation_id, causation_id, trace, rank,
        enqueued_at, run_at, expires_at, deadline, unique_key, ordering_key, concurrency_key, concurrency_limit,
        tenant, guard, bounded, by_time, has_turn, held, due_at)
    SELECT g.id, g.task, g.queue, g.args, g.priority, g.generation, g.correlation_id, g.causation_id, g.trace, g.rank,
        g.now, g.run_at, least(g.now + make_interval(secs => g.expires), {_DEADLINE}), {_DEADLINE}, g.unique_key,
        g.ordering_key, g.concurrency_key, g.concurrency_limit, g.tenant, g.guard, g.max_waiting IS NOT NULL, g.by_time,
        {"g.is_free AND g.turn" if turns else "false"},
        CASE {"WHEN g.is_free THEN CASE WHEN NOT g.turn THEN 'ordering' END" if turns else ""}
            WHEN g.run_at > g.now AND (g.ordering_key IS NULL OR g.by_time) THEN 'time'
            WHEN coalesce(g.ordering_key, g.concurrency_key, g.tenant) IS NOT NULL THEN 'arrived' END,
        g.run_at
    FROM given g WHERE {" AND ".join(tests)} {"ORDER BY g.unique_key" if unique else ""}
    ON CONFLICT {"" if unique else "(id)"} DO NOTHING RETURNING id, held)""")
    return f"WITH {', '.join(parts)} {' UNION ALL '.join(answers)}"


_HOLDERS = f"""
SELECT g.id::text, h.id::text FROM unnest($1::uuid[], $2::text[]) AS g(id, unique_key) CROSS JOIN LATERAL (
    SELECT j.id FROM holdfast.job j WHERE j.id = g.id
    UNION ALL ({_HOLDER}) LIMIT 1) h"""
_UNDO_REPEATED = f"""
DELETE FROM holdfast.job g WHERE g.id = ANY($1::uuid[]) AND g.state = 'queued' AND {_OVER}"""
