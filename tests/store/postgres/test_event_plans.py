"""The verbs of events read the rows they need, with 130,000 events, a plan of before, and no statistics."""

from __future__ import annotations

import json

import pytest
from kit import job

from holdfast.kernel.ids import new_id
from holdfast.kernel.portions import PORTION
from holdfast.store.event_records import Delivery
from holdfast.store.postgres import emitting, finding, groups, inbox, outbox, relaying
from holdfast.store.postgres.adapters.text import text_form
from holdfast.store.postgres.transaction import _BEGIN as FREELY
from holdfast.store.records import Lease
from holdfast.store.statements import Statement
from holdfast.testing.conformance.outbox import event

LEASE = Lease("holdfast:relay", "r", 1, 0.0)
TABLES = {"outbox", "event_key", "event_block", "inbox", "job", "history"}


@pytest.fixture
async def connection(store):
    """One of the store's own connections, as it plans."""
    found = await store.database.pool.acquire()
    yield found
    store.database.pool.release(found)


async def fill(connection):
    """50,000 are published, 50,000 wait, and 30,000 stand behind a quarantined one, older than all that wait."""
    await connection.execute(
        """INSERT INTO holdfast.lease (name, owner, token, until)
        VALUES ('holdfast:relay', 'r', 1, holdfast.now() + interval '1 day');
        INSERT INTO holdfast.outbox (id, type, key, version, data, state, position, published_at, correlation_id)
        SELECT gen_random_uuid(), 't', 'k' || n % 1000, n / 1000 + 1, '{}', 'published', n, holdfast.now(), 'c' || n / 5
        FROM generate_series(1, 50000) AS n;
        UPDATE holdfast.event_position SET value = 50000;
        INSERT INTO holdfast.outbox (id, type, key, version, data, held, state)
        SELECT gen_random_uuid(), 't', 'poison', n, '{}', true, CASE n WHEN 1 THEN 'quarantined' ELSE 'waiting' END
        FROM generate_series(1, 30000) AS n;
        INSERT INTO holdfast.event_block (key, version) VALUES ('poison', 1);
        INSERT INTO holdfast.outbox (id, type, key, version, data)
        SELECT gen_random_uuid(), 't', 'w' || n, 1, '{}' FROM generate_series(1, 50000) AS n;
        INSERT INTO holdfast.event_key (key, version) SELECT key, max(version) FROM holdfast.outbox GROUP BY key;
        INSERT INTO holdfast.inbox (group_name, event_id, job_id, at)
        SELECT 'g' || n % 3, 'e' || n, gen_random_uuid(), holdfast.now() FROM generate_series(1, 30000) AS n;
        INSERT INTO holdfast.job (id, task, queue, args, correlation_id)
        SELECT gen_random_uuid(), 't', 'default', '{}', 'c' || n / 5 FROM generate_series(1, 20000) AS n;
        INSERT INTO holdfast.history (id, enqueued_at, finished_at, attempt, interruptions, generation, priority, state,
            task, queue, args, correlation_id)
        SELECT gen_random_uuid(), holdfast.now(), holdfast.now(), 1, 0, 0, 0, 'succeeded', 't', 'default', '{}', 'c' || n / 5
        FROM generate_series(1, 20000) AS n"""
    )


