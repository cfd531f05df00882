"""Breakers of a fleet: what each node says of its own, when all of them open, and permits while they are half open."""

from __future__ import annotations

import math
from collections.abc import Sequence

from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, Hold, NodeBreaker, Probe
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row

GUARD = "generation, reset_generation, opened_at, opened_until, held, held_by, held_at"
NODE = "node, state, generation, open_for, calls, failures, slow, at, paused"
# What was said after now was said before the clock was set back: whoever lives says it again.
HEARD = "at <= ? AND until > ?"

KNOWN = "INSERT INTO holdfast_guard (name) VALUES (?) ON CONFLICT DO NOTHING"


def report(db: Db, node: str, reports: Sequence[BreakerReport], *, ttl: float) -> list[FleetBreaker]:
    until = db.now + ttl
    for item in reports:
        values = (
            item.state,
            item.generation,
            item.open_for,
            item.calls,
            item.failures,
            item.slow,
            item.paused,
        )
        db.run(_REPORT, item.guard, node, *values, db.now, until, math.ceil(until / 60))
    return [_told(db, item.guard, node) for item in reports]


_REPORT = """
INSERT INTO holdfast_breaker (guard, node, state, generation, open_for, calls, failures, slow, paused, at, until, forget)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (guard, node) DO UPDATE SET state = excluded.state, generation = excluded.generation,
    open_for = excluded.open_for, calls = excluded.calls, failures = excluded.failures, slow = excluded.slow,
    paused = excluded.paused,
    at = excluded.at, until = excluded.until, forget = excluded.forget"""


def _told(db: Db, guard: str, node: str) -> FleetBreaker:
    sql = f"SELECT {NODE} FROM holdfast_breaker WHERE guard = ? AND node <> ? AND {HEARD} ORDER BY node"
    others = tuple(to_node(row) for row in db.rows(sql, guard, node, db.now, db.now))
    row = db.row(f"SELECT {GUARD} FROM holdfast_guard WHERE name = ?", guard)
    return FleetBreaker(guard=guard, others=others) if row is None else _to_fleet(guard, row, others, db.now)


def _to_fleet(guard: str, row: Row, others: tuple[NodeBreaker, ...], now: float) -> FleetBreaker:
    until = open_until(row[2], row[3], now)
    return FleetBreaker(
        guard=guard,
        generation=row[0],
        reset=row[1],
        opened_until=until,
        open_for=0.0 if until is None else until - now,
        held=to_hold(*row[4:7]),
        others=others,
    )


def open_until(opened_at: float | None, until: float | None, now: float) -> float | None:
    """None when it is over; also when the clock was set back behind its beginning, or it could last for ever."""
    return until if opened_at is not None and until is not None and opened_at <= now < until else None


def to_hold(state: str | None, by: str, at: float) -> Hold | None:
    return None if state is None else Hold(BreakerState(state), by, at)


def to_node(row: Row) -> NodeBreaker:
    return NodeBreaker(row[0], BreakerState(row[1]), *row[2:])


def open_fleet(db: Db, name: str, *, generation: int, open_for: float) -> bool:
    if generation == 0:
        db.run(KNOWN, name)
    sql = """UPDATE holdfast_guard SET generation = generation + 1, opened_at = ?, opened_until = ?
        WHERE name = ? AND generation = ?"""
    return bool(db.run(sql, db.now, db.now + open_for, name, generation))


def close_fleet(db: Db, name: str, *, generation: int) -> bool:
    sql = """UPDATE holdfast_guard SET generation = generation + 1, opened_at = NULL, opened_until = NULL
        WHERE name = ? AND generation = ?"""
    return bool(db.run(sql, name, generation))


def probe(db: Db, name: str, node: str, *, permits: int, lease: float) -> Probe | None:
    db.run(KNOWN, name)
    # After the clock was set back, permits that are out go with it: none ends early, and none lasts for ever.
    back = "UPDATE holdfast_probe SET until = until - (at - ?), at = ? WHERE guard = ? AND at > ?"
    db.run(back, db.now, db.now, name, db.now)
    out = db.value("SELECT count(*) FROM holdfast_probe WHERE guard = ? AND until > ?", name, db.now)
    if out >= permits:
        return None
    permit = Probe(name, node, db.draw("token"), db.now + lease)
    sql = "INSERT INTO holdfast_probe (token, guard, node, at, until, forget) VALUES (?, ?, ?, ?, ?, ?)"
    db.run(sql, permit.token, name, node, db.now, permit.until, math.ceil(permit.until / 60))
    return permit


def probed(db: Db, permit: Probe) -> bool:
    sql = "DELETE FROM holdfast_probe WHERE token = ? AND guard = ? AND until > ?"
    return bool(db.run(sql, permit.token, permit.guard, db.now))
