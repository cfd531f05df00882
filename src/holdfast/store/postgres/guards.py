"""What a fleet's guards share: quota, breakers, what people decide about them, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store import verdicts
from holdfast.store.breakers import (
    JOBS_COUNTED,
    KEYS_COUNTED,
    KEYS_SHOWN,
    NODES_SHOWN,
    BreakerReport,
    BreakerState,
    FleetBreaker,
    GuardRecord,
    GuardSeen,
    Probe,
)
from holdfast.store.edge import checked
from holdfast.store.postgres import audit, breakers, quota
from holdfast.store.postgres.gates import GATE
from holdfast.store.postgres.subject import Subject
from holdfast.store.quota import Grant, Pace, Return, Want
from holdfast.store.statements import Procedure, Statement


def hold(name: str, state: BreakerState, *, actor: str) -> Procedure[None]:
    yield Statement(breakers.TURN, (name,))
    [row] = yield Statement(_LOCK, (name,))
    before = breakers.to_hold(*row[:3])
    if before is None or before.state is not state:
        yield Statement(_HOLD, (name, str(state), actor))
        yield from audit.write(verdicts.guard_held(name, before, state, actor=actor))


_LOCK = """
SELECT g.held, g.held_by, date_part('epoch', g.held_at),
    CASE WHEN g.opened_at <= holdfast.now() AND g.opened_until > holdfast.now() THEN date_part('epoch', g.opened_until) END
FROM holdfast.guard AS g WHERE g.name = $1::text FOR UPDATE"""
_HOLD = """
UPDATE holdfast.guard SET held = $2::text, held_by = $3::text, held_at = holdfast.now() WHERE name = $1::text"""


def let_go(name: str, *, actor: str) -> Procedure[bool]:
    rows = yield Statement(_LOCK, (name,))
    before = breakers.to_hold(*rows[0][:3]) if rows else None
    if before is None:
        return False
    sql = "UPDATE holdfast.guard SET held = NULL, held_by = NULL, held_at = NULL WHERE name = $1::text"
    yield Statement(sql, (name,))
    yield from audit.write(verdicts.guard_let_go(name, before, actor=actor))
    return True


def reset(name: str, *, actor: str) -> Procedure[bool]:
    [(known,)] = yield Statement(_KNOWN, (name,))
    if not known:
        return False
    yield Statement(breakers.TURN, (name,))
    [row] = yield Statement(_LOCK, (name,))
    yield Statement(_RESET, (name,))
    yield Statement("DELETE FROM holdfast.probe WHERE guard = $1::text", (name,))
    yield Statement(_SILENCE, (name,))
    keys = yield from quota.free(name, limit=KEYS_COUNTED)
    yield from audit.write(verdicts.guard_reset(name, row[3], keys, actor=actor))
    return True


_KNOWN = """
SELECT EXISTS (SELECT 1 FROM holdfast.guard WHERE name = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast.breaker WHERE guard = $1::text)
    OR EXISTS (SELECT 1 FROM holdfast.bucket WHERE name = $1::text)"""
_RESET = """
UPDATE holdfast.guard SET generation = generation + 1, reset_generation = generation + 1, opened_at = NULL,
    opened_until = NULL WHERE name = $1::text"""
# Rows are locked in the order in which others lock them.
_SILENCE = """
WITH silenced AS MATERIALIZED (
    SELECT guard, node FROM holdfast.breaker WHERE guard = $1::text ORDER BY node FOR UPDATE)
