"""What a relay does to the outbox: read what waits, give positions, and keep order when a publication fails.

A key of which one failed has a block, from that event's version on. What stands behind it is `held` when the relay comes
across it, so that nobody reads it again and again; when its time has come, it is found by its key, in order. Whatever
changes blocks has the row of the lease, or only sets the time of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, takewhile
from typing import Any

from holdfast.kernel.portions import PORTION
from holdfast.store import event_verdicts
from holdfast.store.event_records import OutboxEvent
from holdfast.store.postgres.audit import audited
from holdfast.store.records import Lease
from holdfast.store.statements import Procedure, Statement

WINDOW = 200_000  # events among which one is looked for that stands behind no block
MARKED = 10_000  # events behind a block that are set aside in one transaction
KEYS_DUE = 50  # blocks whose time has come that are looked at together

# In the order of OutboxEvent's fields.
COLUMNS = """o.seq, o.id::text, o.type, o.key, o.version, o.data, date_part('epoch', o.time), o.correlation_id,
    o.causation_id, o.trace, o.state, o.position, date_part('epoch', o.published_at), o.tries, o.error"""
_FIELDS = OutboxEvent.__struct_fields__
_HELD = "name = $1::text AND token = $2::bigint AND until > holdfast.now()"
# As many of the first ones as are read together. Large data is only pointed at until it is known to fit.
SIZES = "octet_length(data) AS own, sum(octet_length(data)) OVER (ORDER BY {order}) AS upto"
FITS = "(o.upto <= {room} OR o.upto = o.own)"
_BEHIND = "EXISTS (SELECT FROM holdfast.event_block b WHERE b.key = o.key AND o.version >= b.version)"


def to_event(row: Sequence[Any]) -> OutboxEvent:
    return OutboxEvent(**dict(zip(_FIELDS, row, strict=True)))


def fence(lease: Lease) -> Procedure[bool]:
    """Whether nobody else can have it before our transaction ends."""
    sql = f"SELECT token FROM holdfast.lease WHERE {_HELD} FOR UPDATE"
    return bool((yield Statement(sql, (lease.name, lease.token))))


def look(lease: Lease, *, limit: int) -> Procedure[list[OutboxEvent] | None]:
    """What waits, when nothing has failed that has to do with it; else None."""
    rows = yield Statement(_LOOK, (lease.name, lease.token, limit, PORTION))
    if any(row[0] or row[1] for row in rows):
        return None
    return [to_event(row[2:]) for row in rows if row[2] is not None]


_LOOK = f"""
SELECT l.due, o.behind, {", ".join(f"o.c{place}" for place in range(len(_FIELDS)))}
FROM (SELECT EXISTS (SELECT FROM holdfast.event_block WHERE until <= holdfast.now())
        OR EXISTS (SELECT FROM holdfast.outbox WHERE state = 'waiting' AND rest_until <= holdfast.now()) AS due
    FROM holdfast.lease WHERE {_HELD}) l
LEFT JOIN LATERAL (
    SELECT {_BEHIND} AS behind, {COLUMNS} FROM (
        SELECT *, {SIZES.format(order="seq")} FROM (
            SELECT * FROM holdfast.outbox WHERE state = 'waiting' AND NOT held ORDER BY seq LIMIT $3) f) o
    WHERE {FITS.format(room="$4::bigint")}) AS
    o(behind, {", ".join(f"c{place}" for place in range(len(_FIELDS)))}) ON true
ORDER BY o.c0"""


def waiting(lease: Lease, *, limit: int) -> Procedure[list[OutboxEvent] | None]:
    """The same with what has rested enough. None: there is more to set aside before something is found."""
    if not (yield from fence(lease)):
        return []
    due = yield from _due(limit)
    ready, is_all = yield from _ready(limit)
    found = sorted({*due, *ready})[:limit]
    if not found:
        return [] if is_all else None
    return [to_event(row) for row in (yield Statement(_EVENTS, (found, PORTION)))]


_EVENTS = f"""
SELECT {COLUMNS} FROM (
    SELECT *, {SIZES.format(order="seq")} FROM holdfast.outbox WHERE seq = ANY($1::bigint[])) o
WHERE {FITS.format(room="$2::bigint")} ORDER BY o.seq"""


def _due(limit: int) -> Procedure[list[int]]:
    """What has rested enough. A block that nothing stands behind is over; one before a quarantined event has no end."""
    found = list[int]()
    rows = yield Statement(_OF_KEYS, (KEYS_DUE, limit))
    for key, of_key in groupby(rows, key=lambda row: row[0]):
        behind = [row for row in of_key if row[1] is not None]
        free = list(takewhile(lambda row: row[3] == "waiting", behind))
        if not behind:
            yield Statement("DELETE FROM holdfast.event_block WHERE key = $1::text", (key,))
        elif not free:
            yield _set_block(key, behind[0][2], None)
        found += [row[1] for row in free]
    return found + [row[0] for row in (yield Statement(_RESTED, (limit,)))]


_RESTED = f"""
SELECT o.seq FROM holdfast.outbox o WHERE o.state = 'waiting' AND o.rest_until <= holdfast.now() AND NOT {_BEHIND}
ORDER BY o.rest_until LIMIT $1"""
_OF_KEYS = """
SELECT b.key, o.seq, o.version, o.state
FROM (SELECT key, until FROM holdfast.event_block WHERE until <= holdfast.now() ORDER BY until, key LIMIT $1
    FOR UPDATE) b
