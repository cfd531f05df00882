"""Buckets of quota: take, give back, and what the other side has left us."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store import quota
from holdfast.store.quota import DAY, Bucket, Grant, Pace, Return, Want
from holdfast.store.sqlite.connection import Db

_COLUMNS = (
    "at, rate, level, drained, slowed, version, lowered, paused_until, fastest, burst, terms_until, in_row"
)
_NAMES = _COLUMNS.split(", ")
_KEEP = f"""INSERT INTO holdfast_bucket (name, key, {_COLUMNS}, forget) VALUES (?, ?, {"?, " * len(_NAMES)}?)
    ON CONFLICT (name, key) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in [*_NAMES, "forget"])}"""


def take(db: Db, wants: Sequence[Want]) -> list[Grant]:
    return [_take(db, want) for want in wants]


def _take(db: Db, want: Want) -> Grant:
    left, grant = quota.take(_find(db, want.name, want.key), want, db.now)
    _keep(db, want.name, want.key, left)
    return grant


def ahead(db: Db, name: str, keys: Sequence[str], *, seconds: float) -> list[float]:
    return [quota.ahead(_find(db, name, key), seconds, db.now) for key in keys]


def give_back(db: Db, returns: Sequence[Return]) -> None:
    for item in quota.merged(returns):
        name, key = item.grant.name, item.grant.key
        if (bucket := _find(db, name, key)) is not None:
            _keep(db, name, key, quota.give_back(bucket, item, db.now))


def slow(db: Db, name: str, key: str, *, rate: float | None, pause: float, version: int, in_row: int) -> Pace:
    known = _find(db, name, key) or Bucket(at=db.now, rate=rate or 1.0)
    now = quota.counted(quota.settled(known, db.now), in_row, version)
    bucket = quota.slowed(now, rate, min(pause, DAY), version, token=db.draw("token"))
    _keep(db, name, key, bucket)
    return quota.pace_of(name, key, bucket)


def calm(db: Db, name: str, key: str, *, in_row: int) -> Pace:
    bucket = _find(db, name, key)
    if bucket is not None:
        bucket = quota.calmed(quota.settled(bucket, db.now), in_row)
        _keep(db, name, key, bucket)
    return quota.pace_of(name, key, bucket)


def sped(db: Db, name: str, key: str, *, rate: float | None, version: int) -> Pace:
    bucket = _find(db, name, key)
    if bucket is not None:
        bucket = quota.sped(quota.settled(bucket, db.now), rate, version, token=db.draw("token"))
        _keep(db, name, key, bucket)
    return quota.pace_of(name, key, bucket)


def free(db: Db, name: str, *, limit: int) -> int:
    """Lift slower rates and pauses; returns of how many keys. A new version: who saw the old state cannot bring it back."""
    sql = """SELECT key FROM holdfast_bucket WHERE name = ? AND slowed IS NOT NULL
        UNION SELECT key FROM holdfast_bucket WHERE name = ? AND paused_until IS NOT NULL
        UNION SELECT key FROM holdfast_bucket WHERE name = ? AND in_row > 0
        ORDER BY key LIMIT ?"""
    keys = [key for (key,) in db.rows(sql, name, name, name, limit)]
    version = db.draw("token")
    for key in keys:
        bucket = _find(db, name, key)
        assert bucket is not None
        _keep(db, name, key, quota.freed(bucket, version))
    return len(keys)


def _find(db: Db, name: str, key: str) -> Bucket | None:
    row = db.row(f"SELECT {_COLUMNS} FROM holdfast_bucket WHERE name = ? AND key = ?", name, key)
    return None if row is None else Bucket(**dict(zip(_NAMES, row, strict=True)))


def _keep(db: Db, name: str, key: str, bucket: Bucket) -> None:
    db.run(_KEEP, name, key, *(getattr(bucket, column) for column in _NAMES), bucket.forget)