DELETE FROM holdfast.breaker AS b USING silenced AS s
WHERE b.guard = ANY(ARRAY[s.guard]) AND b.node = ANY(ARRAY[s.node])"""


def find(limit: int) -> Procedure[list[GuardRecord]]:
    names = [name for (name,) in (yield Statement(_NAMES, (limit,)))]
    if not names:
        return []
    guards = yield Statement(_GUARDS, (names, KEYS_COUNTED))
    nodes = yield Statement(_NODES, (names, NODES_SHOWN))
    slowest = yield Statement(_SLOWEST, (names, KEYS_SHOWN))
    longest = yield Statement(_LONGEST, (names, KEYS_SHOWN))
    return [_to_record(row, nodes, slowest, longest) for row in guards]


def _names(table: str, column: str) -> str:
    """By jumping from one to the next: a limiter may have a million keys."""
    return f"""(WITH RECURSIVE found AS (
        (SELECT {column} AS name FROM {table} ORDER BY {column} LIMIT 1)
        UNION ALL SELECT (SELECT t.{column} FROM {table} AS t WHERE t.{column} > found.name ORDER BY t.{column} LIMIT 1)
        FROM found WHERE found.name IS NOT NULL)
    SELECT name FROM found WHERE name IS NOT NULL LIMIT $1)"""


_NAMES = f"""
{_names("holdfast.guard", "name")} UNION {_names("holdfast.breaker", "guard")} UNION {_names("holdfast.bucket", "name")}
ORDER BY 1 LIMIT $1"""
_OF_EACH = """FROM unnest($1::text[]) WITH ORDINALITY AS w (name, place)
    CROSS JOIN (SELECT holdfast.now() AS now) AS n"""
_COUNT = (
    "(SELECT count(*) FROM (SELECT 1 FROM holdfast.bucket AS b WHERE b.name = w.name {} LIMIT $2) AS counted)"
)
_GUARDS = f"""
SELECT w.name, coalesce(g.generation, 0), CASE WHEN {breakers.OPEN} THEN date_part('epoch', g.opened_until) END,
    g.held, g.held_by, date_part('epoch', g.held_at),
    (SELECT count(*) FROM holdfast.breaker AS b WHERE b.guard = w.name AND {breakers.HEARD}),
    (SELECT count(*) FROM holdfast.probe AS p WHERE p.guard = w.name AND p.until > n.now),
    {_COUNT.format("")}, {_COUNT.format("AND b.slowed IS NOT NULL")},
    {_COUNT.format("AND b.paused_until IS NOT NULL AND b.paused_until > n.now")}
{_OF_EACH} LEFT JOIN holdfast.guard AS g ON g.name = ANY(ARRAY[w.name]) ORDER BY w.place"""
_NODES = f"""
SELECT w.name, f.* {_OF_EACH} CROSS JOIN LATERAL (
    SELECT {breakers.NODE} FROM holdfast.breaker AS b WHERE b.guard = w.name AND {breakers.HEARD}
    ORDER BY b.node LIMIT $2) AS f ORDER BY w.place, f.node"""
_PACE = """b.name, b.key, b.slowed, b.version,
    coalesce(greatest(date_part('epoch', b.paused_until - n.now), 0), 0) AS paused, b.in_row"""
_SLOWEST = f"""
SELECT f.* {_OF_EACH} CROSS JOIN LATERAL (
    SELECT {_PACE} FROM holdfast.bucket AS b WHERE b.name = w.name AND b.slowed IS NOT NULL
    ORDER BY b.slowed, b.key LIMIT $2) AS f ORDER BY w.place, f.slowed, f.key"""
_LONGEST = f"""
SELECT f.* {_OF_EACH} CROSS JOIN LATERAL (
    SELECT {_PACE} FROM holdfast.bucket AS b WHERE b.name = w.name AND b.paused_until IS NOT NULL
        AND b.paused_until > n.now
    ORDER BY b.paused_until DESC, b.key LIMIT $2) AS f ORDER BY w.place, f.paused DESC, f.key"""


def look(name: str, key: str) -> Procedure[GuardSeen]:
    [row] = yield Statement(_LOOK, (name, key, f"{name}/{key}" if key else name, not key, JOBS_COUNTED))
    return GuardSeen(
        name=name,
        key=key,
        now=row[0],
        known=row[1],
        opened_at=row[2],
        opened_until=row[3],
        held=breakers.to_hold(*row[4:7]),
        nodes=row[7],
        nodes_open=row[8],
        calls=row[9],
        failures=row[10],
        rate=row[11],
        paused=row[12],
        in_row=row[13],
        jobs=min(row[14] + row[15], JOBS_COUNTED),
    )


# Jobs under all keys: a slash stands behind the name, and `0` is the sign after that.
_LOOK = f"""
SELECT date_part('epoch', n.now), g.name IS NOT NULL OR h.nodes > 0
        OR EXISTS (SELECT FROM holdfast.bucket AS k WHERE k.name = w.name),
    date_part('epoch', g.opened_at), CASE WHEN {breakers.OPEN} THEN date_part('epoch', g.opened_until) END,
    g.held, g.held_by, date_part('epoch', g.held_at), h.nodes, h.open, h.calls, h.failures,
    b.slowed, coalesce(greatest(date_part('epoch', b.paused_until - n.now), 0), 0), coalesce(b.in_row, 0),
    (SELECT count(*) FROM (SELECT FROM holdfast.job j WHERE j.held = 'guard' AND {GATE} = $3::text LIMIT $5) AS e),
    CASE WHEN $4::bool THEN (SELECT count(*) FROM (SELECT FROM holdfast.job j WHERE j.held = 'guard'
        AND {GATE} >= w.name || '/' AND {GATE} < w.name || '0' LIMIT $5) AS e) ELSE 0 END
