"""Buckets of quota: take, give back, and what the other side has left us. The arithmetic is that of `store.quota`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from holdfast.store import quota
from holdfast.store.quota import DAY, IDLE, SLOWED_KEPT, TERMS_KEPT, Bucket, Grant, Pace, Return, Want
from holdfast.store.statements import Procedure, Statement

# A bucket `b` as it is now, read after its row was locked: n.now, and level, drained and paused_until of s.
_SETTLED = f"""(SELECT holdfast.now() AS now) AS n
    CROSS JOIN LATERAL (SELECT greatest(date_part('epoch', n.now - b.at), 0) * b.rate AS drained,
        b.paused_until - greatest(b.at - n.now, interval '0') AS paused_until) AS p
    CROSS JOIN LATERAL (SELECT greatest(b.level - p.drained, 0) AS level, b.drained + p.drained AS drained,
        CASE WHEN p.paused_until > n.now THEN least(p.paused_until, n.now + make_interval(secs => {DAY})) END
            AS paused_until, CASE WHEN b.at <= n.now THEN b.terms_until END AS terms_until) AS s"""
_BUCKET = """date_part('epoch', b.at), b.rate, b.level, b.drained, b.slowed, b.version, b.lowered,
    date_part('epoch', b.paused_until), b.fastest, b.burst, date_part('epoch', b.terms_until), b.in_row"""
# And on whose terms it is asked: those of `excluded`, or the largest of lately.
_ON_TERMS = f"""
        CROSS JOIN LATERAL (SELECT s.terms_until > n.now AS kept) AS k
        CROSS JOIN LATERAL (SELECT CASE WHEN k.kept THEN greatest(excluded.fastest, b.fastest) ELSE excluded.fastest END
            AS fastest, CASE WHEN k.kept THEN greatest(excluded.burst, b.burst) ELSE excluded.burst END AS burst) AS l
        CROSS JOIN LATERAL (SELECT l.*, least(l.fastest, b.slowed) AS rate,
            CASE WHEN l.fastest = excluded.fastest AND l.burst = excluded.burst THEN n.now + interval '{TERMS_KEPT} s'
                ELSE s.terms_until END AS until) AS t"""


def _forget(
    now: str, level: str, rate: str, slowed: str, paused_until: str, *, in_row: str = "b.in_row"
) -> str:
    return f"""ceil(greatest(date_part('epoch', {now}) + CASE WHEN {slowed} IS NULL AND {in_row} = 0 THEN {IDLE} ELSE {SLOWED_KEPT} END,
        date_part('epoch', {now}) + {level} / {rate}, date_part('epoch', {paused_until})) / 60)::bigint"""


def _same(given: str) -> str:
    """Looked up one by one, as in `rows.same_id`: written so, no other plan is possible."""
    return f"b.name = ANY(ARRAY[{given}.name]) AND b.key = ANY(ARRAY[{given}.key])"


def take(wants: Sequence[Want]) -> Procedure[list[Grant]]:
    """In one order for everyone, so that no two wait for each other."""
    ordered = sorted(wants, key=lambda want: (want.name, want.key))
    columns = [list(column) for column in zip(*map(_asked, ordered), strict=True)]
    rows = yield Statement(_TAKE, tuple(columns))
    grants = {(row[0], row[1]): (row[2], _to_bucket(row[3:])) for row in rows}
    return [_granted(want, *grants[want.name, want.key]) for want in wants]


def _asked(want: Want) -> tuple[str, str, float, float, float, float]:
    return want.name, want.key, want.least, min(want.most, want.burst), want.rate, want.burst


def _granted(want: Want, units: float, left: Bucket) -> Grant:
    return quota.grant_of(want, left, units)


# A new bucket is full. The rest of the row tells what was asked, since that is all that an update is told of it. The clock
# is read for each row: there may have been a wait for the one before, and a bucket must not drain in that time already.
_TAKE = f"""
INSERT INTO holdfast.bucket AS b (name, key, level, at, rate, fastest, burst, terms_until, fewest, granted, forget)
SELECT w.name, w.key, w.most, n.now, w.rate, w.rate, w.burst, n.now + interval '{TERMS_KEPT} s', w.fewest, w.most,
    {_forget("n.now", "w.most", "w.rate", "NULL", "NULL::timestamptz", in_row="0")}
FROM (SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::float8[], $6::float8[])
        WITH ORDINALITY AS u (name, key, fewest, most, rate, burst, place) ORDER BY u.place) AS w
    CROSS JOIN LATERAL (SELECT w.place, holdfast.now() AS now) AS n
