"""Days of history: prepared ahead, dropped whole, and never in the way of finishing."""

from __future__ import annotations

import asyncio

from clocks import advance, freeze
from kit import end, put, take, the

from holdfast.kernel.outcomes import Done
from holdfast.store.postgres import history
from holdfast.store.records import Finish

DAY = 86_400.0
NOON = 1_899_979_200.0  # of 17 March 2030


async def partitions(store):
    sql = """SELECT c.relname, (SELECT count(*) FROM holdfast.history h WHERE h.tableoid = c.oid)
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'holdfast.history'::regclass ORDER BY 1"""
    async with store.transaction() as tx:
        return dict(await tx.fetch(sql))


async def run_one(store):
    job_id = await put(store)
    [claim] = await take(store)
    assert await end(store, claim)
    return job_id


async def test_migrate_and_prune_prepare_today_and_the_days_ahead(store):
    await store.migrate()
    assert len(await partitions(store)) == 1 + 4
    await advance(store, 2 * DAY)
    await store.history.prune(keep=30 * DAY)
    assert len(await partitions(store)) == 1 + 6


async def test_a_day_is_dropped_when_all_of_it_is_old(store):
    await freeze(store, NOON)
    await store.history.prune(keep=DAY)
    old = await run_one(store)
    assert (await partitions(store))["history_20300317"] == 1
    await freeze(store, NOON + DAY)
    assert await store.history.prune(keep=0.75 * DAY) == 0, "the evening of that day is not old yet"
    await freeze(store, NOON + 2 * DAY)
    assert await store.history.prune(keep=DAY) == 1
    assert await store.jobs.get(old) is None
    assert "history_20300317" not in await partitions(store)


async def test_a_day_that_began_in_the_default_partition_ends_there(store):
    await freeze(store, NOON)
    first = await run_one(store)
    assert await store.history.prune(keep=DAY) == 0
    second = await run_one(store)
    found = await partitions(store)
    assert found["history_rest"] == 2
    assert "history_20300317" not in found
    assert "history_20300318" in found
    await freeze(store, NOON + 2 * DAY)
    assert await store.history.prune(keep=DAY) == 2
    assert [await store.jobs.get(job_id) for job_id in (first, second)] == [None, None]


async def test_prune_steps_back_from_a_finish_that_is_under_way(store, other):
    await freeze(store, NOON)
    await store.history.prune(keep=DAY)
    await put(store)
    await run_one(store)
    await freeze(store, NOON + 3 * DAY)
    [claim] = await take(store)
    async with store.transaction() as tx:
        await store.claims.finish([Finish(claim, Done())], tx=tx)
        async with asyncio.timeout(20):
            assert await other.history.prune(keep=DAY) == 0
    assert await other.history.prune(keep=DAY) == 1
    await the(store, claim.job_id)


async def test_a_huge_day_is_dropped_without_counting_it(store, monkeypatch):
    await freeze(store, NOON)
    await store.history.prune(keep=DAY)
    await run_one(store)
    columns = (
        "id, enqueued_at, finished_at, attempt, interruptions, generation, priority, state, task, queue, args"
    )
    async with store.transaction() as tx:
        await tx.execute(
            f"""INSERT INTO holdfast.history ({columns}) SELECT gen_random_uuid(), {columns[4:]}
            FROM holdfast.history, generate_series(2, 5000)"""
        )
    await freeze(store, NOON + 2 * DAY)
    monkeypatch.setattr(history, "COUNTED", 0)
    asked = []
    size = history._size

    def watched(table):
        steps = size(table)
        rows = None
        try:
            while True:
                statement = steps.send(rows)
                asked.append(statement.sql)
                rows = yield statement
        except StopIteration as end_:
            return end_.value

    monkeypatch.setattr(history, "_size", watched)
    assert 500 < await store.history.prune(keep=DAY) < 50_000, "about as many as there were"
    assert asked
    assert not any("count(" in sql for sql in asked)
    assert "history_20300317" not in await partitions(store)
