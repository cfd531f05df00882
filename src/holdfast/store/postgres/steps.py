"""Steps and effects of jobs, written under the token of the run, and what a person decides about unknown ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from holdfast.kernel.loops import PerLoop
from holdfast.store import verdicts
from holdfast.store.batching import Batcher
from holdfast.store.bell import EVERYONE
from holdfast.store.edge import checked
from holdfast.store.postgres import looks
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.connection import IMPATIENT
from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.rows import SOON, held_by, same_id
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.records import Claim
from holdfast.store.statements import Procedure, Statement
from holdfast.store.steps import UNDECIDED_SHOWN, Kind, Progress, Resolved, Step, StepRecord, Undecided

Wanted = tuple[str, int]  # a job, and its generation
_READ_TOGETHER = 50  # jobs: the steps of one may be large


class Write(msgspec.Struct, frozen=True):
    claim: Claim
    step: Step


def write(writes: Sequence[Write], *, impatient: bool = False) -> Procedure[list[bool]]:
    """`impatient`: who would wait for another's lock is blocked instead, after a moment."""
    ordered = sorted(writes, key=_by_id)
    rows = yield Statement(_WRITE[impatient], _columns(ordered))
    kept = {(row[0], row[1]) for row in rows}
    return [(each.claim.job_id, each.step.name) in kept for each in writes]


def _by_id(each: Write) -> str:
    return each.claim.job_id


def _columns(writes: Sequence[Write]) -> tuple[list[Any], ...]:
    return (
        [each.claim.job_id for each in writes],
        [each.claim.token for each in writes],
        [each.step.name for each in writes],
        [each.step.number for each in writes],
        [each.step.kind.value for each in writes],
        [each.step.progress.value for each in writes],
        [each.step.branch for each in writes],
        [each.step.fingerprint for each in writes],
        [each.step.result for each in writes],
        [each.step.plan for each in writes],
        [each.step.tries for each in writes],
        [each.step.error for each in writes],
        [each.step.calls for each in writes],
        [each.step.intent for each in writes],
        [each.step.took for each in writes],
    )


# From `held`: rows of what is given, of the generation and of the moment.
KEEP = """
INSERT INTO holdfast.step AS s (job_id, generation, name, number, token, first_at, at, kind, progress, branch,
    fingerprint, result, plan, tries, error, calls, intent_at, begun_at)
SELECT id, generation, name, number, token, now, now, kind, progress, branch, fingerprint, result, plan, tries, error,
    calls, CASE WHEN intent THEN now END, now - make_interval(secs => took)
FROM held WHERE name IS NOT NULL
ON CONFLICT (job_id, generation, name) DO UPDATE SET token = excluded.token, at = excluded.at, kind = excluded.kind,
    progress = excluded.progress, fingerprint = excluded.fingerprint,
    result = CASE excluded.progress WHEN 'aside' THEN s.result ELSE excluded.result END,
    plan = coalesce(excluded.plan, s.plan), tries = excluded.tries, error = excluded.error,
    calls = greatest(excluded.calls, s.calls), intent_at = excluded.intent_at,
    looks = CASE WHEN excluded.intent_at IS NULL THEN s.looks ELSE 0 END,
    begun_at = coalesce(excluded.begun_at, CASE WHEN excluded.calls > s.calls THEN s.intent_at END, s.begun_at)
WHERE s.progress NOT IN ('done', 'resolved', 'aside') OR (s.token = excluded.token AND s.progress = excluded.progress)
    OR excluded.progress = 'aside' OR (s.progress = 'resolved' AND excluded.progress = 'unknown')"""