ON CONFLICT (name, key) DO UPDATE SET
    (level, at, rate, drained, fastest, burst, terms_until, fewest, granted, paused_until, forget) = (
        SELECT s.level + g.granted, n.now, t.rate, s.drained, t.fastest, t.burst, t.until, excluded.fewest, g.granted,
            s.paused_until, {_forget("n.now", "(s.level + g.granted)", "t.rate", "b.slowed", "s.paused_until")}
        FROM {_SETTLED} {_ON_TERMS}
        CROSS JOIN LATERAL (SELECT CASE WHEN s.paused_until IS NULL AND t.burst - s.level >= excluded.fewest
            THEN least(excluded.granted, t.burst - s.level) ELSE 0 END AS granted) AS g)
RETURNING b.name, b.key, b.granted, {_BUCKET}"""


def ahead(name: str, keys: Sequence[str], *, seconds: float) -> Procedure[list[float]]:
    rows = yield Statement(_AHEAD, (name, list(keys)))
    found = {row[0]: (_to_bucket(row[2:]), row[1]) for row in rows}
    return [quota.ahead(found[key][0], seconds, found[key][1]) if key in found else math.inf for key in keys]


_AHEAD = f"""
SELECT b.key, date_part('epoch', holdfast.now()), {_BUCKET}
FROM (SELECT $1::text AS name, u.key FROM unnest($2::text[]) AS u(key)) AS w
    CROSS JOIN LATERAL (SELECT * FROM holdfast.bucket AS b WHERE {_same("w")}) AS b"""


def give_back(returns: Sequence[Return]) -> Procedure[None]:
    rows = [
        (item.grant.name, item.grant.key, item.units, item.grant.rate, item.grant.at, item.grant.mark)
        for item in quota.merged(returns)
    ]
    yield Statement(_GIVE_BACK, tuple(list(column) for column in zip(*rows, strict=True)))


# Not EXISTS, which may become a walk through all buckets. What is written is an update: a row is made only when its bucket
# is forgotten in the same moment, and is full then.
_GIVE_BACK = f"""
INSERT INTO holdfast.bucket AS b (name, key, level, granted, rate, at, drained, forget)
SELECT r.name, r.key, 0, r.units, r.rate, to_timestamp(r.at), r.mark,
    {_forget("to_timestamp(r.at)", "0", "1", "NULL", "NULL::timestamptz", in_row="0")}
FROM unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::float8[], $6::float8[])
    WITH ORDINALITY AS r (name, key, units, rate, at, mark, place)
WHERE (SELECT true FROM holdfast.bucket AS known WHERE known.name = r.name AND known.key = r.key)
ORDER BY r.place
ON CONFLICT (name, key) DO UPDATE SET (level, at, drained, paused_until, terms_until, forget) = (
    SELECT greatest(s.level - g.worth, 0), n.now, s.drained, s.paused_until, s.terms_until,
        {_forget("n.now", "greatest(s.level - g.worth, 0)", "b.rate", "b.slowed", "s.paused_until")}
    FROM {_SETTLED}
    CROSS JOIN LATERAL (SELECT
        CASE WHEN excluded.at <= n.now AND n.now < excluded.at + make_interval(secs => {IDLE})
            THEN greatest(excluded.granted - greatest(s.drained - excluded.drained, 0), 0) ELSE 0 END AS worth) AS g)"""


def slow(
    name: str, key: str, *, rate: float | None, pause: float, version: int, in_row: int
) -> Procedure[Pace]:
    pause = min(float(pause), DAY)
    rows = yield Statement(_SLOW, (name, key, rate, pause, version, in_row))
    return quota.pace_of(name, key, _to_bucket(rows[0]))


_SLOW = f"""
INSERT INTO holdfast.bucket AS b
    (name, key, level, at, rate, slowed, version, lowered, paused_until, in_row, forget)
SELECT $1::text, $2::text, 0, n.now, coalesce($3::float8, 1), $3::float8, v.version, v.version, n.until, $6::int,
    {_forget("n.now", "0", "1", "$3::float8", "n.until", in_row="$6::int")}
FROM (SELECT now, CASE WHEN $4::float8 > 0 THEN now + make_interval(secs => $4::float8) END AS until
        FROM (SELECT holdfast.now() AS now) AS m) AS n
    CROSS JOIN (SELECT CASE WHEN $3::float8 IS NULL THEN 0 ELSE nextval('holdfast.token') END AS version) AS v
