"""Breakers of a fleet: what each node says of its own, when all of them open, and permits while they are half open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, Hold, NodeBreaker, Probe
from holdfast.store.statements import Procedure, Statement

NODE = "b.node, b.state, b.generation, b.open_for, b.calls, b.failures, b.slow, date_part('epoch', b.at), b.paused"
# What was said after now was said before the clock was set back: whoever lives says it again.
HEARD = "b.at <= n.now AND b.until > n.now"
OPEN = "g.opened_at <= n.now AND g.opened_until > n.now"


def report(node: str, reports: Sequence[BreakerReport], *, ttl: float) -> Procedure[list[FleetBreaker]]:
    ordered = sorted(reports, key=lambda item: item.guard)
    columns = [list(column) for column in zip(*map(_said, ordered), strict=True)]
    rows = yield Statement(_REPORT, (node, float(ttl), *columns))
    told = {guard: _to_fleet(guard, list(group)) for guard, group in groupby(rows, key=lambda row: row[0])}
    return [told[item.guard] for item in reports]


def _said(item: BreakerReport) -> tuple[str, str, int, float, int, int, int, float]:
    state = str(item.state)
    return (
        item.guard,
        state,
        item.generation,
        item.open_for,
        item.calls,
        item.failures,
        item.slow,
        item.paused,
    )


# One round trip: what the others said is what was there before. ANY(ARRAY[…]) is looked up one by one, as `rows.same_id`.
_REPORT = f"""
WITH said AS MATERIALIZED (
    SELECT * FROM unnest($3::text[], $4::text[], $5::bigint[], $6::float8[], $7::bigint[], $8::bigint[], $9::bigint[], $10::float8[])
        WITH ORDINALITY AS r (guard, state, generation, open_for, calls, failures, slow, paused, place)),
written AS (
    INSERT INTO holdfast.breaker AS b
        (guard, node, state, generation, open_for, calls, failures, slow, paused, at, until, forget)
    SELECT r.guard, $1::text, r.state, r.generation, r.open_for, r.calls, r.failures, r.slow, r.paused, n.now, n.until,
        ceil(date_part('epoch', n.until) / 60)::bigint
    FROM said AS r CROSS JOIN (SELECT now, now + make_interval(secs => $2::float8) AS until
        FROM (SELECT holdfast.now() AS now) AS m) AS n
    ORDER BY r.place
    ON CONFLICT (guard, node) DO UPDATE SET state = excluded.state, generation = excluded.generation,
        open_for = excluded.open_for, calls = excluded.calls, failures = excluded.failures, slow = excluded.slow,
        paused = excluded.paused,
        at = excluded.at, until = excluded.until, forget = excluded.forget)
SELECT r.guard, g.generation, g.reset_generation,
    CASE WHEN {OPEN} THEN date_part('epoch', g.opened_until) END,
    CASE WHEN {OPEN} THEN date_part('epoch', g.opened_until - n.now) END,
    g.held, g.held_by, date_part('epoch', g.held_at), {NODE}
FROM said AS r CROSS JOIN (SELECT holdfast.now() AS now) AS n
    LEFT JOIN holdfast.guard AS g ON g.name = ANY(ARRAY[r.guard])
    LEFT JOIN holdfast.breaker AS b ON b.guard = ANY(ARRAY[r.guard]) AND b.node <> $1::text AND {HEARD}
ORDER BY r.place, b.node"""


def _to_fleet(guard: str, rows: list[Sequence[Any]]) -> FleetBreaker:
    _, generation, reset, until, open_for, *held = rows[0][:8]
    return FleetBreaker(
        guard=guard,
        generation=generation or 0,
        reset=reset or 0,
        opened_until=until,
        open_for=open_for or 0.0,
        held=to_hold(*held),
        others=tuple(to_node(row[8:]) for row in rows if row[8] is not None),
    )


def to_hold(state: str | None, by: str, at: float) -> Hold | None:
    return None if state is None else Hold(BreakerState(state), by, at)


def to_node(row: Sequence[Any]) -> NodeBreaker:
    return NodeBreaker(row[0], BreakerState(row[1]), *row[2:])


def open_fleet(name: str, *, generation: int, open_for: float) -> Procedure[bool]:
    return bool((yield Statement(_OPEN_FLEET, (name, generation, float(open_for)))))


# The first time it has no row yet, and its generation is 0.
_OPEN_FLEET = """
INSERT INTO holdfast.guard AS g (name, generation, opened_at, opened_until)
SELECT $1::text, 1, n.now, n.now + make_interval(secs => $3::float8) FROM (SELECT holdfast.now() AS now) AS n
WHERE $2::bigint = 0 OR EXISTS (SELECT 1 FROM holdfast.guard WHERE name = $1::text)
ON CONFLICT (name) DO UPDATE SET generation = g.generation + 1, (opened_at, opened_until) = (
    SELECT n.now, n.now + make_interval(secs => $3::float8) FROM (SELECT holdfast.now() AS now) AS n)
WHERE g.generation = $2::bigint RETURNING g.generation"""


def close_fleet(name: str, *, generation: int) -> Procedure[bool]:
    return bool((yield Statement(_CLOSE_FLEET, (name, generation))))


_CLOSE_FLEET = """
UPDATE holdfast.guard SET generation = generation + 1, opened_at = NULL, opened_until = NULL
WHERE name = $1::text AND generation = $2::bigint RETURNING generation"""


def probe(name: str, node: str, *, permits: int, lease: float) -> Procedure[Probe | None]:
    """One at a time for each guard: two who count at once would both find room."""
    yield Statement(TURN, (name,))
    yield Statement(_SET_BACK, (name,))
    rows = yield Statement(_PROBE, (name, node, permits, float(lease)))
    return Probe(name, node, *rows[0]) if rows else None


TURN = "INSERT INTO holdfast.guard (name) VALUES ($1::text) ON CONFLICT (name) DO UPDATE SET name = excluded.name"
# After the clock was set back, permits that are out go with it: none ends early, and none lasts for ever.
_SET_BACK = """
UPDATE holdfast.probe AS p SET (at, until) = (
    SELECT least(p.at, n.now), p.until - greatest(p.at - n.now, interval '0') FROM (SELECT holdfast.now() AS now) AS n)
WHERE p.guard = $1::text AND p.at > (SELECT holdfast.now())"""
_PROBE = """
INSERT INTO holdfast.probe (token, guard, node, at, until, forget)
SELECT nextval('holdfast.token'), $1::text, $2::text, n.now, n.now + make_interval(secs => $4::float8),
    ceil((date_part('epoch', n.now) + $4::float8) / 60)::bigint
FROM (SELECT holdfast.now() AS now) AS n
WHERE (SELECT count(*) FROM holdfast.probe AS p WHERE p.guard = $1::text AND p.until > n.now) < $3::bigint
RETURNING token, date_part('epoch', until)"""


def probed(permit: Probe) -> Procedure[bool]:
    return bool((yield Statement(_PROBED, (permit.token, permit.guard))))


_PROBED = """
DELETE FROM holdfast.probe WHERE token = $1::bigint AND guard = $2::text AND until > (SELECT holdfast.now())
RETURNING token"""
