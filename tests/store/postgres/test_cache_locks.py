"""The cache while someone's transaction is open: nobody reads what it is about to invalidate for longer than until it commits."""

from __future__ import annotations

import asyncio

import pytest
from kit import blocked

from holdfast.store.cache_records import Entry, Load, Why


async def begin(store, key="k", tags=("t",), why=Why.MISSING):
    return await store.cache.begin(key, tags=tags, lease=30, why=why)


async def keep(store, value="1", key="k"):
    load = await begin(store, key)
    assert isinstance(load, Load)
    assert await store.cache.put(load, value, fresh=60, stale=600)


async def value(store, key="k"):
    return (await store.cache.get([key]))[0].value


async def test_a_known_tag_is_not_waited_for_and_what_was_loaded_meanwhile_does_not_count(store, other):
    """Loaded and kept between the statement and the commit: of data from before it."""
    await keep(store)
    await store.cache.invalidate(["k"])
    async with other.transaction() as tx:
        await other.cache.invalidate_tags(["t"], tx=tx)
        async with asyncio.timeout(30):
            await keep(store, "old")
        assert await value(store) == "old"
    assert await value(store) is None


async def test_a_tag_that_a_transaction_has_made_is_waited_for_by_who_has_no_right_yet(store, other):
    """So that nothing of before its commit can count; and nobody waits for who waits."""
    async with other.transaction() as tx:
        await other.cache.invalidate_tags(["t"], tx=tx)
        waiting = asyncio.create_task(begin(store))
        await blocked(other)
        assert await store.cache.get(["k"]) == [Entry()], "it has not taken the right"
        assert isinstance(await begin(store, "other", tags=()), Load)
    assert isinstance(await waiting, Load)


async def test_tags_in_crossed_order_do_not_wait_for_each_other(store, other):
    names = [f"t{number}" for number in range(20)]
    crossed = [names, names[::-1], names[10:] + names[:10]] * 10
    await asyncio.gather(
        *(each.cache.invalidate_tags(tags) for each in (store, other) for tags in crossed),
        *(
            each.cache.begin(f"k{n}", tags=tags, lease=5)
            for n, each in enumerate((store, other))
            for tags in crossed
        ),
        *(
            each.cache.invalidate([f"k{n}" for n in order])
            for each in (store, other)
            for order in ((0, 1), (1, 0))
        ),
    )


@pytest.mark.parametrize("why", list(Why))
async def test_of_many_who_begin_at_once_one_may(store, other, why):
    found = await asyncio.gather(*(begin(each, why=why) for each in (store, other) * 10))
    loads = [each for each in found if isinstance(each, Load)]
    if why is Why.FORCED:
        kept = [await store.cache.put(load, "1", fresh=1, stale=1) for load in loads]
        assert sum(kept) == 1
    else:
        assert len(loads) == 1


async def test_tables_are_not_logged(store):
    async with store.transaction() as tx:
        rows = await tx.fetch(
            "SELECT relname, relpersistence::text FROM pg_class WHERE oid IN ('holdfast.cache'::regclass, 'holdfast.cache_tag'::regclass)"
        )
    assert sorted(rows) == [("cache", "u"), ("cache_tag", "u")]
