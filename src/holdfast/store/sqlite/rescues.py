"""Put back jobs whose worker was lost. The new token comes first, so that the old one never matches again."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.records import STRIKES_LIMIT, Claim, Rescue
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.finishes import die, put_back
from holdfast.store.sqlite.moves import Freed, pass_on
from holdfast.store.sqlite.rows import CLAIM, Row, to_claim
from holdfast.store.states import State

BATCH = 500  # jobs in one transaction
_LOST = f"""
    SELECT r.token, r.worker, j.strikes, j.id, {CLAIM.format(attempt="r.attempt", alone="r.alone", due="NULL")}
    FROM holdfast_running AS r CROSS JOIN holdfast_job AS j ON j.seq = r.seq WHERE"""


def rescue(db: Db, *, limit: int) -> list[Rescue]:
    return _interrupt(
        db, db.rows(f"{_LOST} r.lease_until <= ? ORDER BY r.lease_until, r.seq LIMIT ?", db.now, limit)
    )


def rescue_worker(db: Db, worker: str) -> list[Rescue]:
    """At most one batch, so that others get the write lock in between; whoever calls this calls again."""
    return _interrupt(db, db.rows(f"{_LOST} r.worker = ? ORDER BY r.seq LIMIT ?", worker, BATCH))


def _interrupt(db: Db, rows: Sequence[Row]) -> list[Rescue]:
    rescued, freed = list[Rescue](), list[Freed]()
    for token, worker, strikes, *claim_row in rows:
        lost = to_claim(tuple(claim_row), db.draw("token"), db.now)
        rescued.append(_interrupt_one(db, lost, token, worker, strikes + lost.alone))
        freed.append(Freed(lost.ordered, lost.concurrency))
    pass_on(db, freed)
    return rescued


def _interrupt_one(db: Db, lost: Claim, token: int, worker: str, strikes: int) -> Rescue:
    db.run("UPDATE holdfast_running SET token = ? WHERE seq = ?", lost.token, lost.row)
    sql = "UPDATE holdfast_job SET interruptions = interruptions + 1, strikes = ? WHERE seq = ?"
    db.run(sql, strikes, lost.row)
    if strikes >= STRIKES_LIMIT:
        why = f"its worker died under it {strikes} times while it ran alone"
        state = die(db, lost, why, was=token) or State.DEAD
    else:
        put_back(db, lost, "interrupted", was=token)
        queued = db.value("SELECT 1 FROM holdfast_queued WHERE seq = ?", lost.row)
        state = State.QUEUED if queued else State.CANCELLED
    return Rescue(lost.job_id, worker, state, lost.interruptions + 1, lost.task)
