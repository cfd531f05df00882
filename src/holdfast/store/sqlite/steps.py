"""Steps and effects of jobs, written under the token of the run, and what a person decides about unknown ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store import verdicts
from holdfast.store.bell import EVERYONE
from holdfast.store.edge import checked
from holdfast.store.records import Claim
from holdfast.store.sqlite import audit, looks
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject
from holdfast.store.steps import UNDECIDED_SHOWN, Kind, Progress, Resolved, Step, StepRecord, Undecided

# What is done stays as it is, whatever of the same run comes late; it may say it again, after a lost answer.
_WRITE = """
    INSERT INTO holdfast_step (seq, generation, name, number, token, first_at, at, kind, progress, branch,
        fingerprint, result, plan, tries, error, calls, intent_at, begun_at)
    SELECT r.seq, j.generation, ?4, ?5, r.token, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, iif(?16, ?6, NULL), ?6 - ?17
    FROM holdfast_running AS r CROSS JOIN holdfast_job AS j USING (seq)
    WHERE r.seq = ?1 AND r.token = ?2 AND j.id = ?3
    ON CONFLICT (seq, generation, name) DO UPDATE SET token = excluded.token, at = excluded.at, kind = excluded.kind,
        progress = excluded.progress, fingerprint = excluded.fingerprint,
        result = iif(excluded.progress = 'aside', result, excluded.result),
        plan = coalesce(excluded.plan, plan), tries = excluded.tries, error = excluded.error,
        calls = max(excluded.calls, calls), intent_at = excluded.intent_at,
        looks = iif(excluded.intent_at IS NULL, looks, 0),
        begun_at = coalesce(excluded.begun_at, iif(excluded.calls > calls, intent_at, NULL), begun_at)
    WHERE progress NOT IN ('done', 'resolved', 'aside') OR (token = excluded.token AND progress = excluded.progress)
        OR excluded.progress = 'aside' OR (progress = 'resolved' AND excluded.progress = 'unknown')"""
_HAS_STEPS = "UPDATE holdfast_job SET steps_of = generation WHERE seq = ? AND steps_of IS NOT generation"
_LOAD = """
    SELECT s.name, s.number, s.kind, s.progress, s.branch, s.fingerprint, s.result, s.token, s.first_at, s.at,
        s.plan, s.tries, s.error, coalesce(s.intent_at, s.begun_at), s.calls + (s.intent_at IS NOT NULL), s.looks
    FROM holdfast_job AS j CROSS JOIN holdfast_step AS s USING (seq)
    WHERE j.id = ? AND s.generation = ? ORDER BY s.number, s.name"""
_UNKNOWN = """
    SELECT j.seq, j.generation, j.args, p.token FROM holdfast_job AS j JOIN holdfast_parked AS p USING (seq)
    WHERE j.id = ? AND p.state = 'unknown'"""
_OPEN = """
    SELECT name FROM holdfast_step WHERE seq = ? AND generation = ? AND progress = 'unknown' ORDER BY number, name"""
_DECIDE = (
    "UPDATE holdfast_step SET progress = ?, result = ?, at = ? WHERE seq = ? AND generation = ? AND name = ?"
)
# It has kept its turn and its unique key. As after a replay, it begins with all of its attempts.
_ANEW = (
    "UPDATE holdfast_job SET interruptions = 0, strikes = 0, put_offs = 0, expires_at = NULL WHERE seq = ?"
)
_QUEUE = """
    INSERT INTO holdfast_queued (seq, rank, priority, queue, held, token, bounded_task,
        ordering_key, concurrency_key, tenant)
    SELECT j.seq, ?1, j.priority, j.queue, iif(coalesce(j.concurrency_key, j.tenant) IS NULL, NULL, 'arrived'), p.token,
        iif(j.bounded, j.task, NULL), j.ordering_key, j.concurrency_key, j.tenant
    FROM holdfast_job AS j JOIN holdfast_parked AS p USING (seq) WHERE j.seq = ?2"""


def write(db: Db, claim: Claim, step: Step) -> bool:
    held = (claim.row, claim.token, claim.job_id)
    how = (step.kind, step.progress, step.branch, step.fingerprint, step.result)
    if_again = (step.plan, step.tries, step.error)
    calls = (step.calls, step.intent, step.took)
    if not db.run(_WRITE, *held, step.name, step.number, db.now, *how, *if_again, *calls):
        return False
    db.run(_HAS_STEPS, claim.row)
    return True


def load(db: Db, job_id: str, generation: int) -> list[StepRecord]:
    return [_record(row, db.now) for row in db.rows(_LOAD, job_id, generation)]


def _record(row: Row, now: float) -> StepRecord:
    return StepRecord(
        name=row[0], number=row[1], kind=Kind(row[2]), progress=Progress(row[3]), branch=row[4],
        fingerprint=row[5], result=row[6], token=row[7], first_at=row[8], at=row[9], now=now,
        plan=row[10], tries=row[11], error=row[12], begun_at=row[13], calls=row[14], looks=row[15],
    )  # fmt: skip


_UNDECIDED = f"""
    SELECT j.id, s.name, s.first_at, s.at FROM holdfast_job AS j CROSS JOIN holdfast_step AS s USING (seq)
    WHERE j.id = ? AND s.generation = j.generation AND s.progress = 'unknown'
    ORDER BY s.number, s.name LIMIT {UNDECIDED_SHOWN}"""


def undecided(db: Db, job_ids: Sequence[str]) -> list[Undecided]:
    return [Undecided(*row) for job_id in job_ids for row in db.rows(_UNDECIDED, job_id)]


def resolve(
    db: Db,
    job_id: str,
    *,
    actor: str,
    done: bool,
    effect: str | None,
    result: str | None,
    token: int | None,
) -> Resolved:
    row = db.row(_UNKNOWN, job_id)
    if row is None or token not in (None, row[3]):
        return Resolved(job_id, "not_unknown")
    seq, generation, args, _ = row
    verdict = verdicts.resolve(
        job_id, [name for (name,) in db.rows(_OPEN, seq, generation)], effect, done=done
    )
    if isinstance(verdict, Resolved):
        return verdict
    if verdict.effect is not None:
        progress = Progress.RESOLVED if done else Progress.FAILED
        db.run(_DECIDE, progress, result, db.now, seq, generation, verdict.effect)
    if not verdict.left:
        db.run(_ANEW, seq)
        db.run(_QUEUE, db.draw("rank"), seq)
        db.run("DELETE FROM holdfast_parked WHERE seq = ?", seq)
    audit.write(db, verdict.entry(actor, result, args))
    return verdict.resolved


@checked
class Steps(Subject):
    async def write(self, claim: Claim, step: Step) -> bool:
        return await self._file.write(partial(write, claim=claim, step=step), repeatable=True)

    async def load(self, job_id: str, generation: int) -> list[StepRecord]:
        return await self._file.read(partial(load, job_id=job_id, generation=generation))

    async def undecided(self, job_ids: Sequence[str]) -> list[Undecided]:
        return await self._file.read(partial(undecided, job_ids=job_ids))

    async def to_look(
        self,
        tasks: Sequence[str],
        queues: Sequence[str] | None = None,
        *,
        lease: float,
        limit: int = 100,
    ) -> list[Claim]:
        if not await self._file.read(looks.is_due):  # an idle look must not cost a commit
            return []
        call = partial(looks.to_look, tasks=tasks, queues=queues, lease=lease, limit=limit)
        return await self._file.write(call)

    async def looked(self, job_id: str, token: int, *, after: float | None, counted: bool = True) -> bool:
        call = partial(looks.looked, job_id=job_id, token=token, after=after, counted=counted)
        return await self._file.write(call)

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
        call = partial(
            resolve, job_id=job_id, actor=actor, done=done, effect=effect, result=result, token=token
        )
        resolved = await self._file.write(call, tx=tx)
        self._file.hint((EVERYONE,), tx=tx)
        return resolved
