"""The verbs of the cache read the rows they need, also with 50,000 keys and without statistics."""

from __future__ import annotations

import pytest

from holdfast.store.cache_records import Load, Why
from holdfast.store.postgres import cache, cache_tags

MANY = 50_000
_FILL = f"""
INSERT INTO holdfast.cache_tag (tag, generation, forget)
SELECT 't' || n, n, holdfast.now() + CASE WHEN n % 100 = 0 THEN interval '-1 hour' ELSE interval '1 hour' END
FROM generate_series(1, {MANY}) AS n;
INSERT INTO holdfast.cache (key, value, written_at, fresh_until, stale_until, tags, generations, forget)
SELECT 'k' || n, '1', holdfast.now(), holdfast.now(), holdfast.now() + interval '1 hour', ARRAY['t' || n], ARRAY[n],
    holdfast.now() + CASE WHEN n % 100 = 0 THEN interval '-1 hour' ELSE interval '1 hour' END
FROM generate_series(1, {MANY}) AS n"""


def statements():
    load, tags = Load("k7", 1, 0.0, ("t7",), (7,)), ["t7", "t8"]
    begin = cache.begin("k7", tags=tags, lease=5, why=Why.MISSING)
    known, take = next(begin), begin.send([("t7", 7), ("t8", 8)])
    put = cache.put(load, "1", fresh=1, stale=5)
    kept, lasting = next(put), put.send([("k7",)])
    return {
        "get": next(cache.get([f"k{number}" for number in range(50)])),
        "begin, its tags": known,
        "learn": next(cache_tags.learn("t7")),
        "begin": take,
        "generations": next(cache._generations(tags)),
        "renew": next(cache.renew(load, lease=5)),
        "put": kept,
        "put, its tags": lasting,
        "abandon": next(cache.abandon(load, rest=5)),
        "invalidate": next(cache.invalidate(["k7", "k8"])),
        "invalidate tags": next(cache_tags.invalidate_tags(tags)),
        "invalidate tags soon": next(cache_tags.invalidate_tags(tags, impatient=True)),
        "find": next(cache.find("k5", 50)),
        "prune values": cache.Statement(cache._PRUNES[0], (50,)),
        "prune tags": cache.Statement(cache._PRUNES[1], (50,)),
    }


@pytest.fixture
async def connection(store):
    """One of the store's own connections, as it plans."""
    found = await store.database.pool.acquire()
    yield found
    store.database.pool.release(found)


async def test_no_verb_walks_through_a_table(connection):
    """One fill for all of them: it takes most of the time."""
    await connection.execute(_FILL)
    walks = {}
    for name, statement in statements().items():
        async with connection.transaction():
            rows = await connection.fetch(f"EXPLAIN {statement.sql}", *statement.params)
        plan = "\n".join(row[0] for row in rows)
        if "Seq Scan on cache" in plan:
            walks[name] = plan
    assert not walks, "\n\n".join(f"{name}\n{plan}" for name, plan in walks.items())
