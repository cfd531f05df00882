"""Unknown jobs whose lookups are due: given out for a look while they stay unknown, and what a look in vain leaves."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.records import Claim
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import CLAIM, to_claim

_DUE = f"""
    SELECT p.token, j.id, {CLAIM.format(attempt="p.attempt", alone="0", due="NULL")}
    FROM holdfast_parked AS p CROSS JOIN holdfast_job AS j ON j.seq = p.seq
    WHERE p.look_at IS NOT NULL AND p.look_at <= ?1 AND p.state = 'unknown' AND j.task IN (SELECT value FROM json_each(?2))
        AND (?3 IS NULL OR j.queue IN (SELECT value FROM json_each(?3)))
        AND NOT EXISTS (SELECT 1 FROM holdfast_queue AS q WHERE q.name = j.queue)
    ORDER BY p.look_at LIMIT ?4"""
_COUNT = """
    UPDATE holdfast_step SET looks = looks + 1 WHERE seq = ?1 AND progress = 'unknown'
        AND generation = (SELECT generation FROM holdfast_job WHERE seq = ?1)"""


def is_due(db: Db) -> bool:
    sql = "SELECT 1 FROM holdfast_parked WHERE look_at IS NOT NULL AND look_at <= ? LIMIT 1"
    return db.value(sql, db.now) is not None


def to_look(
    db: Db, tasks: Sequence[str], queues: Sequence[str] | None, *, lease: float, limit: int
) -> list[Claim]:
    rows = db.rows(_DUE, db.now, _texts(tasks), None if queues is None else _texts(queues), limit)
    until = db.now + lease
    claims = [to_claim(tuple(row), token, until) for token, *row in rows]
    db.run_many(
        "UPDATE holdfast_parked SET look_at = ? WHERE seq = ?", [(until, claim.row) for claim in claims]
    )
    return claims


def looked(db: Db, job_id: str, token: int, *, after: float | None, counted: bool) -> bool:
    sql = """SELECT p.seq FROM holdfast_job AS j CROSS JOIN holdfast_parked AS p USING (seq)
        WHERE j.id = ? AND p.token = ? AND p.state = 'unknown'"""
    seq = db.value(sql, job_id, token)
    if seq is None:
        return False
    at = None if after is None else db.now + after
    db.run("UPDATE holdfast_parked SET look_at = ? WHERE seq = ?", at, seq)
    if counted:
        db.run(_COUNT, seq)
    return True


def _texts(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
