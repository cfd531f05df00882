"""The locks on keys, held until the transaction ends: waited for, or taken when they are free and passed over when not.

Keys are locked before rows, always in the same order, and in a statement of their own: the statement after it sees
everything that was committed before. Whoever changes a job that has keys takes this way, so the facts cannot change
between looking and writing. Ordering keys come first, because the job whose turn is next tells which concurrency key it
needs.

Someone's open transaction may hold a key for a minute. So whoever serves all (promote, rescue, expire, repair) waits for
none: what is busy is passed over, and comes again in the next round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from zlib import crc32

import msgspec

from holdfast.store.postgres.connection import PLANNED
from holdfast.store.postgres.rows import one_by_one
from holdfast.store.statements import Procedure, Statement

_ORDERING, _CONCURRENCY = 0x486F_0001, 0x486F_0002  # the classes of our advisory locks


def nobody_in(order: str) -> str:
    """Neither at work nor in line, nor just arrived. Where sorting is switched off, each is looked up along the index of its key."""
    behind = f"SELECT FROM holdfast.job o WHERE o.ordering_key = {order} AND"
    looks = [f"{behind} o.has_turn", f"{behind} o.held = 'ordering'", _arrived_in(order)]
    return " AND ".join(f"NOT EXISTS ({one_by_one(look)})" for look in looks)


def _arrived_in(order: str) -> str:
    """In the order of their index: another is as cheap while nothing has arrived, and a walk through all of a crowd then."""
    place = "(o.ordering_key, o.rank)"
    return f"""SELECT FROM holdfast.job o WHERE o.ordering_key IS NOT NULL AND o.held = 'arrived'
        AND {place} > ({order}, -1) AND {place} < ({order}, {2**63 - 1}) ORDER BY o.ordering_key, o.rank"""


class Keys(msgspec.Struct, frozen=True):
    """The keys of one job: what it may let go of, and what it may need."""

    ordered: str | None
    concurrency: str | None


class Lock(msgspec.Struct, frozen=True):
    """The server's lock for one key, or for several with the same hash."""

    kind: int
    hash: int

    @property
    def is_of_order(self) -> bool:
        return self.kind == _ORDERING


def wait_for(lock: Lock) -> Procedure[None]:
    yield Statement("SELECT pg_advisory_xact_lock($1::int, $2::int)", (lock.kind, lock.hash))


def lock_chain(keys: Sequence[Keys]) -> Procedure[None]:
    """Wait until these keys are ours, and the slots that the next in order will need."""
    orders = _orders(keys)
    following: Collection[str] = ()
    if orders:
        yield from _lock(_ORDERING, orders)
        following = (yield from _following(orders)).values()
    yield from _lock(_CONCURRENCY, {*_slots(keys), *following})


def lock_order(keys: Keys, *, plans: bool = False) -> Procedure[None]:
    """Wait until the turn in this order is ours to pass on, to who needs nothing else. `plans`: and plan our way from now on."""
    yield from _lock(_ORDERING, _orders([keys]), more=f", {PLANNED}" if plans else "")


def take_own(keys: Sequence[Keys]) -> Procedure[dict[Keys, Lock]]:
    """For who takes turns and slots, and lets go of none: lock what is free; the answer is who lacks which lock."""
    orders = yield from _take(_ORDERING, _orders(keys))
    slots = yield from _take(_CONCURRENCY, _slots(key for key in keys if key.ordered not in orders))
    return _lacking(keys, orders, slots, {})


def take_chain(keys: Sequence[Keys]) -> Procedure[dict[Keys, Lock]]:
    """For who may let go of turns: also the slots that the next in order will need."""
    orders = yield from _take(_ORDERING, _orders(keys))
    following = yield from _following(_orders(keys) - orders.keys())
    own = _slots(key for key in keys if key.ordered not in orders)
    slots = yield from _take(_CONCURRENCY, own | set(following.values()))
    return _lacking(keys, orders, slots, following)


def take_free(orders: Sequence[str]) -> Procedure[set[str]]:
    """Lock those of these orders in which nobody seems to be, and whose key nobody has. Who has it then looks once more."""
    if not orders:
        return set()
    hashes = [_hash(order) for order in orders]
    return {row[0] for row in (yield Statement(_TAKE_FREE, (_ORDERING, list(orders), hashes)))}


_TAKE_FREE = f"""
WITH free AS MATERIALIZED (
    SELECT k.key, k.hash FROM unnest($2::text[], $3::int[]) AS k(key, hash) WHERE {nobody_in("k.key")})
SELECT key FROM free WHERE pg_try_advisory_xact_lock($1::int, hash)"""


def _orders(keys: Iterable[Keys]) -> set[str]:
    return {key.ordered for key in keys if key.ordered is not None}


def _slots(keys: Iterable[Keys]) -> set[str]:
    return {key.concurrency for key in keys if key.concurrency is not None}


def _lacking(
    keys: Iterable[Keys], orders: dict[str, Lock], slots: dict[str, Lock], following: dict[str, str]
) -> dict[Keys, Lock]:
    lacking: dict[Keys, Lock] = {}
    for key in keys:
        lock = orders.get(key.ordered or "") or slots.get(key.concurrency or "")
        lock = lock or slots.get(following.get(key.ordered or "", ""))
        if lock is not None:
            lacking[key] = lock
    return lacking


def _lock(kind: int, names: Iterable[str], *, more: str = "") -> Procedure[None]:
    if hashes := sorted({_hash(name) for name in names}):
        sql = f"SELECT pg_advisory_xact_lock($1::int, k.hash){more} FROM unnest($2::int[]) AS k(hash)"
        yield Statement(sql, (kind, hashes))


def _take(kind: int, names: Iterable[str]) -> Procedure[dict[str, Lock]]:
    """Those of these keys that another has; the rest is ours."""
    hashes = {name: _hash(name) for name in names}
    if not hashes:
        return {}
    sql = (
        "SELECT k.hash FROM unnest($2::int[]) AS k(hash) WHERE NOT pg_try_advisory_xact_lock($1::int, k.hash)"
    )
    busy = {row[0] for row in (yield Statement(sql, (kind, sorted(set(hashes.values())))))}
    return {name: Lock(kind, number) for name, number in hashes.items() if number in busy}


def _hash(name: str) -> int:
    return crc32(name.encode()) - 0x8000_0000


def _following(orders: Collection[str]) -> Procedure[dict[str, str]]:
    """The concurrency key of the next in each of these orders."""
    if not orders:
        return {}
    return {row[0]: row[1] for row in (yield Statement(_FOLLOWING, (sorted(orders),)))}


_FOLLOWING = """
SELECT k.key, w.concurrency_key FROM unnest($1::text[]) AS k(key) CROSS JOIN LATERAL (
    SELECT j.concurrency_key FROM holdfast.job j
    WHERE j.ordering_key = k.key AND j.held = 'ordering' ORDER BY j.rank LIMIT 1) w
WHERE w.concurrency_key IS NOT NULL"""