FROM (SELECT $1::text COLLATE "C" AS name) AS w CROSS JOIN (SELECT holdfast.now() AS now) AS n
LEFT JOIN holdfast.guard AS g ON g.name = ANY(ARRAY[w.name])
LEFT JOIN holdfast.bucket AS b ON b.name = ANY(ARRAY[w.name]) AND b.key = $2::text
CROSS JOIN LATERAL (
    SELECT count(*) AS nodes, count(*) FILTER (WHERE b.state = 'open') AS open,
        coalesce(sum(b.calls) FILTER (WHERE b.state = 'open'), 0)::bigint AS calls,
        coalesce(sum(b.failures) FILTER (WHERE b.state = 'open'), 0)::bigint AS failures
    FROM holdfast.breaker AS b WHERE b.guard = w.name AND {breakers.HEARD}) AS h"""


def _to_record(
    row: Sequence[Any],
    nodes: Sequence[Sequence[Any]],
    slowest: Sequence[Sequence[Any]],
    longest: Sequence[Sequence[Any]],
) -> GuardRecord:
    name = row[0]
    return GuardRecord(
        name=name,
        generation=row[1],
        opened_until=row[2],
        held=breakers.to_hold(*row[3:6]),
        nodes=tuple(breakers.to_node(node[1:]) for node in nodes if node[0] == name),
        nodes_number=row[6],
        probes=row[7],
        keys=row[8],
        slowed=row[9],
        slowest=tuple(Pace(*pace) for pace in slowest if pace[0] == name),
        paused=row[10],
        longest=tuple(Pace(*pace) for pace in longest if pace[0] == name),
    )


def prune(limit: int) -> Procedure[int]:
    pruned = 0
    for sql in _PRUNES:
        if pruned < limit:
            pruned += len((yield Statement(sql, (limit - pruned,))))
    return pruned


# Whoever holds a row's lock is using it right now.
_PRUNE = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {table} WHERE forget <= (SELECT floor(date_part('epoch', holdfast.now()) / 60)::bigint)
    ORDER BY forget LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1"""
_PRUNES = [_PRUNE.format(table=f"holdfast.{name}") for name in ("breaker", "bucket", "probe")]


@checked
class Guards(Subject):
    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        # Repeating is safe: what the first try may have taken is used by nobody.
        return await self._database.write(partial(quota.take, wants), repeatable=True) if wants else []

    async def ahead(self, name: str, keys: Sequence[str], *, seconds: float) -> list[float]:
        return await self._database.read(partial(quota.ahead, name, keys, seconds=seconds))

    async def give_back(self, returns: Sequence[Return]) -> None:
        if returns:
            await self._database.write(partial(quota.give_back, returns))

    async def slow(
        self,
        name: str,
        key: str,
        *,
        rate: float | None,
        pause: float = 0.0,
        version: int = 0,
        in_row: int = 0,
    ) -> Pace:
        make = partial(quota.slow, name, key, rate=rate, pause=pause, version=version, in_row=in_row)
        return await self._database.write(make, repeatable=True)

    async def calm(self, name: str, key: str, *, in_row: int) -> Pace:
        make = partial(quota.calm, name, key, in_row=in_row)
        return await self._database.write(make, repeatable=True)

    async def sped(self, name: str, key: str, *, rate: float | None, version: int) -> Pace:
        make = partial(quota.sped, name, key, rate=rate, version=version)
        return await self._database.write(make, repeatable=True)

    async def report(self, node: str, reports: Sequence[BreakerReport], *, ttl: float) -> list[FleetBreaker]:
        if not reports:
            return []
        make = partial(breakers.report, node, reports, ttl=ttl)
        return await self._database.write(make, repeatable=True)

    async def open_fleet(self, name: str, *, generation: int, open_for: float) -> bool:
        make = partial(breakers.open_fleet, name, generation=generation, open_for=open_for)
        return await self._database.write(make)

    async def close_fleet(self, name: str, *, generation: int) -> bool:
        return await self._database.write(partial(breakers.close_fleet, name, generation=generation))

    async def probe(self, name: str, node: str, *, permits: int, lease: float) -> Probe | None:
        make = partial(breakers.probe, name, node, permits=permits, lease=lease)
        return await self._database.atomic(make)

    async def probed(self, probe: Probe) -> bool:
        return await self._database.write(partial(breakers.probed, probe))

    async def hold(self, name: str, state: BreakerState, *, actor: str) -> None:
        await self._database.atomic(partial(hold, name, state, actor=actor), repeatable=True)

    async def let_go(self, name: str, *, actor: str) -> bool:
        return await self._database.atomic(partial(let_go, name, actor=actor))

    async def reset(self, name: str, *, actor: str) -> bool:
        return await self._database.atomic(partial(reset, name, actor=actor))

    async def find(self, *, limit: int = 100) -> list[GuardRecord]:
        return await self._database.read(partial(find, limit))

    async def look(self, name: str, key: str = "") -> GuardSeen:
        return await self._database.read(partial(look, name, key))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, limit), repeatable=True)