LEFT JOIN LATERAL (
    SELECT o.seq, o.version, o.state FROM holdfast.outbox o WHERE o.key = b.key AND o.held AND o.rest_until IS NULL
    ORDER BY o.version LIMIT $2) o ON true
ORDER BY b.until, b.key, o.version"""


def _ready(limit: int) -> Procedure[tuple[list[int], bool]]:
    """What stands behind no block, in order; and whether that is all there is. What stands behind one is set aside."""
    found = [row[0] for row in (yield Statement(_READY, (WINDOW, limit)))]
    before = found[-1] if len(found) == limit else None
    aside = yield Statement(_SET_ASIDE, (WINDOW, MARKED, before))
    return found, not aside


_FIRST = """
    SELECT w.seq, w.key, w.version FROM holdfast.outbox w WHERE w.state = 'waiting' AND NOT w.held{test}
    ORDER BY w.seq LIMIT $1"""
_READY = f"""
SELECT o.seq FROM ({_FIRST.format(test="")}) o WHERE NOT {_BEHIND} ORDER BY o.seq LIMIT $2"""
_SET_ASIDE = f"""
UPDATE holdfast.outbox SET held = true WHERE state = 'waiting' AND seq = ANY(ARRAY(
    SELECT o.seq FROM ({_FIRST.format(test=" AND w.seq < coalesce($3::bigint, 9223372036854775807)")}) o
    WHERE {_BEHIND} ORDER BY o.seq LIMIT $2))
RETURNING 1"""


def stamp(lease: Lease, ids: Sequence[str]) -> Procedure[list[int] | None]:
    once = list(dict.fromkeys(ids))
    rows = yield Statement(_STAMP, (lease.name, lease.token, once))
    if not rows:
        return None
    positions: dict[str, int] = {row[0]: row[1] for row in rows if row[0] is not None}
    if missing := [event_id for event_id in once if event_id not in positions]:
        rows = yield Statement(_POSITIONS, (missing,))
        positions |= {row[0]: row[1] for row in rows if row[1] is not None}
    return [positions.get(event_id, 0) for event_id in ids]


# Nobody waits for the disk: what a crash of the server forgets is published again, with the same ids, and perhaps at other
# positions. Whatever builds on one is later in the server's log; who read one before the crash looks again (`outbox.are_at`).
# The lease is held, then the counter is drawn from, then events are written: whoever is second waits, and the commits
# are in the order of the positions. One that blocks its key was published after all. The first row of the answer says that the lease is held.
_STAMP = f"""
WITH fenced AS MATERIALIZED (
    SELECT token, set_config('synchronous_commit', 'off', true) FROM holdfast.lease WHERE {_HELD} FOR UPDATE),
given AS MATERIALIZED (
    SELECT o.seq, o.key, o.version, o.held, row_number() OVER (ORDER BY g.place) AS nth
    FROM fenced, unnest($3::uuid[]) WITH ORDINALITY AS g(id, place), holdfast.outbox o
    WHERE o.id = ANY(ARRAY[g.id]) AND o.position IS NULL),
drawn AS (
    UPDATE holdfast.event_position SET value = value + (SELECT count(*) FROM given) WHERE EXISTS (SELECT FROM given)
    RETURNING value - (SELECT count(*) FROM given) AS last, holdfast.now() AS now),
stamped AS (
    UPDATE holdfast.outbox o SET state = 'published', held = false, rest_until = NULL, position = d.last + g.nth,
        published_at = d.now
    FROM drawn d, given g WHERE o.seq = ANY(ARRAY[g.seq]) AND o.position IS NULL RETURNING o.id::text, o.position),
unblocked AS (
    UPDATE holdfast.event_block b SET until = d.now FROM drawn d, given g
    WHERE g.held AND b.key = ANY(ARRAY[g.key]) AND b.version = g.version)
