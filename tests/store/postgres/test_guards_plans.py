"""The verbs of guards read the rows they need, also with 100,000 keys, a plan of before, and no statistics."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.store.breakers import BreakerReport, BreakerState, Probe
from holdfast.store.postgres import breakers, guards, quota
from holdfast.store.quota import Grant, Return, Want

MANY = 100_000
NAMES = [f"api{number}" for number in range(5)]


@pytest.fixture
async def connection(store):
    """One of the store's own connections, as it plans."""
    found = await store.database.pool.acquire()
    yield found
    store.database.pool.release(found)


async def fill(connection):
    """A fiftieth is slowed, a fiftieth paused, and a hundredth to be forgotten."""
    await connection.execute(
        f"""INSERT INTO holdfast.bucket (name, key, level, at, rate, slowed, paused_until, forget)
        SELECT 'api' || n % 5, 'k' || n, 0, holdfast.now(), 1, CASE WHEN n % 50 = 0 THEN n END,
            CASE WHEN n % 50 = 1 THEN holdfast.now() + interval '1 hour' END,
            CASE WHEN n % 100 = 2 THEN 0 ELSE 1e9 END
        FROM generate_series(1, {MANY}) AS n;
        INSERT INTO holdfast.breaker (guard, node, state, generation, open_for, calls, failures, slow, at, until, forget)
        SELECT 'api' || n % 1000, 'n' || n / 1000, 'closed', 0, 0, 0, 0, 0, holdfast.now(),
            holdfast.now() + interval '1 hour', CASE WHEN n % 100 = 2 THEN 0 ELSE 1e9 END
        FROM generate_series(1, 20000) AS n;
        INSERT INTO holdfast.probe (token, guard, node, at, until, forget)
        SELECT n, 'api' || n, 'n', holdfast.now(), holdfast.now() + interval '1 hour', 1e9 FROM generate_series(1, 20000) AS n"""
    )


def statements():
    grants = [Grant("api1", f"k{5 * n + 1}", 1.0, 0.0, 1.0, 0.0, 0, 0.0, 0.0) for n in range(20)]
    said = [BreakerReport(name, BreakerState.CLOSED) for name in NAMES]
    turn, back, probe = _all(breakers.probe("api1", "n1", permits=1, lease=5), [[], [], []])
    return {
        "take": next(quota.take([Want(each.name, each.key, 1, 1, 1, 1) for each in grants])),
        "give back": next(quota.give_back([Return(grant, 1) for grant in grants])),
        "slow": next(quota.slow("api1", "k1", rate=1.0, pause=5.0, version=0, in_row=1)),
        "calm": next(quota.calm("api1", "k1", in_row=1)),
        "speed up": next(quota.sped("api1", "k1", rate=None, version=0)),
        "report": next(breakers.report("n1", said, ttl=5)),
        "open": next(breakers.open_fleet("api1", generation=0, open_for=5)),
        "close": next(breakers.close_fleet("api1", generation=0)),
        "probe, its turn": turn,
        "probe, set back": back,
        "probe": probe,
        "probed": next(breakers.probed(Probe("api1", "n1", 1, 0.0))),
        "free": next(quota.free("api1", limit=50)),
        "silence": guards.Statement(guards._SILENCE, ("api1",)),
        "is it known": next(guards.reset("api1", actor="ada")),
        "names": next(guards.find(5)),
        **{f"prune {n}": guards.Statement(sql, (50,)) for n, sql in enumerate(guards._PRUNES)},
        "nodes": guards.Statement(guards._NODES, (NAMES, 5)),
        "slowest": guards.Statement(guards._SLOWEST, (NAMES, 5)),
        "longest": guards.Statement(guards._LONGEST, (NAMES, 5)),
    }


def _all(procedure, answers):
    """Every statement that it yields."""
    found = [next(procedure)]
    for answer in answers:
        try:
            found.append(procedure.send(answer))
        except StopIteration:
            break
    return found


@pytest.mark.parametrize("statistics", ["none", "of before", "of now"])
async def test_no_verb_reads_more_rows_than_it_needs(connection, statistics):
    if statistics == "of before":
        await connection.execute("ANALYZE")
    await fill(connection)
    if statistics == "of now":
        await connection.execute("ANALYZE")
    for name, statement in statements().items():
        await connection.execute("BEGIN")
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", *statement.params)
        await connection.execute("ROLLBACK")
        for node in _nodes(json.loads(text)[0]["Plan"]):
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            # Those of one limiter that are slowed or paused are all looked at, not the rest of its 20,000.
            assert read * node["Actual Loops"] <= (15_000 if name == "free" else 250), f"{name}: {node}"
            if node.get("Relation Name") in ("bucket", "breaker", "probe"):
                assert node["Node Type"] != "Seq Scan", f"{name}: {node}"


def _nodes(plan):
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


@pytest.mark.parametrize("table", ["bucket", "breaker"])
async def test_an_update_stays_on_its_page(store, connection, table):
    """No column of an index changes but once a minute, so what is busy makes no work for the indexes."""
    before = await updates(connection, table)
    for _ in range(200):
        await store.guards.take([Want("api", "k", 1, 1, 100, 100)])
        await store.guards.report("n1", [BreakerReport("api", BreakerState.CLOSED)], ttl=5)
    async with asyncio.timeout(30):  # sessions tell the statistics about once a second
        while (after := await updates(connection, table))[0] - before[0] < 199:
            await asyncio.sleep(0.1)
    assert after[1] - before[1] >= 190, "they are all but a few"


async def updates(connection, table):
    """So far: all, and those that left the indexes alone."""
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    return await connection.fetchrow(
        f"""SELECT pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_hot_updated(oid)
        FROM pg_class WHERE oid = 'holdfast.{table}'::regclass"""
    )
