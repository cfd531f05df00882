"""Claiming and finishing find rows by their indexes, with 100,000 jobs and with a plan made while there were none."""

from __future__ import annotations

import json
import time

import pytest
from kit import job, take

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.postgres import candidates, claiming, doubts, enqueue, finishes, gates, locks, steps
from holdfast.store.postgres.connection import BEGIN
from holdfast.store.postgres.low_water import MANY as MANY_DEAD
from holdfast.store.postgres.low_water import LowWater, from_the_top
from holdfast.store.postgres.transaction import _BEGIN as FREELY
from holdfast.store.records import Finish
from holdfast.store.statements import Statement
from holdfast.store.steps import Step

MANY = 100_000


@pytest.fixture
async def connection(store):
    """One of the store's own connections, as it plans."""
    found = await store.database.pool.acquire()
    yield found
    store.database.pool.release(found)


async def fill(connection):
    await connection.execute(
        f"""INSERT INTO holdfast.job (id, task, queue, args, state, lease_until, held, run_at)
        SELECT gen_random_uuid(), 'mail.send', 'default', '{{}}',
            CASE WHEN n % 10 = 0 THEN 'running' ELSE 'queued' END, CASE WHEN n % 10 = 0 THEN holdfast.now() END,
            CASE WHEN n % 10 = 1 THEN 'time' END, CASE WHEN n % 10 = 1 THEN holdfast.now() END
        FROM generate_series(1, {MANY}) AS n"""
    )


async def scans(connection, procedure) -> list[tuple[str, str | None, str | None]]:
    """Every scan in the generic plan of a procedure's first statement: its kind, table and index."""
    statement = next(procedure)
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE measured AS {statement.sql}")
    arguments = ", ".join(["NULL"] * len(statement.params))
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE measured ({arguments})")
    await connection.execute("DEALLOCATE measured; RESET plan_cache_mode")
    return list(_scans(json.loads(text)[0]["Plan"]))


def _scans(plan):
    if "Scan" in plan["Node Type"]:
        yield plan["Node Type"], plan.get("Relation Name"), plan.get("Index Name")
    for part in plan.get("Plans", ()):
        yield from _scans(part)


def marked():
    """As it is after a claim from the top in a table full of dead rows."""
    water = LowWater()
    water.tell(MANY_DEAD)
    water.learn([[*[None] * 4, "default", *[None] * 18, 0, 1]], from_the_top({"default": 1}))
    with water.timed({"default": 1}):
        time.sleep(0.3)  # it took so long that the next few begin at the mark
    assert water.marks({"default": 1}).used
    return water


def procedures():
    from holdfast.store.records import Claim

    held = Claim(job().id, 1, 0.0, "mail.send", "default", "{}", 1, 0, False, 0.0, 0)
    done = [Finish(held, Done())]
    return {
        "claim": claiming.claim({"default": 100}, lease=30, worker="w", water=LowWater()),
        "claim from a mark": claiming.claim({"default": 100}, lease=30, worker="w", water=marked()),
        "finish": finishes.finish(done),
        "finish with others": finishes.finish_plain(done),
        "finish, any": finishes.end([finishes.ending(item) for item in done]),
        "finish_and_claim": claiming.finish_and_claim(
            done, {"default": 100}, lease=30, worker="w", water=LowWater()
        ),
        "finish, with effects": doubts.leave_to_person([held.job_id]),
        "finish, a step": steps.write([steps.Write(held, Step(name="a", number=0))]),
        "finish, steps with others": steps.write(
            [steps.Write(held, Step(name="a", number=0))], impatient=True
        ),
        "renew": claiming.renew([held], lease=30),
        "rescue": finishes.find_ended(100),
        "gates": gates.gates(None, 100),
        "open gates": gates.open_gates({"g/1": 5, "g/2": 1}),
        "shut gates": gates.shut_gates(gates.Refused(["default"], ["g/1"], ["g"], ["t"], 1000), 10),
        "promote": candidates.find_candidates(100, candidates.Past()),
        "promote, places": only(Statement(candidates._PLACES, ("", "", 100))),
        "promote, some of each": only(
            Statement(candidates._SOME_OF_EACH, (5, [], [], [], ["default"], ["a"]))
        ),
    }


