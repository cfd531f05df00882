"""Sagas: started with their jobs, moved under the claim of those, woken by what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.loops import PerLoop
from holdfast.store.batching import Batcher
from holdfast.store.bell import EVERYONE
from holdfast.store.edge import checked
from holdfast.store.postgres import saga_people, saga_waits
from holdfast.store.postgres.connection import IMPATIENT
from holdfast.store.postgres.enqueue import enqueue
from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.finishes import settle
from holdfast.store.postgres.rows import SOON
from holdfast.store.postgres.saga_writes import SagaWrite, end, write
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.records import Claim, Lease
from holdfast.store.saga_records import (
    OVER,
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
from holdfast.store.statements import Procedure, Statement
from holdfast.store.steps import Step
from holdfast.store.unknown import still_unknown

_TOGETHER = 500  # sagas of several callers in one transaction


def start(sagas: Sequence[NewSaga], *, impatient: bool = False) -> Procedure[list[StartedSaga]]:
    """`impatient`: who would wait for another's lock is blocked instead, after a moment."""
    first = {each.id: each for each in reversed(sagas)}
    once = sorted(first.values(), key=_by_id)
    if parents := [each.parent for each in once if each.parent is not None]:
        yield Statement(_HOLD_PARENTS[impatient], (parents,))
    rows = yield Statement(_START[impatient], _columns(once))
    stored: dict[str, tuple[str, str]] = {row[0]: (row[1], row[2]) for row in rows}
    new = [each for each in once if each.id in stored]
    if new:
        yield from enqueue([each.job for each in new])
    if others := [each.id for each in once if each.id not in stored]:
        rows = yield Statement(_OTHERS, (others,))
        stored |= {row[0]: (row[1], row[2]) for row in rows}
    return [_started(each, *stored.get(each.id, (None, None))) for each in sagas]


def _started(saga: NewSaga, job_id: str | None, name: str | None) -> StartedSaga:
    """One that was stored by an earlier try of the same call is that call's."""
    return StartedSaga(saga.id, job_id, job_id == saga.job.id, name)


def _by_id(saga: NewSaga) -> str:
    return saga.id


def _columns(sagas: Sequence[NewSaga]) -> tuple[list[Any], ...]:
    return (
        [each.id for each in sagas],
        [each.name for each in sagas],
        [each.job.id for each in sagas],
        [each.timeout for each in sagas],
        [each.parent for each in sagas],
        [each.job.correlation_id for each in sagas],
    )


_START = {
    impatient: f"""
INSERT INTO holdfast.saga (id, name, job_id, deadline, parent, correlation_id, event_seq, event_position)
SELECT g.id, g.name, g.job_id, holdfast.now() + make_interval(secs => g.timeout), g.parent, g.correlation_id,
    (SELECT coalesce(max(seq), 0) FROM holdfast.outbox), (SELECT value FROM holdfast.event_position)
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::float8[], $5::text[], $6::text[])
    AS g(id, name, job_id, timeout, parent, correlation_id)
WHERE {SOON if impatient else "true"} AND (g.parent IS NULL OR EXISTS (
    SELECT FROM holdfast.saga p WHERE p.id = g.parent AND p.finished_at IS NULL AND NOT p.undoing))
ON CONFLICT (id) DO NOTHING RETURNING id, job_id::text, name"""
    for impatient in (False, True)
}
# Whoever decides that a saga is undone locks its job first, and so sees what was started before.
_HOLD_PARENTS = {
    impatient: f"""
SELECT FROM holdfast.job j WHERE {SOON if impatient else "true"}
    AND j.id = ANY(ARRAY(SELECT s.job_id FROM holdfast.saga s WHERE s.id = ANY($1::text[]))) ORDER BY j.id FOR SHARE"""
    for impatient in (False, True)
}
_OTHERS = "SELECT id, job_id::text, name FROM holdfast.saga WHERE id = ANY($1::text[])"
_RECORD = """
SELECT s.id, s.name, s.job_id::text, s.state, s.undoing, date_part('epoch', s.started_at), date_part('epoch', s.at),
    date_part('epoch', s.decided_at), date_part('epoch', s.finished_at), date_part('epoch', s.deadline), s.asked,
    s.pivot, s.waits, s.result, s.error, s.cause, s.parent, s.correlation_id, date_part('epoch', holdfast.now())
FROM holdfast.saga s"""


def get(saga_id: str) -> Procedure[SagaRecord | None]:
    rows = yield Statement(f"{_RECORD} WHERE s.id = $1::text", (saga_id,))
    return _record(rows[0]) if rows else None


