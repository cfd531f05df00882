"""Sagas: started with their jobs, moved under the claim of those, woken by what they wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from holdfast.kernel.errors import CommitUnknown
from holdfast.store.bell import EVERYONE
from holdfast.store.edge import checked
from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import (
    OVER,
    STUCK,
    Heard,
    Move,
    NewSaga,
    Rest,
    SagaAnswer,
    SagaCount,
    SagaRecord,
    SagaState,
    SignalRecord,
    StartedSaga,
    Wait,
    Written,
)
from holdfast.store.sqlite import finishes, jobs, saga_people, saga_waits, steps
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.saga_waits import wake
from holdfast.store.sqlite.subject import Subject
from holdfast.store.states import Held
from holdfast.store.steps import Step
from holdfast.store.unknown import still_unknown

_START = """
    INSERT INTO holdfast_saga (id, name, job_id, state, started_at, at, deadline, parent, correlation_id, event_seq, event_position)
    VALUES (?1, ?2, ?3, 'running', ?4, ?4, ?5, ?6, ?7, (SELECT coalesce(max(seq), 0) FROM holdfast_outbox),
        (SELECT value FROM holdfast_counter WHERE name = 'position')) ON CONFLICT (id) DO NOTHING"""
_GOES_FORWARD = "SELECT 1 FROM holdfast_saga WHERE id = ? AND finished_at IS NULL AND NOT undoing"
_RECORD = """
    SELECT id, name, job_id, state, undoing, started_at, at, decided_at, finished_at, deadline, asked, pivot, waits,
        result, error, cause, parent, correlation_id FROM holdfast_saga"""
_HELD = """
    SELECT s.seq, s.id, s.asked, s.undoing, s.pivot, s.woken, s.watched
    FROM holdfast_running AS r CROSS JOIN holdfast_job AS j USING (seq) CROSS JOIN holdfast_saga AS s ON s.job_id = j.id
    WHERE r.seq = ? AND r.token = ? AND j.id = ?"""
# What is over stays so; and who wants it undone was told that it will be.
_MOVE = """
    UPDATE holdfast_saga SET state = ?2, undoing = undoing OR ?3, at = ?1, waits = ?7, pivot = coalesce(?6, pivot),
        decided_at = coalesce(decided_at, iif(?3, ?1, NULL)), finished_at = iif(?2 IN ('done', 'undone'), ?1, NULL),
        error = CASE ?2 WHEN 'done' THEN NULL WHEN 'undone' THEN cause ELSE coalesce(?4, error) END, result = ?5,
        cause = iif(?3 AND NOT undoing, coalesce(?4, error), cause)
    WHERE seq = ?8 AND state NOT IN ('done', 'undone') AND (?2 <> 'done' OR asked IS NULL OR pivot IS NOT NULL)"""


def start(db: Db, sagas: Sequence[NewSaga]) -> list[StartedSaga]:
    welcome = [each for each in sagas if each.parent is None or db.value(_GOES_FORWARD, each.parent)]
    new = [each for each in welcome if _insert(db, each)]
    if new:
        jobs.enqueue(db, [each.job for each in new])
    return [_started(db, each) for each in sagas]


def _insert(db: Db, saga: NewSaga) -> bool:
    deadline = None if saga.timeout is None else db.now + saga.timeout
    told = (saga.id, saga.name, saga.job.id, db.now, deadline, saga.parent, saga.job.correlation_id)
    return bool(db.run(_START, *told))


def _started(db: Db, saga: NewSaga) -> StartedSaga:
    """One that was stored by an earlier try of the same call is that call's."""
    row = db.row("SELECT job_id, name FROM holdfast_saga WHERE id = ?", saga.id)
    if row is None:
        return StartedSaga(saga.id, None, created=False)
    return StartedSaga(saga.id, row[0], row[0] == saga.job.id, row[1])


def get(db: Db, *, saga_id: str | None = None, job_id: str | None = None) -> SagaRecord | None:
    column, value = ("id", saga_id) if saga_id is not None else ("job_id", job_id)
    row = db.row(f"{_RECORD} WHERE {column} = ?", value)
    return None if row is None else _record(row, db.now)


def _record(row: Sequence[object], now: float) -> SagaRecord:
    values = dict(zip(SagaRecord.__struct_fields__, (*row, now), strict=True))
    values["state"], values["undoing"] = SagaState(str(values["state"])), bool(values["undoing"])
    return SagaRecord(**values)  # type: ignore[arg-type]