def only(statement):
    yield statement


@pytest.mark.parametrize("rows", ["none", "many, not analysed", "many, analysed"])
async def test_no_plan_walks_through_all_jobs(connection, rows):
    if rows != "none":
        await fill(connection)
    if "not" not in rows:
        await connection.execute("ANALYZE holdfast.job")
    served = {
        "rescue": {"job_for_rescue"},
        "shut gates": {"job_for_claim"},
        "promote": {"job_arrived", "job_due", "job_paused"},
        "promote, places": {"job_arrived_by_tenant"},
        "promote, some of each": {"job_arrived_by_tenant", "job_arrived_in_order"},
    }
    for name, procedure in procedures().items():
        begin = candidates.IN_ORDER if name.startswith("promote, ") else BEGIN
        await connection.execute(begin)
        found = [scan for scan in await scans(connection, procedure) if scan[1] == "job"]
        await connection.execute("ROLLBACK")
        assert not [scan for scan in found if scan[0] == "Seq Scan"], (
            f"{name} walks through all jobs: {found}"
        )
        indexes = {index for _, _, index in found if index}
        if "claim" in name:
            assert "job_for_claim" in indexes, f"{name} uses {indexes}"
        if name in ("gates", "open gates"):  # no job is held here: the two that list such are both empty
            assert indexes - {"job_pkey"} <= {"job_gated", "job_held_by_hand"}, f"{name} uses {indexes}"
        if name in served:
            assert indexes == served[name], f"{name} uses {indexes}"
        if "finish" in name or name == "renew":
            assert "job_pkey" in indexes
            assert "job_for_rescue" not in indexes, "looking up by id must not walk through all running jobs"


async def test_a_callers_own_statements_are_planned_freely(store):
    async with store.transaction() as tx:
        assert await tx.fetch(
            "SELECT current_setting('enable_seqscan'), current_setting('enable_hashjoin')"
        ) == [("on", "on")]
    async with store.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = on")
    assert await take(store) == []


async def test_a_callers_own_statements_are_planned_freely_also_after_a_finish(store, monkeypatch):
    """The finish of a job with keys is not: its statements are large, and the plans that they have are good."""
    await store.jobs.enqueue([job(ordered="box")])
    await store.holds.promote()
    [claim] = await take(store)
    settings, real = [], finishes.finish

    def finish(*given, **named):
        answer = yield from real(*given, **named)
        settings.append((yield Statement(_PLANNED))[0])  # from its first statement on
        return answer

    monkeypatch.setattr(finishes, "finish", finish)
    async with store.transaction() as tx:
        assert await store.claims.finish([Finish(claim, Done())], tx=tx) == [True]
        settings += await tx.fetch(_PLANNED)
    assert [tuple(each) for each in settings] == [("off", "force_generic_plan"), ("on", "auto")]


_PLANNED = "SELECT current_setting('enable_seqscan'), current_setting('plan_cache_mode')"


@pytest.mark.parametrize("number", [1, 20_000])
async def test_statistics_from_before_anything_ran_do_not_slow_the_finishes(store, connection, number):
    """They say that next to nothing is running. Believing them, the planner would compare all jobs with all given."""
    await store.jobs.enqueue([job() for _ in range(number)])
    await connection.execute("VACUUM ANALYZE holdfast.job")
    for name, procedure in procedures().items():
        if name.startswith(("claim", "rescue", "promote")) or name.endswith("gates"):
            continue  # they look up nothing by id
        statement = next(procedure)
        plan = await generic_plan(connection, statement)
        found = [scan for scan in _scans(plan) if scan[1] == "job"]
        lookups = [scan for scan in found if scan[2] == "job_pkey"]
        assert lookups, f"{name}: {found}"
        for scan in _nodes(plan):
            if scan.get("Index Name") == "job_pkey":
                assert "Index Cond" in scan, f"{name} walks through all jobs: {scan}"
            assert scan["Node Type"] != "Seq Scan" or scan["Relation Name"] != "job", name