def of_jobs(job_ids: Sequence[str]) -> Procedure[list[SagaRecord | None]]:
    found = {row[2]: _record(row) for row in (yield Statement(_OF_JOBS, (list(set(job_ids)),)))}
    return [found.get(each) for each in job_ids]


_OF_JOBS = f"{_RECORD}, unnest($1::uuid[]) AS g(id) WHERE s.job_id = ANY(ARRAY[g.id])"


def _record(row: Sequence[Any]) -> SagaRecord:
    values = dict(zip(SagaRecord.__struct_fields__, row, strict=True))
    values["state"] = SagaState(values["state"])
    return SagaRecord(**values)


def find(*, before: str | None, limit: int, **wanted: str | None) -> Procedure[list[SagaRecord]]:
    given = {column: str(value) for column, value in wanted.items() if value is not None}
    tests = [f"s.{column} = ${place}::text" for place, column in enumerate(given, 2)]
    params: tuple[Any, ...] = (limit, *given.values())
    if before is not None:
        params = (*params, before)
        tests.append(f"s.seq < (SELECT b.seq FROM holdfast.saga b WHERE b.id = ${len(params)}::text)")
    if given.get("state") not in (None, *OVER):
        tests.append("s.finished_at IS NULL")  # as the index says
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    rows = yield Statement(f"{_RECORD} {where} ORDER BY s.seq DESC LIMIT $1", params)
    return [_record(row) for row in rows]


def count() -> Procedure[list[SagaCount]]:
    sql = """SELECT name, state, count(*) FROM holdfast.saga WHERE finished_at IS NULL
        GROUP BY 1, 2 ORDER BY name COLLATE "C", state COLLATE "C" """
    return [SagaCount(row[0], SagaState(row[1]), row[2]) for row in (yield Statement(sql))]


def signals(saga_id: str) -> Procedure[list[SignalRecord]]:
    sql = """SELECT g.name, g.value, date_part('epoch', g.at), g.taken_by FROM holdfast.saga_signal g
        WHERE g.saga = (SELECT s.seq FROM holdfast.saga s WHERE s.id = $1::text) ORDER BY g.seq"""
    return [SignalRecord(*row) for row in (yield Statement(sql, (saga_id,)))]


def states(job_ids: Sequence[str]) -> Procedure[dict[str, SagaState]]:
    sql = "SELECT job_id::text, state FROM holdfast.saga WHERE job_id = ANY($1::uuid[])"
    return {job_id: SagaState(state) for job_id, state in (yield Statement(sql, (list(job_ids),)))}