def find(db: Db, *, wanted: Mapping[str, str | None], before: str | None, limit: int) -> list[SagaRecord]:
    given = {column: str(value) for column, value in wanted.items() if value is not None}
    tests = [f"{column} = :{column}" for column in given]
    if before is not None:
        tests.append("seq < (SELECT seq FROM holdfast_saga WHERE id = :before)")
    if given.get("state") not in (None, *OVER):
        tests.append("finished_at IS NULL")  # as the index says
    sql = f"{_RECORD} WHERE {' AND '.join(tests) or 'true'} ORDER BY seq DESC LIMIT :limit"
    rows = db.connection.execute(sql, {**given, "before": before, "limit": limit}).fetchall()
    return [_record(row, db.now) for row in rows]


def count(db: Db) -> list[SagaCount]:
    sql = """SELECT name, state, count(*) FROM holdfast_saga WHERE finished_at IS NULL GROUP BY 1, 2 ORDER BY 1, 2"""
    return [SagaCount(name, SagaState(state), number) for name, state, number in db.rows(sql)]


def signals(db: Db, saga_id: str) -> list[SignalRecord]:
    sql = """SELECT g.name, g.value, g.at, g.taken_by FROM holdfast_saga AS s CROSS JOIN holdfast_saga_signal AS g
        ON g.saga = s.seq WHERE s.id = ? ORDER BY g.seq"""
    return [SignalRecord(*row) for row in db.rows(sql, saga_id)]


# --- under a claim ---


def write(db: Db, claim: Claim, *, step: Step | None, move: Move | None, rest: Rest | None) -> Written | None:
    held = db.row(_HELD, claim.row, claim.token, claim.job_id)
    if held is None:
        return None
    seq, saga_id, asked, undoing, pivot, woken, watched = held
    kept = step is None or steps.write(db, claim, step)
    moved = move is not None and _move(db, seq, move)
    if moved and move is not None and move.state in OVER and watched:
        wake(db, saga_waits.waiting_for(db, "saga", saga_id))
    if moved and move is not None and move.state is SagaState.UNDONE:
        saga_waits.forget(db, seq)
    if rest is not None:
        is_stuck = move is not None and move.state in STUCK
        undoing = undoing or (move is not None and move.undoing)
        wanted = asked is not None and not undoing and pivot is None
        _put_back(db, claim, rest, at_once=bool(woken or wanted) and not is_stuck)
        db.run("UPDATE holdfast_saga SET woken = 0 WHERE seq = ?", seq)
    return Written(kept, moved, asked)


def _move(db: Db, seq: int, move: Move) -> bool:
    how = (move.state, move.undoing, move.error, move.result, move.pivot, move.waits)
    return bool(db.run(_MOVE, db.now, *how, seq))


def _put_back(db: Db, claim: Claim, rest: Rest, *, at_once: bool) -> None:
    """A saga may live for months: deaths of workers under what it did before it came to rest do not count against the rest of it."""
    if claim.interruptions:
        db.run("UPDATE holdfast_job SET interruptions = 0, strikes = 0 WHERE seq = ?", claim.row)
    if at_once or rest.after is not None:
        finishes.put_back(db, claim, None, after=0.0 if at_once else rest.after or 0.0, uncharge=1)
    else:
        finishes.put_back(db, claim, None, uncharge=1, reason=Held.WAITING)


def states(db: Db, job_ids: Sequence[str]) -> dict[str, SagaState]:
    sql = "SELECT job_id, state FROM holdfast_saga WHERE job_id IN (SELECT value FROM json_each(?))"
    return {job_id: SagaState(state) for job_id, state in db.rows(sql, msgspec.json.encode(job_ids).decode())}