async def statements(connection):
    ids = [
        str(row[0])
        for row in await connection.fetch(
            "SELECT id FROM holdfast.outbox WHERE state = 'waiting' ORDER BY seq DESC LIMIT 100"
        )
    ]
    found = {"state": None, "type": None, "key": None, "correlation_id": None, "limit": 50}
    wanted = {"state": None, "held": None, "before": None, "limit": 50}
    deliveries = [Delivery(f"e{n}", job()) for n in range(100)]
    live, over = _all(finding.find(**wanted, correlation_id="c7"), [[]])
    ready, held = _all(outbox.find(**found | {"state": "waiting"}), [[]])
    return {
        "emit": next(emitting.emit([event(f"w{n}") for n in range(100)])),
        "emit, with others": next(emitting.emit([event(f"w{n}") for n in range(100)], impatient=True)),
        "emit one": next(emitting.emit([event("w1")])),
        "emit one without a key": next(emitting.emit([event(None)])),
        "emit again, locks": next(emitting.emit([event("w1")], again=True)),
        "emit again": Statement(emitting._KNOWN, (ids,)),
        "look": next(relaying.look(LEASE, limit=100)),
        "rested": Statement(relaying._RESTED, (100,)),
        "due": Statement(relaying._OF_KEYS, (50, 100)),
        "ready": Statement(relaying._READY, (200, 100)),
        "set aside": Statement(relaying._SET_ASIDE, (200, 100, None)),
        "events": Statement(relaying._EVENTS, (list(range(1, 101)), PORTION)),
        "stamp": next(relaying.stamp(LEASE, ids)),
        "positions": Statement(relaying._POSITIONS, (ids,)),
        "failing": Statement(relaying._FAILING, (ids[0], 5.0)),
        "failed": Statement(relaying._FAILED, (100_000, "waiting", None, "busy")),
        "let go": Statement(relaying._LET_GO, ("w1", 5)),
        "hold": Statement(relaying._HOLD, ("poison", 1, 50)),
        "unblock": Statement(relaying._UNBLOCK, (["poison"], [1])),
        "quarantined": next(relaying.requeue(ids, actor="ada")),
        "log": next(outbox.log(after=20_000, before=None, since=None, limit=100)),
        "read": next(inbox.read("g0", after=20_000, limit=100)),
        "not published": Statement(groups._UNPUBLISHED[0], (100,)),
        "not published, held": Statement(groups._UNPUBLISHED[1], (100,)),
        "not read": Statement(groups._UNREAD, (20_000, 100)),
        "deliveries": Statement(groups._QUEUED, (["t"], 100)),
        "ends of the log": Statement(outbox._ENDS),
        "since": Statement(outbox._FIRST_AFTER, (25_000, 50_000)),
        "get": next(outbox.get(ids[0])),
        "find": next(outbox.find(**found)),
        "find by key": next(outbox.find(**found | {"key": "k7"})),
        "find by correlation": next(outbox.find(**found | {"correlation_id": "c7"})),
        "find what waits": ready,
        "find what is held": held,
        "find what is quarantined": next(outbox.find(**found | {"state": "quarantined"})),
        "version": next(outbox.version("k7")),
        "prune": next(outbox.prune(keep=0, limit=100)),
        "deliver": Statement(
            inbox._STORE,
            ("g0", [each.event_id for each in deliveries], [each.job.id for each in deliveries]),
        ),
        "are at": next(outbox.are_at(5, ids[:2])),
        "delivered": Statement(inbox._JOBS, ("g0", [each.event_id for each in deliveries])),
        "handled": next(inbox.handled("g0", "e3")),
        "job of": next(inbox.job_of("e29999")),
        "job of an event that nobody has": next(inbox.job_of("none")),
        "jobs by correlation": live,
        "jobs that are over by correlation": over,
        "a job that is not there": next(finding.find(**wanted, correlation_id=new_id())),
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
    for name, statement in (await statements(connection)).items():
        await connection.execute(f"PREPARE measured AS {statement.sql}")
        given = ", ".join(map(literal, statement.params))
        await connection.execute("BEGIN")
        text = await connection.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE measured{f'({given})' if given else ''}"
        )
        await connection.execute("ROLLBACK; DEALLOCATE measured")
        look_at(name, json.loads(text)[0]["Plan"])


def literal(value):
    """So that the plan is the one for whatever is given, as in production."""
    text = text_form(value)
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


async def test_in_a_callers_own_transaction_it_is_the_same(store, connection):
    """The planner is free there."""
    await fill(connection)
    await connection.execute("ANALYZE")
    theirs = ("emit", "emit one", "emit one without a key", "emit again", "version", "handled")
    for name, statement in (await statements(connection)).items():
        if name in theirs:
            found = await store.database.begin(FREELY)
            try:
                text = await found.fetchval(
                    f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", *statement.params
                )
            finally:
                store.database.pool.release(found, broken=True)
            look_at(name, json.loads(text)[0]["Plan"])


def look_at(name, plan):
    for node in _nodes(plan):
        read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        assert read * node["Actual Loops"] <= 1_000, f"{name}: {node}"
        if node.get("Relation Name") in TABLES:
            assert node["Node Type"] != "Seq Scan" or read <= 1, f"{name}: {node}"


def _nodes(plan):
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


async def test_the_counter_of_positions_stays_on_its_page(connection):
    """It is written with every batch of a relay."""
    for _ in range(100):
        await connection.execute("UPDATE holdfast.event_position SET value = value + 1")
    assert await connection.fetchval("SELECT pg_relation_size('holdfast.event_position')") <= 8 * 8192
