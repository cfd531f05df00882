"""Days of history: prepared ahead, dropped whole, and never in the way of finishing."""

from __future__ import annotations

import asyncio

from clocks import advance, freeze
from kit import end, put, take, the

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done
from holdfast.store.postgres import forgetting, history
from holdfast.store.records import Finish
from holdfast.store.steps import Step

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


async def run_with_steps(store, number):
    for _ in range(number):
        await put(store)
        [claim] = await take(store)
        for place, name in enumerate("ab"):
            assert await store.steps.write(claim, Step(name=name, number=place))
        assert await end(store, claim)


async def steps_left(store):
    async with store.transaction() as tx:
        return (await tx.fetch("SELECT count(*) FROM holdfast.step"))[0][0]


async def prunes(store):
    """How many it takes until it is done with, and how many jobs they forget."""
    jobs = calls = 0
    while True:
        pruned = await store.history.prune(keep=DAY)
        jobs, calls = jobs + pruned.jobs, calls + 1
        if not pruned.more:
            return calls, jobs
        assert calls < 50


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
    assert (await store.history.prune(keep=0.75 * DAY)).jobs == 0, "the evening of that day is not old yet"
    await freeze(store, NOON + 2 * DAY)
    assert (await store.history.prune(keep=DAY)).jobs == 1
    assert await store.jobs.get(old) is None
    assert "history_20300317" not in await partitions(store)


async def test_a_day_that_began_in_the_default_partition_ends_there(store):
    await freeze(store, NOON)
    first = await run_one(store)
    assert (await store.history.prune(keep=DAY)).jobs == 0
    second = await run_one(store)
    found = await partitions(store)
    assert found["history_rest"] == 2
    assert "history_20300317" not in found
    assert "history_20300318" in found
    await freeze(store, NOON + 2 * DAY)
    assert (await store.history.prune(keep=DAY)).jobs == 2
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
            assert (await other.history.prune(keep=DAY)).jobs == 0
    assert (await other.history.prune(keep=DAY)).jobs == 1
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
    assert 500 < (await store.history.prune(keep=DAY)).jobs < 50_000, "about as many as there were"
    assert asked
    assert not any("count(" in sql for sql in asked)
    assert "history_20300317" not in await partitions(store)


async def test_the_steps_of_a_day_go_before_it_and_nothing_waits_for_them(store, monkeypatch):
    monkeypatch.setattr(forgetting, "PAGE", 2)
    monkeypatch.setattr(history, "PAGES", 2)
    await freeze(store, NOON)
    await store.history.prune(keep=DAY)
    await run_with_steps(store, 9)
    await run_one(store)
    await freeze(store, NOON + DAY)
    await store.history.prune(keep=DAY)
    await run_with_steps(store, 1)
    await freeze(store, NOON + 2 * DAY)
    pruned = await store.history.prune(keep=DAY)
    assert (pruned.jobs, pruned.more) == (0, True), "a day is dropped when its steps are gone"
    assert await steps_left(store) == 2 * (10 - 4)
    assert await prunes(store) == (2, 10)
    assert await steps_left(store) == 2


async def test_the_steps_of_the_rest_go_with_it(store):
    await freeze(store, NOON + 40 * DAY)  # no day is prepared for that
    await run_with_steps(store, 3)
    await freeze(store, NOON + 45 * DAY)
    assert await prunes(store) == (1, 3)
    assert await steps_left(store) == 0


async def test_steps_whose_jobs_were_deleted_by_hand_go_too(store, monkeypatch):
    monkeypatch.setattr(forgetting, "PAGE", 5)
    monkeypatch.setattr(history, "PAGES", 3)
    await run_with_steps(store, 2)
    async with store.transaction() as tx:
        for _ in range(40):
            await tx.execute(
                """INSERT INTO holdfast.step VALUES
                    ($1::uuid, 0, 's', 0, 1, now(), now(), 'step', 'done', '', '', NULL)""",
                new_id(),
            )
    calls, _ = await prunes(store)
    assert 2 <= calls <= 4
    assert await steps_left(store) == 4


async def test_steps_of_an_older_generation_go_with_the_job(store):
    await freeze(store, NOON)
    await store.history.prune(keep=DAY)
    job_id = await put(store)
    [claim] = await take(store)
    await store.steps.write(claim, Step(name="a", number=0))
    await end(store, claim, Dead("x"))
    await store.dead.replay([job_id], actor="ada", args="{}")
    [claim] = await take(store)
    assert await end(store, claim)
    await freeze(store, NOON + 2 * DAY)
    assert await prunes(store) == (1, 1)
    assert await steps_left(store) == 0
