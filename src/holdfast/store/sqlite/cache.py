"""Values of cached functions: what may be served, who loads it, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.store.cache_records import TAG_KEPT, CacheRecord, Entry, Load, Why
from holdfast.store.edge import checked
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.rows import Row
from holdfast.store.sqlite.subject import Subject

_COLUMNS = "value, written_at, fresh_until, stale_until, tags, lease_until, rest_until"
_pairs = msgspec.json.Decoder(list[tuple[str, int]])


def get(db: Db, keys: Sequence[str]) -> list[Entry]:
    return [_get(db, key) for key in keys]


def _get(db: Db, key: str) -> Entry:
    row = db.row(f"SELECT {_COLUMNS} FROM holdfast_cache WHERE key = ?", key)
    return Entry() if row is None else _entry(db, row)


def _entry(db: Db, row: Row) -> Entry:
    value, written_at, fresh_until, stale_until, tags, lease_until, rest_until = row
    is_loading, is_resting = (lease_until or 0.0) > db.now, (rest_until or 0.0) > db.now
    # What was written in the future was written before the clock was set back: nobody knows how old it is.
    if value is None or not written_at <= db.now < stale_until or not _counts(db, tags):
        return Entry(is_loading=is_loading, is_resting=is_resting)
    times = db.now - written_at, max(fresh_until - db.now, 0.0), stale_until - db.now
    return Entry(value, *times, is_loading, is_resting)


def _counts(db: Db, tags: str) -> bool:
    return tags == "[]" or all(_generation(db, tag) == generation for tag, generation in _pairs.decode(tags))


def _generation(db: Db, tag: str) -> int | None:
    found: int | None = db.value("SELECT generation FROM holdfast_cache_tag WHERE tag = ?", tag)
    return found


def begin(db: Db, key: str, *, tags: Sequence[str], lease: float, why: Why) -> Load | Entry:
    entry = _get(db, key)
    is_loading = entry.is_loading and not _is_set_back(db, key, lease)
    if why is not Why.FORCED and (entry.is_fresh or is_loading or (why is Why.STALE and entry.is_resting)):
        return entry
    token, until = db.draw("token"), db.now + lease
    sql = """INSERT INTO holdfast_cache (key, token, lease_until, forget) VALUES (?1, ?2, ?3, ?3) ON CONFLICT (key)
        DO UPDATE SET token = ?2, lease_until = ?3, forget = max(forget, ?3)"""
    db.run(sql, key, token, until)
    return Load(key, token, until, tuple(tags), tuple(_known(db, tag) for tag in tags))


def _is_set_back(db: Db, key: str, lease: float) -> bool:
    """A right that ends later than one that is given now is from before the clock was set back: nobody may hold it."""
    until: float | None = db.value("SELECT lease_until FROM holdfast_cache WHERE key = ?", key)
    return until is not None and until > db.now + lease


def _known(db: Db, tag: str) -> int:
    sql = """INSERT INTO holdfast_cache_tag (tag, generation, forget) VALUES (?, ?, ?)
        ON CONFLICT (tag) DO UPDATE SET forget = max(forget, excluded.forget) RETURNING generation"""
    generation: int = db.value(sql, tag, db.draw("token"), db.now + TAG_KEPT)
    return generation


def renew(db: Db, load: Load, *, lease: float) -> bool:
    sql = """UPDATE holdfast_cache SET lease_until = ?1, forget = max(forget, ?1)
        WHERE key = ?2 AND token = ?3 AND lease_until > ?4"""
    return bool(db.run(sql, db.now + lease, load.key, load.token, db.now))


def put(db: Db, load: Load, value: str, *, fresh: float, stale: float) -> bool:
    if any(_generation(db, tag) != known for tag, known in _pairs_of(load)):
        return False
    until = db.now + stale
    tags = msgspec.json.encode(_pairs_of(load)).decode()
    sql = """UPDATE holdfast_cache SET value = ?, written_at = ?, fresh_until = ?, stale_until = ?, tags = ?, token = NULL,
        lease_until = NULL, rest_until = NULL, forget = ? WHERE key = ? AND token = ? AND lease_until > ?"""
    times = db.now, db.now + min(fresh, stale), until
    if not db.run(sql, value, *times, tags, until, load.key, load.token, db.now):
        return False
    sql = "UPDATE holdfast_cache_tag SET forget = ? WHERE tag = ? AND forget < ?"
    db.run_many(sql, [(until + TAG_KEPT, tag, until) for tag in load.tags])
    return True


def _pairs_of(load: Load) -> list[tuple[str, int]]:
    return list(zip(load.tags, load.generations, strict=True))


def abandon(db: Db, load: Load, *, rest: float) -> bool:
    sql = """UPDATE holdfast_cache SET token = NULL, lease_until = NULL, rest_until = ?1,
        forget = max(?1, coalesce(stale_until, 0)) WHERE key = ?2 AND token = ?3"""
    return bool(db.run(sql, db.now + rest, load.key, load.token))


def invalidate(db: Db, keys: Sequence[str]) -> None:
    db.run_many("DELETE FROM holdfast_cache WHERE key = ?", [(key,) for key in keys])


def invalidate_tags(db: Db, tags: Sequence[str]) -> None:
    """Also those that are not known: a load may learn of one before this is committed."""
    sql = """INSERT INTO holdfast_cache_tag (tag, generation, forget) VALUES (?, ?, ?)
        ON CONFLICT (tag) DO UPDATE SET generation = excluded.generation"""
    db.run_many(sql, [(tag, db.draw("token"), db.now + TAG_KEPT) for tag in tags])


def find(db: Db, *, after: str | None, limit: int) -> list[CacheRecord]:
    """Those that are forgotten sooner or later are passed over."""
    sql = f"SELECT key, {_COLUMNS} FROM holdfast_cache WHERE key > ? ORDER BY key"
    found: list[CacheRecord] = []
    for key, *row in db.connection.execute(sql, (after or "",)):
        record = _record(key, _entry(db, tuple(row)), row[4])
        if record.size is not None or record.is_loading:
            found.append(record)
        if len(found) == limit:
            break
    return found


def _record(key: str, entry: Entry, tags: str) -> CacheRecord:
    size = None if entry.value is None else len(entry.value)
    names = () if entry.value is None else tuple(tag for tag, _ in _pairs.decode(tags))
    return CacheRecord(key, size, names, entry.age, entry.fresh_for, entry.stale_for, entry.is_loading)


def prune(db: Db, *, limit: int) -> int:
    sql = """DELETE FROM {0} WHERE {1} IN (SELECT {1} FROM {0} WHERE forget <= ? ORDER BY forget LIMIT ?)"""
    values = db.run(sql.format("holdfast_cache", "key"), db.now, limit)
    if values == limit:
        return values
    return values + db.run(sql.format("holdfast_cache_tag", "tag"), db.now, limit - values)


@checked
class Cache(Subject):
    def check_free(self) -> None:
        self._file.check_free()

    async def get(self, keys: Sequence[str]) -> list[Entry]:
        return await self._file.read(partial(get, keys=keys)) if keys else []

    async def begin(
        self, key: str, *, tags: Sequence[str], lease: float, why: Why = Why.MISSING
    ) -> Load | Entry:
        return await self._file.write(partial(begin, key=key, tags=tags, lease=lease, why=why))

    async def renew(self, load: Load, *, lease: float) -> bool:
        return await self._file.write(partial(renew, load=load, lease=lease), repeatable=True)

    async def put(self, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        return await self._file.write(partial(put, load=load, value=value, fresh=fresh, stale=stale))

    async def abandon(self, load: Load, *, rest: float = 0.0) -> bool:
        return await self._file.write(partial(abandon, load=load, rest=rest))

    async def invalidate(self, keys: Sequence[str]) -> None:
        await self._file.write(partial(invalidate, keys=keys), repeatable=True)

    async def invalidate_tags(self, tags: Sequence[str], *, tx: object | None = None) -> None:
        await self._file.write(partial(invalidate_tags, tags=tags), tx=tx, repeatable=tx is None)

    async def find(self, *, after: str | None = None, limit: int = 100) -> list[CacheRecord]:
        return await self._file.read(partial(find, after=after, limit=limit))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, limit=limit), repeatable=True)