SELECT NULL, NULL::bigint FROM fenced UNION ALL SELECT id, position FROM stamped"""
_POSITIONS = "SELECT id::text, position FROM holdfast.outbox WHERE id = ANY($1::uuid[])"


def failed(lease: Lease, event_id: str, *, error: str, rest: float | None, blocks: bool) -> Procedure[bool]:
    if not (yield from fence(lease)):
        return False
    for seq, key, version, until, now in (yield Statement(_FAILING, (event_id, rest))):
        alone = key is None or not blocks
        state = "quarantined" if rest is None else "waiting"
        yield Statement(_FAILED, (seq, state, (until or now) if alone else None, error))
        if not alone:
            yield from _block(key, version, until)
        elif key is not None:
            yield Statement(_UNBLOCK, ([key], [version]))
    return True


_FAILING = """
SELECT o.seq, o.key, o.version, date_part('epoch', c.now + make_interval(secs => $2::float8)), date_part('epoch', c.now)
FROM (SELECT holdfast.now() AS now) c, holdfast.outbox o WHERE o.id = $1::uuid AND o.state = 'waiting' FOR UPDATE OF o"""
_FAILED = """
UPDATE holdfast.outbox SET state = $2::text, held = true, rest_until = to_timestamp($3::float8), error = $4::text,
    tries = tries + 1
WHERE seq = $1::bigint"""


def _block(key: str, version: int, until: float | None) -> Procedure[None]:
    """From this version on. What was held before it goes on; what stands between it and the last block does not."""
    before, is_due = version, True
    for row in (yield Statement(_BLOCK_OF, (key,))):
        before, is_due = row
    if before < version and not is_due:
        yield Statement(_HOLD, (key, before, version))  # an earlier one waits still, and this one with it
        return
    yield _set_block(key, version, until)
    yield Statement(_LET_GO, (key, version))
    yield Statement(_HOLD, (key, version, before))


def _set_block(key: str, version: int, until: float | None) -> Statement:
    return Statement(_SET_BLOCK, (key, version, until))


_BLOCK_OF = """
SELECT version, coalesce(until <= holdfast.now(), false) FROM holdfast.event_block WHERE key = $1::text FOR UPDATE"""
_SET_BLOCK = """
INSERT INTO holdfast.event_block (key, version, until) VALUES ($1::text, $2::bigint, to_timestamp($3::float8))
ON CONFLICT (key) DO UPDATE SET version = excluded.version, until = excluded.until"""
# The inner part says no more than the index by key has: with the rest of it the planner may take another one.
_LET_GO = """
UPDATE holdfast.outbox SET held = false WHERE state = 'waiting' AND seq = ANY(ARRAY(
    SELECT seq FROM holdfast.outbox WHERE key = $1::text AND version < $2::bigint AND held AND rest_until IS NULL))"""
_HOLD = """
UPDATE holdfast.outbox SET held = true WHERE state = 'waiting' AND NOT held AND seq = ANY(ARRAY(
    SELECT seq FROM holdfast.outbox WHERE key = $1::text AND version > $2::bigint AND version < $3::bigint))"""
# Those behind it go on, from the next look on.
_UNBLOCK = """
UPDATE holdfast.event_block b SET until = holdfast.now()
FROM unnest($1::text[], $2::bigint[]) AS g(key, version) WHERE b.key = ANY(ARRAY[g.key]) AND b.version = g.version"""


def requeue(ids: Sequence[str], *, actor: str) -> Procedure[list[bool]]:
    found = yield from _quarantined(ids)
    if found:
        yield Statement(_REQUEUE, ([event.seq for event in found.values()],))
        yield _unblock(found)
        yield audited([event_verdicts.requeued(event, actor=actor) for event in found.values()])
    return [found.pop(event_id, None) is not None for event_id in ids]


# One that blocks its key stays with those behind it, which its block leads to.
_REQUEUE = """
UPDATE holdfast.outbox SET state = 'waiting', tries = 0, held = rest_until IS NULL, rest_until = NULL
WHERE seq = ANY($1::bigint[])"""


def drop(ids: Sequence[str], *, actor: str, reason: str) -> Procedure[list[bool]]:
    found = yield from _quarantined(ids)
    if found:
        sql = "DELETE FROM holdfast.outbox WHERE seq = ANY($1::bigint[])"
        yield Statement(sql, ([event.seq for event in found.values()],))
        yield _unblock(found)
        yield audited([event_verdicts.dropped(event, actor=actor, reason=reason) for event in found.values()])
    return [found.pop(event_id, None) is not None for event_id in ids]


def _quarantined(ids: Sequence[str]) -> Procedure[dict[str, OutboxEvent]]:
    """Their rows are locked, in the order of the ids."""
    rows = yield Statement(_QUARANTINED, (sorted(set(ids)),))
    return {row[1]: to_event(row) for row in rows}


_QUARANTINED = f"""
SELECT {COLUMNS} FROM unnest($1::uuid[]) AS g(id), holdfast.outbox o
WHERE o.id = ANY(ARRAY[g.id]) AND o.state = 'quarantined' ORDER BY g.id FOR UPDATE OF o"""


def _unblock(events: dict[str, OutboxEvent]) -> Statement:
    keyed = [(event.key, event.version) for event in events.values() if event.key is not None]
    return Statement(_UNBLOCK, ([key for key, _ in keyed], [version for _, version in keyed]))