@checked
class Sagas(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._starts: PerLoop[Batcher[NewSaga, StartedSaga]] = PerLoop(
            lambda: Batcher(self._start_batch, limit=_TOGETHER, name="sagas")
        )
        self._writes: PerLoop[Batcher[SagaWrite, Written | None]] = PerLoop(
            lambda: Batcher(self._write_batch, limit=_TOGETHER, name="saga-writes")
        )
        self._looks: PerLoop[Batcher[str, SagaRecord | None]] = PerLoop(
            lambda: Batcher(self._of_jobs, limit=_TOGETHER, name="saga-looks")
        )

    async def start(self, sagas: Sequence[NewSaga], *, tx: object | None = None) -> list[StartedSaga]:
        if not sagas:
            return []
        if (executor := await self._executor(tx)) is not None:
            started = await executor.run(start(sagas))
        else:
            started = await self._started(sagas)
        self._home.hint({each.job.queue for each in sagas}, tx=tx)
        return started

    async def _started(self, sagas: Sequence[NewSaga]) -> list[StartedSaga]:
        """With those of others, unless another's open transaction has one of these ids: that is waited for alone."""
        self._database.pool.check()
        if len(sagas) > _TOGETHER:
            return await self._database.atomic(partial(start, sagas), repeatable=True)
        try:
            return await self._starts.get().add(sagas)
        except Blocked:
            alone = partial(start, sagas)
            wait = partial(self._database.atomic, alone, repeatable=True, begin=IMPATIENT)
            return await self._database.patience.wait(wait)

    async def _start_batch(self, sagas: Sequence[NewSaga]) -> list[StartedSaga]:
        """The ids are the callers', so a try whose answer was lost is simply made again."""
        return await self._database.atomic(partial(start, sagas, impatient=True), repeatable=True)

    async def get(self, saga_id: str) -> SagaRecord | None:
        return await self._database.read(partial(get, saga_id))

    async def of_job(self, job_id: str) -> SagaRecord | None:
        """With those whom others look for: whoever begins to run one does."""
        [found] = await self._looks.get().add([job_id])
        return found

    async def _of_jobs(self, job_ids: Sequence[str]) -> list[SagaRecord | None]:
        return await self._database.read(partial(of_jobs, job_ids))

    async def states(self, job_ids: Sequence[str]) -> dict[str, SagaState]:
        return await self._database.read(partial(states, job_ids)) if job_ids else {}

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
        return await self._database.read(partial(find, before=before, limit=limit, **wanted))

    async def count(self) -> list[SagaCount]:
        return await self._database.read(count)

    async def signal(
        self, saga_id: str, name: str, value: str = "null", *, tx: object | None = None
    ) -> SagaAnswer:
        make = partial(saga_waits.signal, saga_id, name, value)
        if (executor := await self._executor(tx)) is not None:
            answer = await executor.run(make())
        else:
            answer = await self._database.atomic(make)
        self._home.hint((EVERYONE,), tx=tx)
        return answer

    async def signals(self, saga_id: str) -> list[SignalRecord]:
        return await self._database.read(partial(signals, saga_id))

    async def write(
        self, claim: Claim, *, step: Step | None = None, move: Move | None = None, rest: Rest | None = None
    ) -> Written | None:
        one = SagaWrite(claim, step, move, rest)
        try:
            [written] = await self._writes.get().add([one])
        except Blocked:
            [written] = await self._database.patience.wait(partial(self._write_alone, [one]))
        if one.is_end:
            if written is not None and not written.moved:
                written = await self._database.atomic(partial(end, one), repeatable=True)
            self._home.hint((EVERYONE,))
        return written

    async def _write_batch(self, writes: Sequence[SagaWrite]) -> list[Written | None]:
        call = partial(self._database.write, partial(write, writes, impatient=True))
        return await self._settled(writes, call)

    async def _write_alone(self, writes: Sequence[SagaWrite]) -> list[Written | None]:
        call = partial(self._database.atomic, partial(write, writes), begin=IMPATIENT)
        return await self._settled(writes, call)

    async def _settled(self, writes: Sequence[SagaWrite], call: Callable[[], Any]) -> list[Written | None]:
        """After a lost answer, a rest is asked for by its token: only one of the two tries can have had it."""
        try:
            written: list[Written | None] = await call()
        except CommitUnknown as lost:
            written = await still_unknown(lost, call())
            missing = [place for place, each in enumerate(written) if each is None and writes[place].rest]
            if not missing:
                return written
            claims = [writes[place].claim for place in missing]
            make = partial(settle, [each.job_id for each in claims], [each.token for each in claims])
            were_put = await still_unknown(lost, self._database.read(make))
            for place, was_put in zip(missing, were_put, strict=True):
                written[place] = Written(kept=True, moved=True, asked=None) if was_put else None
        return written

    async def listen(self, claim: Claim, step: Step, wait: Wait) -> Heard | None:
        make = partial(saga_waits.listen, claim, step, wait)
        return await self._database.atomic(make, repeatable=True)

    async def hear(self, lease: Lease, *, limit: int = 500, portion: int = 2000) -> int | None:
        if not await self._database.read(saga_waits.has_news):
            return 0  # looking must not cost a transaction
        make = partial(saga_waits.hear, lease, limit=limit, portion=portion)
        heard = await self._database.atomic(make, repeatable=True)
        if heard:
            self._home.hint((EVERYONE,))
        return heard

    async def cancel(self, saga_id: str, *, actor: str, reason: str, done_too: bool = False) -> SagaAnswer:
        make = partial(saga_people.cancel, saga_id, actor=actor, reason=reason, done_too=done_too)
        return await self._decided(make)

    async def retry(self, saga_id: str, *, actor: str, tx: object | None = None) -> SagaAnswer:
        return await self._decided(partial(saga_people.retry, saga_id, actor=actor), tx)

    async def settle(
        self, saga_id: str, step: str, *, done: bool, result: str | None = None, actor: str
    ) -> SagaAnswer:
        make = partial(saga_people.settle, saga_id, step, done=done, result=result, actor=actor)
        return await self._decided(make)

    async def _decided(
        self, make: Callable[[], Procedure[SagaAnswer]], tx: object | None = None
    ) -> SagaAnswer:
        if (executor := await self._executor(tx)) is None:
            answer = await self._database.atomic(make)
        else:
            answer = await executor.run(make())
        self._home.hint((EVERYONE,), tx=tx)
        return answer

    async def park_lost(self, *, limit: int = 100) -> list[str]:
        return await self._database.atomic(partial(saga_people.park_lost, limit), repeatable=True)

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._database.write(partial(saga_people.prune, keep, limit), repeatable=True)
