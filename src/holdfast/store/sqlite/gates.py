"""Jobs that their guards hold: which keys have any, let go of some of each, and hold what would be refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.store.records import GATED_COUNTED, Gated
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moves import fill_window
from holdfast.store.sqlite.rows import IS_DECIDED

LET_GO = """UPDATE holdfast_queued SET rank = ?,
    held = CASE WHEN concurrency_key IS NULL AND tenant IS NULL THEN NULL ELSE 'arrived' END WHERE seq = ?"""


def gated(db: Db, *, after: str | None, limit: int) -> list[Gated]:
    found: list[Gated] = []
    if after is None and (number := db.value(_GATED, None, GATED_COUNTED)):
        found.append(Gated(None, number))
    keys = gates(db, after=after, limit=limit - len(found))
    return found + [Gated(key, db.value(_GATED, key, GATED_COUNTED)) for key in keys]


_GATED = """SELECT count(*) FROM (
    SELECT 1 FROM holdfast_queued WHERE held = 'guard' AND gate IS ? LIMIT ?)"""


def gates(db: Db, *, after: str | None, limit: int) -> list[str]:
    """By jumping from one key to the next: one of them may hold a million jobs."""
    keys, key = list[str](), after or ""
    while len(keys) < limit and (row := db.row(_NEXT_GATE, key)) is not None:
        key = row[0]
        keys.append(key)
    return keys


_NEXT_GATE = "SELECT gate FROM holdfast_queued WHERE held = 'guard' AND gate > ? ORDER BY gate LIMIT 1"


def open_gates(db: Db, numbers: Mapping[str, int]) -> dict[str, int]:
    sql = """SELECT rank, seq, gate FROM holdfast_queued WHERE held = 'guard' AND gate = ? ORDER BY rank LIMIT ?"""
    found = sorted(row for key, number in numbers.items() for row in db.rows(sql, key, number))
    if found:
        rank = db.draw("rank", len(found))
        db.run_many(LET_GO, [(rank + place, seq) for place, (_, seq, _) in enumerate(found)])
    gone = Counter(key for _, _, key in found)
    return {key: gone[key] for key in numbers}


def shut_gates(
    db: Db,
    queues: Sequence[str],
    *,
    keys: Sequence[str],
    guards: Sequence[str],
    tasks: Sequence[str],
    window: int,
    limit: int,
) -> int:
    given = {"keys": _texts(keys), "guards": _texts(guards), "tasks": _texts(tasks), "limit": limit}
    held = 0
    for queue in queues:
        rows = db.connection.execute(_REFUSED, {**given, "queue": queue}).fetchall()
        if rows:
            db.run_many(_SHUT, [(guard, seq) for seq, guard, _ in rows])
            held += len(rows)
            for tenant in sorted({str(tenant) for _, _, tenant in rows if tenant is not None}):
                fill_window(db, queue, tenant, window)
    return held


def _texts(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


# Only what claims would come upon next: the rest of a long queue is in nobody's way yet.
_REFUSED = f"""
SELECT q.seq, j.guard, q.tenant FROM (
    SELECT seq, tenant, concurrency_key FROM holdfast_queued
    WHERE queue = :queue AND held IS NULL AND NOT suspect ORDER BY priority DESC, rank LIMIT :limit) AS q
CROSS JOIN holdfast_job AS j ON j.seq = q.seq
WHERE q.concurrency_key IS NULL AND NOT {IS_DECIDED} AND (j.guard IN (SELECT value FROM json_each(:keys))
    OR (j.task IN (SELECT value FROM json_each(:tasks)) AND EXISTS (
        SELECT 1 FROM json_each(:guards) AS g
        WHERE j.guard = g.value OR substr(j.guard, 1, length(g.value) + 1) = g.value || '/')))"""
_SHUT = "UPDATE holdfast_queued SET held = 'guard', gate = ?, reason = NULL WHERE seq = ?"
