"""Views and versions, two at once: a batch and a lease that changes hands, two batches, two writers of a new key."""

from __future__ import annotations

import asyncio
import json

import pytest
from kit import blocked

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import NewEvent
from holdfast.store.postgres import leases, outbox, views
from holdfast.store.postgres.connection import drive
from holdfast.store.view_records import NewRow, ViewBatch

MANY = 100_000


def batch(*keys, after=0, upto=1):
    rows = tuple(NewRow(key=key, data="{}", position=upto) for key in keys)
    return ViewBatch(view="orders", generation=1, after=after, upto=upto, rows=rows)


def running(coroutine):
    return asyncio.get_running_loop().create_task(coroutine)


@pytest.fixture
async def lease(store):
    await store.views.begin("orders", start=0)
    return await store.leases.acquire("v", owner="w", ttl=30)


async def found(store):
    return [row.key for row in await store.views.find("orders")]


async def test_a_lease_changes_hands_after_the_batch_that_named_it(store, other, lease):
    async with store.transaction() as tx:
        assert await tx.run(views.apply(lease, batch("a")))
        taking = running(other.leases.acquire("v", owner="w", ttl=30))
        await blocked(store)
    assert (await taking).token > lease.token
    assert not await store.views.apply(lease, batch("b", after=1, upto=2))
    assert await found(store) == ["a"]


async def test_a_batch_waits_for_a_lease_that_changes_hands_and_is_refused(store, other, lease):
    async with store.transaction() as tx:
        assert await tx.run(leases.acquire("v", owner="w", ttl=30))
        applying = running(other.views.apply(lease, batch("a")))
        await blocked(store)
    assert not await applying
    assert await found(store) == []


async def test_of_two_batches_from_one_checkpoint_one_is_kept(store, other, lease):
    async with store.transaction() as tx:
        assert await tx.run(views.apply(lease, batch("a")))
        applying = running(other.views.apply(lease, batch("b", upto=2)))
        await blocked(store)
    assert not await applying
    assert await found(store) == ["a"]


async def test_a_batch_waits_for_a_rebuild_to_be_given_up(store, other, lease):
    await store.views.begin_rebuild("orders", start=0, actor="ada")
    async with store.transaction() as tx:
        assert await tx.run(views.begin_rebuild("orders", start=0, actor="ada"))
        second = ViewBatch(view="orders", generation=2, after=0, upto=1)
        applying = running(other.views.apply(lease, second))
        await blocked(store)
    assert not await applying


async def test_two_writers_of_a_new_key_meet_before_they_write(store, other):
    async def write(client, tx):
        if await client.versions.hold("order:1", tx=tx) == 0:
            await client.outbox.emit([NewEvent(id=new_id(), type="order.placed", key="order:1")], tx=tx)
            return True
        return False

    async def second():
        async with other.transaction() as tx:
            return await write(other, tx)

    async with store.transaction() as tx:
        assert await write(store, tx)
        writing = running(second())
        await blocked(store)
    assert not await writing
    assert await store.outbox.version("order:1") == 1


async def test_an_emit_waits_for_who_holds_its_key(store, other):
    async with store.transaction() as tx:
        assert await store.versions.hold("order:1", tx=tx) == 0
        emitting = running(other.outbox.emit([NewEvent(id=new_id(), type="order.placed", key="order:1")]))
        await blocked(store)
    [emitted] = await emitting
    assert emitted.version == 1


# --- plans ---


@pytest.fixture
async def connection(store):
    """One of the store's own connections, as it plans."""
    found = await store.database.pool.acquire()
    yield found
    store.database.pool.release(found)