ON CONFLICT (name, key) DO UPDATE SET
    (level, at, rate, drained, slowed, version, lowered, paused_until, terms_until, in_row, forget) = (
        SELECT s.level, n.now, g.rate, s.drained, g.slowed, CASE WHEN g.takes THEN g.version ELSE b.version END,
            CASE WHEN g.takes THEN g.version ELSE b.lowered END, g.paused_until, s.terms_until, g.in_row,
            {_forget("n.now", "s.level", "g.rate", "g.slowed", "g.paused_until", in_row="g.in_row")}
        FROM {_SETTLED}
        CROSS JOIN LATERAL (SELECT $3::float8 IS NOT NULL AND $5::bigint >= b.lowered
            AND (b.slowed IS NULL OR $3::float8 < b.slowed) AS takes) AS t
        CROSS JOIN LATERAL (SELECT t.takes, nextval('holdfast.token') AS version,
            CASE WHEN t.takes THEN $3::float8 ELSE b.slowed END AS slowed,
            CASE WHEN t.takes THEN least(b.rate, $3::float8) ELSE b.rate END AS rate,
            CASE WHEN $5::bigint >= b.lowered THEN greatest(b.in_row, $6::int) ELSE b.in_row END AS in_row,
            CASE WHEN $4::float8 > 0 THEN greatest(s.paused_until, n.now + make_interval(secs => $4::float8))
                ELSE s.paused_until END AS paused_until) AS g)
RETURNING {_BUCKET}"""


def calm(name: str, key: str, *, in_row: int) -> Procedure[Pace]:
    rows = yield Statement(_CALM, (name, key, in_row))
    return quota.pace_of(name, key, _to_bucket(rows[0]) if rows else None)


_CALM = f"""
UPDATE holdfast.bucket AS b SET (level, at, drained, paused_until, terms_until, in_row, forget) = (
    SELECT s.level, n.now, s.drained, s.paused_until, s.terms_until, g.in_row,
        {_forget("n.now", "s.level", "b.rate", "b.slowed", "s.paused_until", in_row="g.in_row")}
    FROM {_SETTLED}
    CROSS JOIN LATERAL (SELECT CASE WHEN b.in_row = $3::int THEN 0 ELSE b.in_row END AS in_row) AS g)
WHERE b.name = $1::text AND b.key = $2::text RETURNING {_BUCKET}"""


def sped(name: str, key: str, *, rate: float | None, version: int) -> Procedure[Pace]:
    rows = yield Statement(_SPED, (name, key, rate, version))
    return quota.pace_of(name, key, _to_bucket(rows[0]) if rows else None)


_SPED = f"""
UPDATE holdfast.bucket AS b SET (level, at, drained, slowed, version, paused_until, terms_until, forget) = (
    SELECT s.level, n.now, s.drained, g.slowed, CASE WHEN t.takes THEN nextval('holdfast.token') ELSE b.version END,
        s.paused_until, s.terms_until, {_forget("n.now", "s.level", "b.rate", "g.slowed", "s.paused_until")}
    FROM {_SETTLED}
    CROSS JOIN LATERAL (SELECT b.slowed IS NOT NULL AND b.version = $4::bigint
        AND ($3::float8 IS NULL OR $3::float8 > b.slowed) AS takes) AS t
    CROSS JOIN LATERAL (SELECT CASE WHEN t.takes THEN $3::float8 ELSE b.slowed END AS slowed) AS g)
WHERE b.name = $1::text AND b.key = $2::text RETURNING {_BUCKET}"""


def free(name: str, *, limit: int) -> Procedure[int]:
    """Lift slower rates and pauses; returns of how many keys."""
    return len((yield Statement(_FREE, (name, limit))))


# Rows are locked in the order in which others lock them. A new version: who saw the old state cannot bring it back.
_FREE = f"""
WITH slowed AS MATERIALIZED (
    SELECT name, key FROM holdfast.bucket WHERE name = $1::text AND slowed IS NOT NULL
    UNION SELECT name, key FROM holdfast.bucket WHERE name = $1::text AND paused_until IS NOT NULL
    UNION SELECT name, key FROM holdfast.bucket WHERE name = $1::text AND in_row > 0
    ORDER BY key LIMIT $2),
locked AS MATERIALIZED (
    SELECT f.name, f.key FROM slowed AS s CROSS JOIN LATERAL (
        SELECT b.name, b.key FROM holdfast.bucket AS b WHERE {_same("s")} FOR UPDATE) AS f),
drawn AS MATERIALIZED (SELECT nextval('holdfast.token') AS version)
UPDATE holdfast.bucket AS b SET slowed = NULL, paused_until = NULL, version = d.version, lowered = d.version,
    in_row = 0, forget = {_forget("b.at", "b.level", "b.rate", "NULL", "NULL::timestamptz", in_row="0")}
FROM locked AS l CROSS JOIN drawn AS d WHERE {_same("l")} RETURNING b.key"""


def _to_bucket(row: Sequence[Any]) -> Bucket:
    names = (
        "at", "rate", "level", "drained", "slowed", "version", "lowered", "paused_until", "fastest", "burst", "terms_until",
        "in_row",
    )  # fmt: skip
    return Bucket(**dict(zip(names, row, strict=True)))