def enqueues():
    keyed = job(unique="a", max_waiting=5)
    return {
        "unique": enqueue.enqueue([job(unique="a")]),
        "unique, in haste": enqueue.enqueue([job(unique="a")], impatient=True),
        "unique and bounded": enqueue.enqueue([keyed]),
        "unique and bounded, again": enqueue.enqueue([keyed], again=True),
        "plain, again": enqueue.enqueue([job()], again=True),
        "in order": enqueue.enqueue_in_turn([job(ordered="a")], ["a"]),
        "free orders": locks.take_free(["a"]),
        "holders": only(Statement(enqueue._HOLDERS, ([], []))),
        "stored twice": only(Statement(enqueue._UNDO_REPEATED, ([],))),
    }


@pytest.mark.parametrize("is_analysed", [False, True], ids=["never analysed", "analysed while empty"])
async def test_an_enqueue_looks_up_each_job_by_its_index_whatever_the_statistics_say(connection, is_analysed):
    """The table may grow by a million before they are looked at again, and a crowd may have just arrived."""
    if is_analysed:
        await connection.execute("ANALYZE holdfast.job, holdfast.history")
    await connection.execute("SET enable_sort = off")  # as where deliveries are stored
    for name, procedure in enqueues().items():
        plan = await generic_plan(connection, next(procedure))
        scans = [
            node for node in _nodes(plan) if node.get("Relation Name", "").startswith(("job", "history"))
        ]
        looks = [node for node in scans if "Scan" in node["Node Type"]]
        assert looks, name
        for node in looks:
            assert "Index Cond" in node, f"{name} walks through all of {node['Relation Name']}: {node}"


async def test_a_large_enqueue_of_a_caller_reads_no_more_than_it_stores(store):
    """Also with a plan that its session made when the table was empty, and was said to be so by its statistics."""
    async with store.transaction() as tx:
        await tx.execute("ANALYZE holdfast.job")
    for number in [1] * 10 + [5_000]:  # after five times, a plan may be kept
        async with store.transaction() as tx:
            await store.jobs.enqueue([job(unique=new_id()) for _ in range(number)], tx=tx)
    async with store.transaction() as tx:
        await store.jobs.enqueue([job(unique=new_id()) for _ in range(500)], tx=tx)
        [(read,)] = await tx.fetch(_READ)
    assert read <= 2_000


_READ = """
SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
WHERE schemaname = 'holdfast' AND relname = 'job'"""


async def generic_plan(connection, statement):
    await connection.execute(f"PREPARE measured AS {statement.sql}")
    arguments = ", ".join(["NULL"] * len(statement.params))
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE measured ({arguments})")
    await connection.execute("DEALLOCATE measured")
    return json.loads(text)[0]["Plan"]


def _nodes(plan):
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


@pytest.mark.parametrize("own", [True, False], ids=["own", "callers"])
async def test_a_batch_of_finishes_reads_no_more_rows_than_it_ends(store, own):
    """Whoever plans: on our connections, and in a transaction of a caller's, where the planner is free."""
    await store.jobs.enqueue([job() for _ in range(20_000)])
    async with store.transaction() as tx:
        await tx.execute("ANALYZE holdfast.job")
    taken = await take(store, 2_000)
    for outcome in (Done(), Retry(after=5)):
        batch, taken = taken[:500], taken[500:]
        statement = next(
            finishes.end([finishes.ending(Finish(claim, outcome)) for claim in batch])
            if outcome != Done()
            else finishes.finish([Finish(claim, outcome) for claim in batch])
        )
        found = await (store.database.pool.acquire() if own else store.database.begin(FREELY))
        try:
            text = await found.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", *statement.params)
        finally:
            store.database.pool.release(found, broken=True)
        for node in _nodes(json.loads(text)[0]["Plan"]):
            read = (
                node["Actual Rows"]
                + node.get("Rows Removed by Filter", 0)
                + node.get("Rows Removed by Join Filter", 0)
            )
            assert read * node["Actual Loops"] <= 1_000, node
