"""Values of cached functions: what may be served, who loads it, and what is forgotten.

Every statement commits by itself. Nothing depends on two of them at once: a value carries the generations that its tags had
before its load began, and they are compared whenever it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from holdfast.store.cache_records import TAG_KEPT, CacheRecord, Entry, Load, Why
from holdfast.store.edge import checked
from holdfast.store.postgres.cache_tags import Tags, invalidate_tags, known_of
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.statements import Procedure, Statement

_UNKNOWN = 0  # the generation that a load has of a tag which was forgotten just then: no value with it counts


def _current(tags: str) -> str:
    """The generations that these tags have now, in their order; -1 is that of an unknown one."""
    return f"""ARRAY(SELECT coalesce((SELECT t.generation FROM holdfast.cache_tag AS t WHERE t.tag = g.tag), -1)
        FROM unnest({tags}) WITH ORDINALITY AS g (tag, place) ORDER BY g.place)"""


# What was written in the future was written before the clock was set back: nobody knows how old it is.
def _served(now: str) -> str:
    return f"""(c.written_at <= {now} AND c.stale_until > {now}
        AND (c.tags = '{{}}' OR c.generations = {_current("c.tags")}))"""


_TIMES = """coalesce(date_part('epoch', n.now - c.written_at), 0),
    greatest(coalesce(date_part('epoch', c.fresh_until - n.now), 0), 0),
    coalesce(date_part('epoch', c.stale_until - n.now), 0)"""
_LOADS = "coalesce(c.lease_until > n.now, false), coalesce(c.rest_until > n.now, false)"


def get(keys: Sequence[str]) -> Procedure[list[Entry]]:
    found = {row[0]: _entry(row[1:]) for row in (yield Statement(_GET, (list(dict.fromkeys(keys)),)))}
    return [found.get(key, Entry()) for key in keys]


# `key` is looked up one by one, as in `rows.same_id`: written so, no other plan is possible.
_GET = f"""
SELECT c.key, {_served("n.now")}, c.value, {_TIMES}, {_LOADS}
FROM unnest($1::text[]) AS w (key) CROSS JOIN (SELECT holdfast.now() AS now) AS n
    JOIN holdfast.cache AS c ON c.key = ANY(ARRAY[w.key])"""


def _entry(row: Sequence[Any]) -> Entry:
    """Of whether it may be served, the value, three times, and who loads it."""
    served, value, age, fresh_for, stale_for, is_loading, is_resting = row
    if not served:
        return Entry(is_loading=is_loading, is_resting=is_resting)
    return Entry(value, age, fresh_for, stale_for, is_loading, is_resting)


def begin(key: str, *, tags: Sequence[str], lease: float, why: Why) -> Procedure[Load | Entry | list[str]]:
    """Or the tags that must be learned first: that may take a while, and nobody shall wait for who waits there."""
    known = yield from known_of(tags)
    if unknown := [tag for tag in tags if tag not in known]:
        return unknown
    asked = key, float(lease), why is Why.FORCED, why is Why.STALE
    for token, until in (yield Statement(_BEGIN, asked)):
        generations = yield from _generations(tags)
        return Load(key, token, until, tuple(tags), generations)
    [entry] = yield from get([key])
    return entry


# A right that ends later than one that is given now is from before the clock was set back: nobody may hold it.
_BEGIN = f"""
INSERT INTO holdfast.cache AS c (key, token, lease_until, forget)
SELECT $1::text, nextval('holdfast.token'), u.until, u.until
FROM (SELECT holdfast.now() + make_interval(secs => $2::float8) AS until) AS u
ON CONFLICT (key) DO UPDATE SET token = nextval('holdfast.token'),
    lease_until = holdfast.now() + make_interval(secs => $2::float8),
    forget = greatest(c.forget, holdfast.now() + make_interval(secs => $2::float8))
WHERE $3::bool OR (coalesce(c.lease_until <= holdfast.now()
        OR c.lease_until > holdfast.now() + make_interval(secs => $2::float8), true)
    AND (coalesce(c.fresh_until <= holdfast.now(), true) OR NOT {_served("holdfast.now()")})
    AND NOT ($4::bool AND coalesce(c.rest_until > holdfast.now(), false)))
RETURNING token, date_part('epoch', lease_until)"""


def _generations(tags: Sequence[str]) -> Procedure[tuple[int, ...]]:
    """After the right was taken, and before the load: what is invalidated from now on is noticed."""
    known = yield from known_of(tags)
    return tuple(known.get(tag, _UNKNOWN) for tag in tags)


def renew(load: Load, *, lease: float) -> Procedure[bool]:
    return bool((yield Statement(_RENEW, (load.key, load.token, float(lease)))))


_RENEW = """
UPDATE holdfast.cache SET lease_until = holdfast.now() + make_interval(secs => $3::float8),
    forget = greatest(forget, holdfast.now() + make_interval(secs => $3::float8))
