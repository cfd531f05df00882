"""Claim ready jobs and hold on to them; what becomes of them is in finishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.telemetry import note as tell
from holdfast.store.checks import all_held
from holdfast.store.edge import checked
from holdfast.store.records import Claim, Finish, Renewal, Rescue
from holdfast.store.sqlite import settling
from holdfast.store.sqlite.connection import Db, numbers
from holdfast.store.sqlite.finishes import finish, release, settle
from holdfast.store.sqlite.moves import IS_PAUSED, fill_window
from holdfast.store.sqlite.rescues import rescue, rescue_worker
from holdfast.store.sqlite.rows import CLAIM, Row, to_claim
from holdfast.store.sqlite.subject import Subject

_DUE = "iif(q.run_at > j.enqueued_at, q.run_at, NULL)"
_FROM = f"""
    SELECT j.id, {CLAIM.format(attempt="q.attempt + 1", alone=":alone", due=_DUE)}
    FROM holdfast_queued AS q CROSS JOIN holdfast_job AS j ON j.seq = q.seq
    WHERE q.queue = :queue AND q.held IS NULL AND (q.expires_at IS NULL OR q.expires_at > :now)
        AND (q.tenant IS NULL OR NOT EXISTS ({IS_PAUSED.replace("?", "q.tenant")})) AND"""
_READY = f"{_FROM} NOT q.suspect ORDER BY q.priority DESC, q.rank LIMIT :most"
_SUSPECT = f"{_FROM} q.suspect ORDER BY q.rank LIMIT :most"

_RUN = """
    INSERT INTO holdfast_running (seq, token, lease_until, worker, alone, attempt, started_at, rank)
    SELECT seq, :token, :until, :worker, :alone, attempt + 1, :now, rank FROM holdfast_queued
    WHERE seq IN (SELECT value FROM json_each(:numbers))"""
_UNQUEUE = "DELETE FROM holdfast_queued WHERE seq IN (SELECT value FROM json_each(?))"


def claim(db: Db, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
    taken: list[Claim] = []
    for queue, most in wants.items():
        if most > 0 and not _paused(db, queue):
            token = taken[0].token if taken else None
            taken += _take(db, _READY, queue, most, lease=lease, worker=worker, alone=False, token=token)
    for queue, tenant in sorted({(claim.queue, claim.tenant) for claim in taken if claim.tenant is not None}):
        fill_window(db, queue, tenant, wants[queue])
    return taken


def claim_suspect(db: Db, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
    """The oldest of all these queues."""
    sql = f"""SELECT min(rank) FROM holdfast_queued WHERE queue = ? AND held IS NULL AND suspect
        AND (expires_at IS NULL OR expires_at > ?)
        AND (tenant IS NULL OR NOT EXISTS ({IS_PAUSED.replace("?", "tenant")}))"""
    heads = [(db.value(sql, queue, db.now), queue) for queue in queues if not _paused(db, queue)]
    for _, queue in sorted(head for head in heads if head[0] is not None):
        for claim in _take(db, _SUSPECT, queue, 1, lease=lease, worker=worker, alone=True, token=None):
            if claim.tenant is not None:
                fill_window(db, queue, claim.tenant, 1)
            return claim
    return None


def _paused(db: Db, queue: str) -> bool:
    return db.value("SELECT 1 FROM holdfast_queue WHERE name = ?", queue) is not None


def _take(
    db: Db, sql: str, queue: str, most: int, *, lease: float, worker: str, alone: bool, token: int | None
) -> list[Claim]:
    """Read first and write only if there is something: an idle poll must not cost a commit."""
    params = {"queue": queue, "now": db.now, "most": most, "alone": alone}
    rows: list[Row] = db.connection.execute(sql, params).fetchall()
    if not rows:
        return []
    token, until = token or db.draw("token"), db.now + lease
    taken = numbers(row[-1] for row in rows)
    params = {
        "token": token,
        "until": until,
        "worker": worker,
        "alone": alone,
        "now": db.now,
        "numbers": taken,
    }
    db.connection.execute(_RUN, params)
    db.run(_UNQUEUE, taken)
    return [to_claim(row, token, until) for row in rows]


def renew(db: Db, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
    sql = """UPDATE holdfast_running SET lease_until = ?
        WHERE seq = ? AND token = ? AND lease_until > ? AND seq = (SELECT seq FROM holdfast_job WHERE id = ?)
        RETURNING stop"""
    until, renewed = db.now + lease, list[Renewal]()
    for held in claims:
        if (row := db.row(sql, until, held.row, held.token, db.now, held.job_id)) is not None:
            renewed.append(Renewal(held.job_id, held.token, until, row[0]))
    return renewed


def held_by(db: Db, worker: str) -> list[Claim]:
    sql = f"""SELECT r.token, r.lease_until, j.id, {CLAIM.format(attempt="r.attempt", alone="r.alone", due="NULL")}
        FROM holdfast_running AS r CROSS JOIN holdfast_job AS j ON j.seq = r.seq WHERE r.worker = ? ORDER BY r.seq"""
    return [to_claim(tuple(row), token, until) for token, until, *row in db.rows(sql, worker)]


def report(db: Db, held: Claim, *, progress: float | None, note: str | None) -> bool:
    sql = """UPDATE holdfast_running SET progress = coalesce(?, progress), note = coalesce(?, note)
        WHERE seq = ? AND token = ? AND seq = (SELECT seq FROM holdfast_job WHERE id = ?)"""
    return bool(db.run(sql, progress, note, held.row, held.token, held.job_id))


def finish_and_claim(
    db: Db, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
) -> tuple[Sequence[bool | None], list[Claim]]:
    return finish(db, finishes), claim(db, wants, lease=lease, worker=worker)


@checked
class Claims(Subject):
    async def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        return await self._file.write(partial(claim, wants=wants, lease=lease, worker=worker))

    async def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        return await self._file.write(partial(claim_suspect, queues=queues, lease=lease, worker=worker))

    async def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        return await self._file.write(
            partial(renew, claims=claims, lease=lease), urgent=True, repeatable=True
        )

    async def finish(
        self, finishes: Sequence[Finish], *, tx: object | None = None, parks: bool = False
    ) -> list[bool]:
        call = partial(finish, finishes=finishes)
        if tx is not None:
            beside = partial(finish, finishes=finishes, beside=not parks)
            return all_held(finishes, await self._file.write(beside, tx=tx))
        try:
            return await self._file.write(call)
        except CommitUnknown as lost:
            return await settling.finished(self._file, finishes, lost, call)

    async def finish_and_claim(
        self, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> tuple[Sequence[bool | None], list[Claim]]:
        call = partial(finish_and_claim, finishes=finishes, wants=wants, lease=lease, worker=worker)
        try:
            return await self._file.write(call)
        except CommitUnknown as lost:
            if not finishes:
                raise
            # What was claimed, if anything, is held by this worker, which finds it and puts it back.
            tell("claim.answer_lost", worker=worker, error=repr(lost))
            again = partial(finish, finishes=finishes)
            return await settling.finished(self._file, finishes, lost, again), []

    async def release(self, claims: Sequence[Claim], *, tx: object | None = None) -> list[bool]:
        call = partial(release, claims=claims)
        if tx is not None:
            return await self._file.write(call, tx=tx)
        try:
            return await self._file.write(call)
        except CommitUnknown as lost:
            return await settling.put_back(self._file, claims, lost, call)

    async def held_by(self, worker: str) -> list[Claim]:
        return await self._file.read(partial(held_by, worker=worker))

    async def report(self, claim: Claim, *, progress: float | None = None, note: str | None = None) -> bool:
        return await self._file.write(
            partial(report, held=claim, progress=progress, note=note), repeatable=True
        )

    async def settle(self, job_id: str, token: int) -> bool:
        return await self._file.read(partial(settle, job_id=job_id, token=token))

    async def rescue(self, *, limit: int = 100, tx: object | None = None) -> list[Rescue]:
        found: list[Rescue] = []

        def call(db: Db) -> list[Rescue]:
            found[:] = rescue(db, limit=limit)
            return [*found]

        try:
            return await self._file.write(call, tx=tx)
        except CommitUnknown:
            if found:
                raise
            return []  # nothing was written, so nothing is unknown

    async def rescue_worker(self, worker: str, *, tx: object | None = None) -> list[Rescue]:
        rescued: list[Rescue] = []
        while part := await self._file.write(partial(rescue_worker, worker=worker), tx=tx):
            rescued += part
        return rescued
