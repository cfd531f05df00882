"""What a relay does to the outbox: read what waits, give positions, and keep order when a publication fails.

A key of which one failed has a block, from that event's version on. What stands behind it is `held` when the relay comes
across it, so that nobody reads it again and again; when its time has come, it is found by its key, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from holdfast.kernel.portions import portions
from holdfast.store import event_verdicts
from holdfast.store.event_records import OutboxEvent
from holdfast.store.records import Lease
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db, numbers
from holdfast.store.sqlite.leases import is_held
from holdfast.store.sqlite.rows import Row

CLOCK_SLACK = 60.0  # seconds that the database's clock may have been set back
WINDOW = 200_000  # events among which one is looked for that stands behind no block
MARKED = 5_000  # events behind a block that are set aside in one transaction
KEYS_DUE = 50  # blocks whose time has come that are looked at together

# In the order of OutboxEvent's fields.
COLUMNS = """seq, id, type, key, version, data, time, correlation_id, causation_id, trace, state, position, published_at,
    tries, error"""
_BEHIND = "EXISTS (SELECT 1 FROM holdfast_event_block AS b WHERE b.key = o.key AND o.version >= b.version)"
_FIRST = """
    SELECT seq, key, version FROM holdfast_outbox WHERE state = 'waiting' AND held = 0 AND seq < {before}
    ORDER BY seq LIMIT ?1"""
_LOOK = f"""
    SELECT seq, {_BEHIND} FROM holdfast_outbox AS o WHERE state = 'waiting' AND held = 0 ORDER BY seq LIMIT ?"""
_FREE = f"SELECT seq FROM ({_FIRST.format(before=2**63 - 1)}) AS o WHERE NOT {_BEHIND} ORDER BY seq LIMIT ?2"
_SET_ASIDE = f"""
    UPDATE holdfast_outbox SET held = 1 WHERE seq IN (
        SELECT seq FROM ({_FIRST.format(before="?3")}) AS o WHERE {_BEHIND} ORDER BY seq LIMIT ?2)"""
_SOME_DUE = """
    SELECT EXISTS (SELECT 1 FROM holdfast_event_block WHERE until <= ?1)
        OR EXISTS (SELECT 1 FROM holdfast_outbox WHERE state = 'waiting' AND rest_until <= ?1)"""
_DUE = "SELECT key FROM holdfast_event_block WHERE until <= ? ORDER BY until LIMIT ?"
_OF_KEY = """
    SELECT seq, version, state FROM holdfast_outbox WHERE key = ? AND held = 1 AND rest_until IS NULL
    ORDER BY version LIMIT ?"""
_RESTED = f"""
    SELECT seq FROM holdfast_outbox AS o WHERE state = 'waiting' AND rest_until <= ? AND NOT {_BEHIND}
    ORDER BY rest_until LIMIT ?"""


def to_event(row: Row) -> OutboxEvent:
    return OutboxEvent(**dict(zip(OutboxEvent.__struct_fields__, row, strict=True)))


def look(db: Db, lease: Lease, *, limit: int) -> list[OutboxEvent] | None:
    """What waits, when nothing has failed that has to do with it; else None."""
    if not is_held(db, lease):
        return []
    if db.value(_SOME_DUE, db.now):
        return None
    ready = db.rows(_LOOK, limit)
    if any(behind for _, behind in ready):
        return None
    return _events(db, [seq for seq, _ in ready])


def waiting(db: Db, lease: Lease, *, limit: int) -> list[OutboxEvent] | None:
    """The same with what has rested enough. None: there is more to set aside before something is found."""
    if not is_held(db, lease):
        return []
    due = _due(db, limit)
    ready, is_all = _ready(db, limit)
    found = sorted({*due, *ready})[:limit]
    return _events(db, found) if found or is_all else None


def _due(db: Db, limit: int) -> list[int]:
    """What has rested enough. A block that nothing stands behind is over; one before a quarantined event has no end."""
    found = list[int]()
    for (key,) in db.rows(_DUE, db.now, KEYS_DUE):
        of_key = db.rows(_OF_KEY, key, limit)
        free = list(takewhile(lambda row: row[2] == "waiting", of_key))
        if not of_key:
            db.run("DELETE FROM holdfast_event_block WHERE key = ?", key)
        elif not free:
            _set_block(db, key, of_key[0][1], None)
        found += [seq for seq, _, _ in free]
    return found + [seq for (seq,) in db.rows(_RESTED, db.now, limit)]


def _ready(db: Db, limit: int) -> tuple[list[int], bool]:
    """What stands behind no block, in order; and whether that is all there is. What stands behind one is set aside."""
    found = [seq for (seq,) in db.rows(_FREE, WINDOW, limit)]
    before = found[-1] if len(found) == limit else 2**63 - 1
    return found, not db.run(_SET_ASIDE, WINDOW, MARKED, before)


def _events(db: Db, found: Sequence[int]) -> list[OutboxEvent]:
    sql = f"SELECT {COLUMNS} FROM holdfast_outbox WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"
    with db.each(sql, numbers(found)) as rows:
        return portion(rows, len(found))


def portion(rows: Iterable[Row], limit: int) -> list[OutboxEvent]:
    """As many of the first ones as are read together."""
    return next(portions(map(to_event, rows), _size, most=limit), [])


def _size(event: OutboxEvent) -> int:
    return len(event.data) if event.data.isascii() else len(event.data.encode())


def stamp(db: Db, lease: Lease, *, ids: Sequence[str]) -> list[int] | None:
    if not is_held(db, lease):
        return None
    positions = {event_id: _position(db, event_id) for event_id in ids}
    new = [event_id for event_id, position in positions.items() if position is None]
    if new:
        first = db.draw("position", len(new))
        positions |= {event_id: first + place for place, event_id in enumerate(new)}
        db.run_many(_UNBLOCK_STAMPED, [(db.now, event_id) for event_id in new])
        db.run_many(_STAMP, [(positions[event_id], db.now, event_id) for event_id in new])
    return [positions[event_id] or 0 for event_id in ids]


# One that blocks its key was published after all.
_UNBLOCK_STAMPED = """
    UPDATE holdfast_event_block SET until = ?1 WHERE (key, version) IN (
        SELECT key, version FROM holdfast_outbox WHERE id = ?2 AND held = 1 AND rest_until IS NULL)"""
_STAMP = """
    UPDATE holdfast_outbox SET state = 'published', held = 0, rest_until = NULL, position = ?, published_at = ?
    WHERE id = ?"""


def _position(db: Db, event_id: str) -> int | None:
    """None: it has none yet. 0: there is no such event."""
    row = db.row("SELECT position FROM holdfast_outbox WHERE id = ?", event_id)
    return 0 if row is None else row[0]


def failed(db: Db, lease: Lease, *, event_id: str, error: str, rest: float | None, blocks: bool) -> bool:
    if not is_held(db, lease):
        return False
    row = db.row("SELECT seq, key, version FROM holdfast_outbox WHERE id = ? AND state = 'waiting'", event_id)
    if row is not None:
        seq, key, version = row
        until = None if rest is None else db.now + rest
        alone = key is None or not blocks
        state = "quarantined" if rest is None else "waiting"
        db.run(_FAILED, state, (until or db.now) if alone else None, error, seq)
        if not alone:
            _block(db, key, version, until)
        elif key is not None:
            _unblock(db, key, version)
    return True


_FAILED = """
    UPDATE holdfast_outbox SET state = ?, held = 1, rest_until = ?, error = ?, tries = tries + 1 WHERE seq = ?"""


def _block(db: Db, key: str, version: int, until: float | None) -> None:
    """From this version on. What was held before it goes on; what stands between it and the last block does not."""
    row = db.row("SELECT version, until FROM holdfast_event_block WHERE key = ?", key)
    before, due = (version, db.now) if row is None else row
    if before < version and (due is None or due > db.now):
        db.run(_HOLD, key, before, version)  # an earlier one waits still, and this one with it
        return
    _set_block(db, key, version, until)
    db.run(_LET_GO, key, version)
    db.run(_HOLD, key, version, before)


def _set_block(db: Db, key: str, version: int, until: float | None) -> None:
    sql = """INSERT INTO holdfast_event_block (key, version, until) VALUES (?, ?, ?)
        ON CONFLICT (key) DO UPDATE SET version = excluded.version, until = excluded.until"""
    db.run(sql, key, version, until)


_LET_GO = """
    UPDATE holdfast_outbox SET held = 0
    WHERE key = ? AND version < ? AND held = 1 AND rest_until IS NULL AND state = 'waiting'"""
_HOLD = """
    UPDATE holdfast_outbox SET held = 1
    WHERE key = ? AND version > ? AND version < ? AND key IS NOT NULL AND state = 'waiting' AND held = 0"""


def _unblock(db: Db, key: str, version: int) -> None:
    """Those behind it go on, from the next look on."""
    db.run("UPDATE holdfast_event_block SET until = ? WHERE key = ? AND version = ?", db.now, key, version)


def requeue(db: Db, *, ids: Sequence[str], actor: str) -> list[bool]:
    return [_requeue(db, event_id, actor) for event_id in ids]


def _requeue(db: Db, event_id: str, actor: str) -> bool:
    event = _quarantined(db, event_id)
    if event is None:
        return False
    db.run(_REQUEUE, event.seq)
    if event.key is not None and event.version is not None:
        _unblock(db, event.key, event.version)
    audit.write(db, event_verdicts.requeued(event, actor=actor))
    db.draw("rank")  # that is what other processes watch for news
    return True


# One that blocks its key stays with those behind it, which its block leads to.
_REQUEUE = """
    UPDATE holdfast_outbox SET state = 'waiting', tries = 0, held = rest_until IS NULL, rest_until = NULL WHERE seq = ?"""


def drop(db: Db, *, ids: Sequence[str], actor: str, reason: str) -> list[bool]:
    return [_drop(db, event_id, actor, reason) for event_id in ids]


def _drop(db: Db, event_id: str, actor: str, reason: str) -> bool:
    event = _quarantined(db, event_id)
    if event is None:
        return False
    db.run("DELETE FROM holdfast_outbox WHERE seq = ?", event.seq)
    if event.key is not None and event.version is not None:
        _unblock(db, event.key, event.version)
    audit.write(db, event_verdicts.dropped(event, actor=actor, reason=reason))
    db.draw("rank")
    return True


def _quarantined(db: Db, event_id: str) -> OutboxEvent | None:
    sql = f"SELECT {COLUMNS} FROM holdfast_outbox WHERE id = ? AND state = 'quarantined'"
    row = db.row(sql, event_id)
    return None if row is None else to_event(row)