@checked
class Sagas(Subject):
    async def start(self, sagas: Sequence[NewSaga], *, tx: object | None = None) -> list[StartedSaga]:
        if not sagas:
            return []
        call = partial(start, sagas=sagas)
        try:
            started = await self._file.write(call, tx=tx)
        except CommitUnknown as unknown:  # the ids are the caller's, so the call is simply made again
            if tx is not None:
                raise
            started = await still_unknown(unknown, self._file.write(call))
        self._file.hint({each.job.queue for each in sagas}, tx=tx)
        return started

    async def get(self, saga_id: str) -> SagaRecord | None:
        return await self._file.read(partial(get, saga_id=saga_id))

    async def of_job(self, job_id: str) -> SagaRecord | None:
        return await self._file.read(partial(get, job_id=job_id))

    async def states(self, job_ids: Sequence[str]) -> dict[str, SagaState]:
        return await self._file.read(partial(states, job_ids=job_ids)) if job_ids else {}

    async def find(
        self,
        *,
        state: SagaState | None = None,
        name: str | None = None,
        parent: str | None = None,
        correlation_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[SagaRecord]:
        wanted = {"state": state, "name": name, "parent": parent, "correlation_id": correlation_id}
        return await self._file.read(partial(find, wanted=wanted, before=before, limit=limit))

    async def count(self) -> list[SagaCount]:
        return await self._file.read(count)

    async def signal(
        self, saga_id: str, name: str, value: str = "null", *, tx: object | None = None
    ) -> SagaAnswer:
        call = partial(saga_waits.signal, saga_id=saga_id, name=name, value=value)
        answer = await self._file.write(call, tx=tx)
        self._file.hint((EVERYONE,), tx=tx)
        return answer

    async def signals(self, saga_id: str) -> list[SignalRecord]:
        return await self._file.read(partial(signals, saga_id=saga_id))

    async def write(
        self, claim: Claim, *, step: Step | None = None, move: Move | None = None, rest: Rest | None = None
    ) -> Written | None:
        """After a lost answer a rest is asked for by its token: only one of the two tries can have had it."""
        call = partial(write, claim=claim, step=step, move=move, rest=rest)
        is_end = move is not None and move.state in OVER
        if rest is None:
            written = await self._file.write(call, repeatable=True)
        else:
            written = await self._rested(claim, call)
        if is_end:
            self._file.hint((EVERYONE,))
        return written

    async def _rested(self, claim: Claim, call: partial[Written | None]) -> Written | None:
        try:
            return await self._file.write(call)
        except CommitUnknown as lost:
            again = await still_unknown(lost, self._file.write(call))
            if again is not None:
                return again
            settle = partial(finishes.settle, job_id=claim.job_id, token=claim.token)
            was_put = await still_unknown(lost, self._file.read(settle))
            return Written(kept=True, moved=True, asked=None) if was_put else None

    async def listen(self, claim: Claim, step: Step, wait: Wait) -> Heard | None:
        call = partial(saga_waits.listen, claim=claim, step=step, wait=wait, held=_HELD)
        return await self._file.write(call, repeatable=True)

    async def hear(self, lease: Lease, *, limit: int = 500, portion: int = 2000) -> int | None:
        if not await self._file.read(saga_waits.has_news):
            return 0  # looking must not cost a commit
        call = partial(saga_waits.hear, lease=lease, limit=limit, portion=portion)
        heard = await self._file.write(call, repeatable=True)
        if heard:
            self._file.hint((EVERYONE,))
        return heard

    async def cancel(self, saga_id: str, *, actor: str, reason: str, done_too: bool = False) -> SagaAnswer:
        call = partial(saga_people.cancel, saga_id=saga_id, actor=actor, reason=reason, done_too=done_too)
        return await self._decided(call)

    async def retry(self, saga_id: str, *, actor: str, tx: object | None = None) -> SagaAnswer:
        return await self._decided(partial(saga_people.retry, saga_id=saga_id, actor=actor), tx)

    async def settle(
        self, saga_id: str, step: str, *, done: bool, result: str | None = None, actor: str
    ) -> SagaAnswer:
        call = partial(saga_people.settle, saga_id=saga_id, step=step, done=done, result=result, actor=actor)
        return await self._decided(call)

    async def _decided(self, call: partial[SagaAnswer], tx: object | None = None) -> SagaAnswer:
        answer = await self._file.write(call, tx=tx)
        self._file.hint((EVERYONE,), tx=tx)
        return answer

    async def park_lost(self, *, limit: int = 100) -> list[str]:
        if not await self._file.read(partial(saga_people.find_lost, limit=1)):
            return []  # looking must not cost a commit
        return await self._file.write(partial(saga_people.park_lost, limit=limit))

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._file.write(partial(saga_people.prune, keep=keep, limit=limit), repeatable=True)