# The job's row is locked until the commit: whoever takes the claim away, or ends the job, waits and then sees what was
# written. What is done stays as it is, whatever of the same run comes late; it may say it again, after a lost answer.
_WRITE = {
    impatient: f"""
WITH held AS MATERIALIZED (
    SELECT g.*, holdfast.now() AS now, j.generation, j.steps_of
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::int[], $12::text[], $13::int[], $14::bool[], $15::float8[])
        AS g(id, token, name, number, kind, progress, branch, fingerprint, result, plan, tries, error, calls, intent, took),
        holdfast.job j
    WHERE {held_by("g")} AND {SOON if impatient else "true"} ORDER BY g.id FOR UPDATE OF j),
marked AS (
    UPDATE holdfast.job j SET steps_of = j.generation
    FROM (SELECT DISTINCT id FROM held h WHERE h.steps_of IS DISTINCT FROM h.generation) h WHERE {same_id("h")})
{KEEP} RETURNING s.job_id::text, s.name"""
    for impatient in (False, True)
}


def load(wanted: Sequence[Wanted]) -> Procedure[list[list[StepRecord]]]:
    once = list(dict.fromkeys(wanted))
    places = {each: place for place, each in enumerate(once, 1)}
    ids, generations = [job_id for job_id, _ in once], [generation for _, generation in once]
    found: dict[int, list[StepRecord]] = {}
    for place, *row in (yield Statement(_LOAD, (ids, generations))):
        found.setdefault(place, []).append(_record(row))
    return [found.get(places[each], []) for each in wanted]


# One job after the other, as `same_id` says.
_LOAD = """
SELECT g.place, s.name, s.number, s.kind, s.progress, s.branch, s.fingerprint, s.result, s.token,
    date_part('epoch', s.first_at), date_part('epoch', s.at), date_part('epoch', holdfast.now()), s.plan, s.tries, s.error,
    date_part('epoch', coalesce(s.intent_at, s.begun_at)), s.calls + (s.intent_at IS NOT NULL)::int, s.looks
FROM unnest($1::uuid[], $2::int[]) WITH ORDINALITY AS g(id, generation, place), holdfast.step s
WHERE s.job_id = ANY(ARRAY[g.id]) AND s.generation = g.generation ORDER BY s.number, s.name"""


def _record(row: Sequence[Any]) -> StepRecord:
    return StepRecord(
        name=row[0], number=row[1], kind=Kind(row[2]), progress=Progress(row[3]), branch=row[4],
        fingerprint=row[5], result=row[6], token=row[7], first_at=row[8], at=row[9], now=row[10],
        plan=row[11], tries=row[12], error=row[13], begun_at=row[14], calls=row[15], looks=row[16],
    )  # fmt: skip


def undecided(job_ids: Sequence[str]) -> Procedure[list[Undecided]]:
    return [Undecided(*row) for row in (yield Statement(_UNDECIDED, (list(job_ids),)))]


_UNDECIDED = f"""
SELECT s.job_id::text, s.name, date_part('epoch', s.first_at), date_part('epoch', s.at)
FROM unnest($1::uuid[]) WITH ORDINALITY AS g(id, place), holdfast.job j CROSS JOIN LATERAL (
    SELECT * FROM holdfast.step s WHERE s.job_id = j.id AND s.generation = j.generation AND s.progress = 'unknown'
    ORDER BY s.number, s.name LIMIT {UNDECIDED_SHOWN}) s
WHERE {same_id("g")} ORDER BY g.place, s.number, s.name"""


def resolve(
    job_id: str, *, actor: str, done: bool, effect: str | None, result: str | None, token: int | None
) -> Procedure[Resolved]:
    rows = yield Statement(_LOCK, (job_id,))
    if not rows or token not in (None, rows[0][2]):
        return Resolved(job_id, "not_unknown")
    generation, args, _ = rows[0]
    rows = yield Statement(_OPEN, (job_id, generation))
    verdict = verdicts.resolve(job_id, [row[0] for row in rows], effect, done=done)
    if isinstance(verdict, Resolved):
        return verdict
    if verdict.effect is not None:
        progress = Progress.RESOLVED if done else Progress.FAILED
        yield Statement(_DECIDE, (job_id, generation, verdict.effect, progress.value, result))
    if not verdict.left:
        yield Statement(_QUEUE, (job_id,))
    yield audited([verdict.entry(actor, result, args)])
    return verdict.resolved