def statements(lease):
    rows = tuple(NewRow(key=f"k{n:06}", data="{}", position=MANY + 1) for n in range(50))
    given = ViewBatch(view="orders", generation=1, after=MANY, upto=MANY + 1, rows=rows)
    applying = views.apply(lease, given)
    loading = views.load("orders", 1, [f"k{n:06}" for n in range(50)])
    return {
        "held": next(applying),
        "move": applying.send([(1,)]),
        "write": applying.send([(1,)]),
        "get": next(views.get("orders", "k000500")),
        "find": next(views.find("orders", prefix="", after="k000500", limit=50)),
        "find by prefix": next(views.find("orders", prefix="k00050", after=None, limit=50)),
        "load": next(loading),
        "load held": loading.send([]),
        "prune deleted": views.Statement(views._PRUNE_DELETED, (50,)),
        "prune": views.Statement(views._PRUNES[0], ("orders", 2, 50)),
    }


@pytest.mark.parametrize("statistics", ["none", "of before", "of now"])
async def test_no_verb_of_views_reads_more_rows_than_it_needs(store, connection, lease, statistics):
    if statistics == "of before":
        await connection.execute("ANALYZE")
    await connection.execute(
        f"""UPDATE holdfast.view SET position = {MANY};
        INSERT INTO holdfast.view_row (view, generation, key, data, position, updated_at, forget)
        SELECT 'orders', 1 + n % 2, 'k' || lpad((n / 2)::text, 6, '0'), CASE WHEN n % 100 > 1 THEN '{{}}' END, n, holdfast.now(),
            CASE WHEN n % 100 <= 1 THEN n END FROM generate_series(1, {MANY}) AS n"""
    )
    if statistics == "of now":
        await connection.execute("ANALYZE")
    for name, statement in statements(lease).items():
        await connection.execute("BEGIN")
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", *statement.params)
        await connection.execute("ROLLBACK")
        for node in _nodes(json.loads(text)[0]["Plan"]):
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            assert read * node["Actual Loops"] <= 250, f"{name}: {node}"
            if node.get("Relation Name", "").startswith("view_"):
                assert node["Node Type"] != "Seq Scan", f"{name}: {node}"


def _nodes(plan):
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


async def test_updates_of_a_view_stay_on_their_page(connection, lease):
    """No column of an index changes, so a busy view makes no work for the indexes."""
    before = {table: await _updates(connection, table) for table in ("view", "view_row")}
    for place in range(100):
        await connection.execute("BEGIN")
        assert await drive(connection, views.apply(lease, batch("a", after=place, upto=place + 1)))
        await connection.execute("COMMIT")
    for table, (all_before, hot_before) in before.items():
        all_now, hot_now = await _updates(connection, table)
        assert all_now - all_before >= 99, table
        assert hot_now - hot_before >= 90, table


async def _updates(connection, table):
    """So far: all, and those that left the indexes alone. A session tells of its own when it is idle, unless it is told to."""
    await connection.execute("SELECT pg_stat_force_next_flush()")
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    return await connection.fetchrow(
        f"""SELECT pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_hot_updated(oid)
        FROM pg_class WHERE oid = 'holdfast.{table}'::regclass"""
    )


async def test_who_prunes_and_who_begins_wait_for_each_other(store, other):
    """Who begins to read is seen by who prunes; and who prunes first leaves no gap to who looked before."""
    await store.outbox.emit([NewEvent(id=new_id(), type="a.b", data="{}") for _ in range(2)])
    relay = await store.leases.acquire("holdfast:relay", owner="r", ttl=30)
    ids = [event.id for event in await store.outbox.waiting(relay, limit=9)]
    assert await store.outbox.stamp(relay, ids) == [1, 2]
    async with store.transaction() as tx:
        assert await tx.run(views.begin("orders", start=0, history=False))
        pruning = running(other.outbox.prune(keep=0))
        await blocked(store)
    assert await pruning == 0
    await store.views.forget("orders", actor="ada")
    async with store.transaction() as tx:
        assert await tx.run(outbox.prune(keep=0, limit=1)) == 1
        beginning = running(other.views.begin("orders", start=0))
        await blocked(store)
    assert await beginning is None