WHERE key = $1::text AND token = $2::bigint AND lease_until > holdfast.now() RETURNING key"""


def put(load: Load, value: str, *, fresh: float, stale: float) -> Procedure[bool]:
    tags, generations = list(load.tags), list(load.generations)
    times = float(min(fresh, stale)), float(stale)
    rows = yield Statement(_PUT, (load.key, load.token, value, *times, tags, generations))
    if rows and tags:
        yield Statement(_LASTING, (tags, float(stale), TAG_KEPT))
    return bool(rows)


_PUT = f"""
UPDATE holdfast.cache AS c SET value = $3::text, written_at = n.now, token = NULL, lease_until = NULL, rest_until = NULL,
    fresh_until = n.now + make_interval(secs => $4::float8), stale_until = n.now + make_interval(secs => $5::float8),
    tags = $6::text[], generations = $7::bigint[], forget = n.now + make_interval(secs => $5::float8)
FROM (SELECT holdfast.now() AS now) AS n
WHERE c.key = $1::text AND c.token = $2::bigint AND c.lease_until > n.now
    AND ($6::text[] = '{{}}' OR $7::bigint[] = {_current("$6::text[]")})
RETURNING c.key"""
# The tags outlive the value. One that another changes just now is passed over: the value does not count then anyway.
_LASTING = """
UPDATE holdfast.cache_tag SET forget = holdfast.now() + make_interval(secs => $2::float8 + $3::float8)
WHERE tag = ANY(ARRAY(
    SELECT tag FROM holdfast.cache_tag
    WHERE tag = ANY($1::text[]) AND forget < holdfast.now() + make_interval(secs => $2::float8)
    ORDER BY tag FOR UPDATE SKIP LOCKED))"""


def abandon(load: Load, *, rest: float) -> Procedure[bool]:
    return bool((yield Statement(_ABANDON, (load.key, load.token, float(rest)))))


_ABANDON = """
UPDATE holdfast.cache AS c SET token = NULL, lease_until = NULL, rest_until = n.until,
    forget = greatest(n.until, c.stale_until)
FROM (SELECT holdfast.now() + make_interval(secs => $3::float8) AS until) AS n
WHERE c.key = $1::text AND c.token = $2::bigint RETURNING c.key"""


def invalidate(keys: Sequence[str]) -> Procedure[None]:
    yield Statement(_INVALIDATE, (list(keys),))


# Rows are locked in one order by everyone.
_INVALIDATE = """
DELETE FROM holdfast.cache WHERE key = ANY(ARRAY(
    SELECT key FROM holdfast.cache WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE))"""


def find(after: str | None, limit: int) -> Procedure[list[CacheRecord]]:
    rows = yield Statement(_FIND, (after or "", limit))
    return [_record(row) for row in rows]


_FIND = f"""
SELECT c.key, s.served, length(c.value), c.tags, {_TIMES}, coalesce(c.lease_until > n.now, false)
FROM holdfast.cache AS c CROSS JOIN (SELECT holdfast.now() AS now) AS n
    CROSS JOIN LATERAL (SELECT coalesce({_served("n.now")}, false) AS served) AS s
WHERE c.key > $1::text AND (s.served OR c.lease_until > n.now) ORDER BY c.key LIMIT $2"""


def _record(row: Sequence[Any]) -> CacheRecord:
    key, served, size, tags, age, fresh_for, stale_for, is_loading = row
    if not served:
        return CacheRecord(key, None, (), 0.0, 0.0, 0.0, is_loading)
    return CacheRecord(key, size, tuple(tags), age, fresh_for, stale_for, is_loading)


def prune(limit: int) -> Procedure[int]:
    pruned = 0
    for sql in _PRUNES:
        if pruned < limit:
            pruned += len((yield Statement(sql, (limit - pruned,))))
    return pruned


# Whoever holds a row's lock is using it right now.
_PRUNE = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {table} WHERE forget <= (SELECT holdfast.now())
    ORDER BY forget LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1"""
_PRUNES = [_PRUNE.format(table=f"holdfast.{name}") for name in ("cache", "cache_tag")]


@checked
class Cache(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._tags = Tags(home.database)

    def check_free(self) -> None:
        """A transaction here is on a connection of its own: nobody waits for himself."""

    async def get(self, keys: Sequence[str]) -> list[Entry]:
        return await self._database.read(partial(get, keys)) if keys else []

    async def begin(
        self, key: str, *, tags: Sequence[str], lease: float, why: Why = Why.MISSING
    ) -> Load | Entry:
        make = partial(begin, key, tags=tags, lease=lease, why=why)
        while isinstance(begun := await self._database.write(make), list):
            await self._tags.learn(begun)
        return begun

    async def renew(self, load: Load, *, lease: float) -> bool:
        return await self._database.write(partial(renew, load, lease=lease), repeatable=True)

    async def put(self, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        return await self._database.write(partial(put, load, value, fresh=fresh, stale=stale))

    async def abandon(self, load: Load, *, rest: float = 0.0) -> bool:
        return await self._database.write(partial(abandon, load, rest=rest))

    async def invalidate(self, keys: Sequence[str]) -> None:
        await self._database.write(partial(invalidate, keys), repeatable=True)

    async def invalidate_tags(self, tags: Sequence[str], *, tx: object | None = None) -> None:
        if (executor := await self._executor(tx)) is None:
            await self._tags.invalidate(tags)
        else:
            await executor.run(invalidate_tags(tags))

    async def find(self, *, after: str | None = None, limit: int = 100) -> list[CacheRecord]:
        return await self._database.read(partial(find, after, limit))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, limit), repeatable=True)