_LOCK = (
    "SELECT generation, args, token FROM holdfast.job WHERE id = $1::uuid AND state = 'unknown' FOR UPDATE"
)
_OPEN = """SELECT name FROM holdfast.step
    WHERE job_id = $1::uuid AND generation = $2::int AND progress = 'unknown' ORDER BY number, name"""
_DECIDE = """UPDATE holdfast.step SET progress = $4::text, result = $5::text, at = holdfast.now()
    WHERE job_id = $1::uuid AND generation = $2::int AND name = $3::text"""
# It has kept its turn and its unique key. As after a replay, it begins with all of its attempts.
_QUEUE = """
UPDATE holdfast.job SET state = 'queued', rank = nextval('holdfast.rank'), attempt = 0, interruptions = 0, strikes = 0, put_offs = 0,
    suspect = false, alone = false, run_at = NULL, expires_at = NULL, worker = NULL, started_at = NULL, reason = NULL, look_at = NULL,
    held = CASE WHEN coalesce(concurrency_key, tenant) IS NOT NULL THEN 'arrived' END
WHERE id = $1::uuid"""


@checked
class Steps(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._batch: PerLoop[Batcher[Write, bool]] = PerLoop(
            lambda: Batcher(self._write, limit=500, name="steps")
        )
        self._loads: PerLoop[Batcher[Wanted, list[StepRecord]]] = PerLoop(
            lambda: Batcher(self._load, limit=_READ_TOGETHER, name="steps-read")
        )

    async def write(self, claim: Claim, step: Step) -> bool:
        """With those of others, unless another's open transaction has the row of its job: that is waited for alone."""
        one = [Write(claim, step)]
        try:
            [kept] = await self._batch.get().add(one)
        except Blocked:
            [kept] = await self._database.patience.wait(partial(self._write_alone, one))
        return kept

    async def _write(self, writes: Sequence[Write]) -> list[bool]:
        return await self._database.write(partial(write, writes, impatient=True), repeatable=True)

    async def _write_alone(self, writes: Sequence[Write]) -> list[bool]:
        return await self._database.atomic(partial(write, writes), repeatable=True, begin=IMPATIENT)

    async def load(self, job_id: str, generation: int) -> list[StepRecord]:
        [found] = await self._loads.get().add([(job_id, generation)])
        return found

    async def _load(self, wanted: Sequence[Wanted]) -> list[list[StepRecord]]:
        return await self._database.read(partial(load, wanted))

    async def undecided(self, job_ids: Sequence[str]) -> list[Undecided]:
        return await self._database.read(partial(undecided, job_ids))

    async def to_look(
        self,
        tasks: Sequence[str],
        queues: Sequence[str] | None = None,
        *,
        lease: float,
        limit: int = 100,
    ) -> list[Claim]:
        if not await self._database.read(looks.is_due):  # an idle look must not write
            return []
        return await self._database.write(partial(looks.to_look, tasks, queues, lease=lease, limit=limit))

    async def looked(self, job_id: str, token: int, *, after: float | None, counted: bool = True) -> bool:
        make = partial(looks.looked, job_id, token, after=after, counted=counted)
        return await self._database.write(make)

    async def resolve(
        self,
        job_id: str,
        *,
        actor: str,
        done: bool,
        effect: str | None = None,
        result: str | None = None,
        token: int | None = None,
        tx: object | None = None,
    ) -> Resolved:
        make = partial(resolve, job_id, actor=actor, done=done, effect=effect, result=result, token=token)
        executor = await self._executor(tx)
        resolved = await (self._database.atomic(make) if executor is None else executor.run(make()))
        self._home.hint((EVERYONE,), tx=tx)
        return resolved
