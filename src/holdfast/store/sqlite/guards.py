"""What a fleet's guards share: quota, breakers, what people decide about them, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
    Hold,
    Probe,
)
from holdfast.store.edge import checked
from holdfast.store.quota import Grant, Pace, Return, Want
from holdfast.store.sqlite import audit, breakers, quota
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject


def hold(db: Db, name: str, state: BreakerState, *, actor: str) -> None:
    before = _held(db, name)
    if before is not None and before.state is state:
        return
    sql = """INSERT INTO holdfast_guard (name, held, held_by, held_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (name) DO UPDATE SET held = excluded.held, held_by = excluded.held_by, held_at = excluded.held_at"""
    db.run(sql, name, state, actor, db.now)
    audit.write(db, verdicts.guard_held(name, before, state, actor=actor))


def let_go(db: Db, name: str, *, actor: str) -> bool:
    if (before := _held(db, name)) is None:
        return False
    db.run("UPDATE holdfast_guard SET held = NULL, held_by = NULL, held_at = NULL WHERE name = ?", name)
    audit.write(db, verdicts.guard_let_go(name, before, actor=actor))
    return True


def _held(db: Db, name: str) -> Hold | None:
    row = db.row("SELECT held, held_by, held_at FROM holdfast_guard WHERE name = ?", name)
    return None if row is None else breakers.to_hold(*row)


def reset(db: Db, name: str, *, actor: str) -> bool:
    if not _is_known(db, name):
        return False
    keys = quota.free(db, name, limit=KEYS_COUNTED)
    db.run("DELETE FROM holdfast_breaker WHERE guard = ?", name)
    db.run("DELETE FROM holdfast_probe WHERE guard = ?", name)
    db.run(breakers.KNOWN, name)
    [(opened_at, until)] = db.rows("SELECT opened_at, opened_until FROM holdfast_guard WHERE name = ?", name)
    db.run(
        """UPDATE holdfast_guard SET generation = generation + 1, reset_generation = generation + 1,
            opened_at = NULL, opened_until = NULL WHERE name = ?""",
        name,
    )
    audit.write(
        db, verdicts.guard_reset(name, breakers.open_until(opened_at, until, db.now), keys, actor=actor)
    )
    return True


def _is_known(db: Db, name: str) -> bool:
    sql = """SELECT EXISTS (SELECT 1 FROM holdfast_guard WHERE name = ?)
        OR EXISTS (SELECT 1 FROM holdfast_breaker WHERE guard = ?)
        OR EXISTS (SELECT 1 FROM holdfast_bucket WHERE name = ?)"""
    return bool(db.value(sql, name, name, name))


def find(db: Db, *, limit: int) -> list[GuardRecord]:
    sources = (("holdfast_guard", "name"), ("holdfast_breaker", "guard"), ("holdfast_bucket", "name"))
    names = sorted({name for table, column in sources for name in _names(db, table, column, limit)})
    return [_record(db, name) for name in names[:limit]]


def _names(db: Db, table: str, column: str, limit: int) -> list[str]:
    """By jumping from one to the next: a limiter may have a million keys."""
    sql = f"""WITH RECURSIVE found (name, number) AS (
            SELECT min({column}), 1 FROM {table}
            UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > found.name), number + 1
            FROM found WHERE found.name IS NOT NULL AND number < ?)
        SELECT name FROM found WHERE name IS NOT NULL"""
    return [name for (name,) in db.rows(sql, limit)]


def _record(db: Db, name: str) -> GuardRecord:
    row = db.row(f"SELECT {breakers.GUARD} FROM holdfast_guard WHERE name = ?", name)
    heard = f"FROM holdfast_breaker WHERE guard = ? AND {breakers.HEARD}"
    nodes = db.rows(
        f"SELECT {breakers.NODE} {heard} ORDER BY node LIMIT ?", name, db.now, db.now, NODES_SHOWN
    )
    return GuardRecord(
        name=name,
        generation=0 if row is None else row[0],
        opened_until=None if row is None else breakers.open_until(row[2], row[3], db.now),
        held=None if row is None else breakers.to_hold(*row[4:7]),
        nodes=tuple(breakers.to_node(node) for node in nodes),
        nodes_number=db.value(f"SELECT count(*) {heard}", name, db.now, db.now),
        probes=db.value("SELECT count(*) FROM holdfast_probe WHERE guard = ? AND until > ?", name, db.now),
        keys=_count(db, name, "1"),
        slowed=_count(db, name, "slowed IS NOT NULL"),
        slowest=_paces(db, name, "slowed IS NOT NULL ORDER BY slowed, key"),
        paused=_count(db, name, "paused_until IS NOT NULL AND paused_until > ?", db.now),
        longest=_paces(
            db,
            name,
            "paused_until IS NOT NULL AND paused_until > ? ORDER BY paused_until DESC, key",
            db.now,
        ),
    )


def _count(db: Db, name: str, which: str, *params: object) -> int:
    sql = f"SELECT count(*) FROM (SELECT 1 FROM holdfast_bucket WHERE name = ? AND {which} LIMIT ?)"
    return int(db.value(sql, name, *params, KEYS_COUNTED))


def _paces(db: Db, name: str, which: str, *params: object) -> tuple[Pace, ...]:
    sql = f"SELECT key, slowed, version, coalesce(max(paused_until - ?, 0.0), 0.0), in_row FROM holdfast_bucket WHERE name = ? AND {which} LIMIT ?"
    return tuple(Pace(name, *row) for row in db.rows(sql, db.now, name, *params, KEYS_SHOWN))


def look(db: Db, name: str, key: str) -> GuardSeen:
    known = bool(_is_known(db, name))
    row = db.row(f"SELECT {breakers.GUARD} FROM holdfast_guard WHERE name = ?", name)
    heard = f"""SELECT count(*), coalesce(sum(state = 'open'), 0), coalesce(sum(calls * (state = 'open')), 0),
        coalesce(sum(failures * (state = 'open')), 0) FROM holdfast_breaker WHERE guard = ? AND {breakers.HEARD}"""
    nodes, nodes_open, calls, failures = db.rows(heard, name, db.now, db.now)[0]
    bucket = db.row(
        """SELECT slowed, coalesce(max(paused_until - ?, 0.0), 0.0), in_row FROM holdfast_bucket
            WHERE name = ? AND key = ?""",
        db.now,
        name,
        key,
    )
    rate, paused, in_row = bucket or (None, 0.0, 0)
    return GuardSeen(
        name=name,
        key=key,
        now=db.now,
        known=known,
        opened_at=None if row is None else row[2],
        opened_until=None if row is None else breakers.open_until(row[2], row[3], db.now),
        held=None if row is None else breakers.to_hold(*row[4:7]),
        nodes=nodes,
        nodes_open=nodes_open,
        calls=calls,
        failures=failures,
        rate=rate,
        paused=paused,
        in_row=in_row,
        jobs=_jobs(db, name, key),
    )


_HELD = "SELECT 1 FROM holdfast_queued WHERE held = 'guard' AND "


def _jobs(db: Db, name: str, key: str) -> int:
    """Under one key; else under all of them: a slash stands behind the name, and `0` is the sign after that."""
    exact = f"SELECT count(*) FROM ({_HELD} gate = ? LIMIT ?)"
    number: int = db.value(exact, f"{name}/{key}" if key else name, JOBS_COUNTED)
    if not key:
        below = f"SELECT count(*) FROM ({_HELD} gate >= ? AND gate < ? LIMIT ?)"
        number += db.value(below, f"{name}/", f"{name}0", JOBS_COUNTED)
    return min(number, JOBS_COUNTED)


def prune(db: Db, *, limit: int) -> int:
    pruned = 0
    for sql in _PRUNES:
        if pruned < limit:
            pruned += db.run(sql, int(db.now // 60), limit - pruned)
    return pruned


_PRUNE = """DELETE FROM {table} WHERE ({key}) IN
    (SELECT {key} FROM {table} WHERE forget <= ? ORDER BY forget LIMIT ?)"""
_PRUNES = [
    _PRUNE.format(table=f"holdfast_{name}", key=key)
    for name, key in (("breaker", "guard, node"), ("bucket", "name, key"), ("probe", "token"))
]


@checked
class Guards(Subject):
    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        # Repeating is safe: what the first try may have taken is used by nobody.
        return await self._file.write(partial(quota.take, wants=wants), repeatable=True) if wants else []

    async def ahead(self, name: str, keys: Sequence[str], *, seconds: float) -> list[float]:
        return await self._file.read(partial(quota.ahead, name=name, keys=keys, seconds=seconds))

    async def give_back(self, returns: Sequence[Return]) -> None:
        if returns:
            await self._file.write(partial(quota.give_back, returns=returns))

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
        call = partial(quota.slow, name=name, key=key, rate=rate, pause=pause, version=version, in_row=in_row)
        return await self._file.write(call, repeatable=True)

    async def calm(self, name: str, key: str, *, in_row: int) -> Pace:
        call = partial(quota.calm, name=name, key=key, in_row=in_row)
        return await self._file.write(call, repeatable=True)

    async def sped(self, name: str, key: str, *, rate: float | None, version: int) -> Pace:
        call = partial(quota.sped, name=name, key=key, rate=rate, version=version)
        return await self._file.write(call, repeatable=True)

    async def report(self, node: str, reports: Sequence[BreakerReport], *, ttl: float) -> list[FleetBreaker]:
        if not reports:
            return []
        call = partial(breakers.report, node=node, reports=reports, ttl=ttl)
        return await self._file.write(call, repeatable=True)

    async def open_fleet(self, name: str, *, generation: int, open_for: float) -> bool:
        call = partial(breakers.open_fleet, name=name, generation=generation, open_for=open_for)
        return await self._file.write(call)

    async def close_fleet(self, name: str, *, generation: int) -> bool:
        return await self._file.write(partial(breakers.close_fleet, name=name, generation=generation))

    async def probe(self, name: str, node: str, *, permits: int, lease: float) -> Probe | None:
        call = partial(breakers.probe, name=name, node=node, permits=permits, lease=lease)
        return await self._file.write(call)

    async def probed(self, probe: Probe) -> bool:
        return await self._file.write(partial(breakers.probed, permit=probe))

    async def hold(self, name: str, state: BreakerState, *, actor: str) -> None:
        await self._file.write(partial(hold, name=name, state=state, actor=actor), repeatable=True)

    async def let_go(self, name: str, *, actor: str) -> bool:
        return await self._file.write(partial(let_go, name=name, actor=actor))

    async def reset(self, name: str, *, actor: str) -> bool:
        return await self._file.write(partial(reset, name=name, actor=actor))

    async def find(self, *, limit: int = 100) -> list[GuardRecord]:
        return await self._file.read(partial(find, limit=limit))

    async def look(self, name: str, key: str = "") -> GuardSeen:
        return await self._file.read(partial(look, name=name, key=key))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, limit=limit), repeatable=True)
