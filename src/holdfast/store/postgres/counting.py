"""How many jobs there are of each kind: a bounded look along the index of each, and the tally of what is too much for that."""

from __future__ import annotations

from holdfast.kernel.clock import monotonic
from holdfast.store.counting import CROWD, Kind, Tally, counted, crowds, is_old
from holdfast.store.postgres.connection import BEGIN
from holdfast.store.records import Count
from holdfast.store.statements import Procedure, Statement

# Each kind by its own index: without statistics of it, the planner would rather read the whole table.
BY_INDEX = f"{BEGIN}; SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off"
_ENDED = "(state, id) > ('{0}', '00000000-0000-0000-0000-000000000000') AND (state, id) < ('{0}', 'ffffffff-ffff-ffff-ffff-ffffffffffff')"
_QUEUED = "state = 'queued' AND held IS NULL"
_KINDS: list[tuple[Kind, str, str]] = [
    (("queued", None), f"{_QUEUED} AND NOT suspect", "queue, priority DESC, rank"),
    (("queued", None), f"{_QUEUED} AND suspect", "queue, rank"),
    (("queued", "arrived"), "held = 'arrived'", "rank"),
    (("queued", "ordering"), "held = 'ordering'", "ordering_key, rank"),
    (("queued", "time"), "held = 'time'", "run_at"),
    (("queued", "concurrency"), "held = 'concurrency'", "concurrency_key, priority DESC, rank"),
    (("queued", "paused"), "held = 'paused'", "tenant, priority DESC, rank"),
    (("queued", "tenant"), "held = 'tenant'", "queue, tenant, priority DESC, rank"),
    (("queued", "guard"), "held = 'guard'", "rank"),
    (("queued", "waiting"), "held = 'waiting'", "rank"),
    (("queued", "unknown_task"), "held = 'unknown_task'", "rank"),
    (("running", None), "state = 'running'", "lease_until"),
    (("dead", None), f"state IN ('dead', 'unknown') AND {_ENDED.format('dead')}", "state, id"),
    (("unknown", None), f"state IN ('dead', 'unknown') AND {_ENDED.format('unknown')}", "state, id"),
]


def _branch(kind: Kind, which: str, order: str) -> str:
    state, held = kind
    words = "NULL::text" if held is None else f"'{held}'"
    rows = f"SELECT queue FROM holdfast.job WHERE {which} ORDER BY {order} LIMIT $1"
    return f"SELECT '{state}', {words}, queue, count(*) FROM ({rows}) AS s GROUP BY queue"


def _look(kinds: set[Kind] | None, limit: int | None) -> Procedure[list[Tally]]:
    branches = [_branch(*each) for each in _KINDS if kinds is None or each[0] in kinds]
    rows = yield Statement(" UNION ALL ".join(branches), (limit,))
    found: dict[tuple[Kind, str], int] = {}
    for state, held, queue, number in rows:
        found[(state, held), queue] = found.get(((state, held), queue), 0) + number
    return [Tally(*kind, queue, number) for (kind, queue), number in found.items()]


def _told() -> Procedure[list[Tally]]:
    sql = "SELECT state, held, queue, number, date_part('epoch', at), took FROM holdfast.tally"
    return [Tally(*row) for row in (yield Statement(sql))]


def count() -> Procedure[list[Count]]:
    seen = yield from _look(None, CROWD)
    if not (wanted := crowds(seen)):
        return counted(seen, [])
    told = [each for each in (yield from _told()) if each.kind in wanted]
    if missing := wanted - {each.kind for each in told}:
        told += yield from _look(missing, None)
    return counted(seen, told)


def tally() -> Procedure[int]:
    """Count the crowds, when it is time; returns how many kinds were counted. One at a time in the fleet."""
    wanted = crowds((yield from _look(None, CROWD)))
    [[now]] = yield Statement("SELECT date_part('epoch', holdfast.now())")
    told = yield from _told()
    if not wanted and told:
        yield Statement("DELETE FROM holdfast.tally")
    if not wanted or not is_old(told, wanted, now):
        return 0
    [[is_mine]] = yield Statement("SELECT pg_try_advisory_xact_lock($1::bigint)", (_LOCK,))
    if not is_mine:
        return 0
    began = monotonic()
    numbers = yield from _look(wanted, None)
    took = monotonic() - began
    yield Statement("DELETE FROM holdfast.tally")
    columns = (
        [each.state for each in numbers],
        [each.held for each in numbers],
        [each.queue for each in numbers],
        [each.number for each in numbers],
        now,
        took,
    )
    yield Statement(_KEEP, columns)
    return len(wanted)


_LOCK = 0x486F_7461_6C6C_7901
_KEEP = """
INSERT INTO holdfast.tally (state, held, queue, number, at, took)
SELECT g.*, to_timestamp($5::float8), $6::float8 FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS g"""
