"""`holdfast guards` on both stores: what the fleet says, what people decide, and the jobs that wait."""

import asyncio

import pytest
from cli_kit import audit

from holdfast.fleet.redis import RedisGuards
from holdfast.kernel.ids import new_id
from holdfast.store.breakers import BreakerReport, BreakerState
from holdfast.store.quota import Want
from holdfast.store.records import NewJob
from holdfast.store.states import Held


async def busy(store):
    """Two nodes of one guard, one of them open, a key that was slowed, and three jobs that are held."""
    open_ = BreakerReport("stripe", BreakerState.OPEN, open_for=30.0, calls=20, failures=15)
    await store.guards.report("n1", [open_], ttl=60)
    await store.guards.report("n2", [BreakerReport("stripe", BreakerState.CLOSED, calls=5)], ttl=60)
    await store.guards.take([Want("stripe", "user:1", 1, 1, 10, 10)])
    await store.guards.slow("stripe", "user:1", rate=0.5, pause=40.0)
    jobs = [NewJob(id=new_id(), task="mail.send", guard="stripe/user:1") for _ in range(3)]
    await store.jobs.enqueue(jobs)
    claims = await store.claims.claim({"default": 3}, lease=30, worker="w")
    await store.holds.hold(claims, Held.GUARD)


async def open_for_all(store):
    assert await store.guards.open_fleet("stripe", generation=0, open_for=60)


def test_the_guards_of_the_fleet(shop, on_store):
    assert shop("guards") == 0
    assert shop.out == "No guard has been heard of.\n"
    on_store(busy)
    assert shop("guards") == 0
    [_, row] = [line.split("  ") for line in shop.out.splitlines() if line.strip(" -─")]
    cells = [cell.strip() for cell in row if cell.strip()]
    assert cells[:2] == ["stripe", "closed"]
    assert cells[2:6] == ["2", "1", "25", "15"]
    assert cells[-1] == "3"
    [guard] = shop.json("guards")["guards"]
    assert guard["state"] == "closed"
    assert [node["node"] for node in guard["nodes"]] == ["n1", "n2"]
    assert (guard["jobs_held"], guard["slowed"], guard["paused"]) == (3, 1, 1)
    on_store(open_for_all)
    assert shop("guards", "list") == 0
    assert "open for 60 s" in shop.out or "open for 59 s" in shop.out


def test_a_person_holds_a_guard_and_lets_go(shop, on_store):
    assert shop("guards", "hold-open", "stripe") == 0
    assert "stripe is held open: no call goes through" in shop.out
    assert shop("guards") == 0
    assert "held open by ada@shop" in shop.out
    assert shop.json("guards", "hold-closed", "stripe") == {"guard": "stripe", "held": "closed"}
    assert shop("guards", "release", "stripe") == 0
    assert shop("guards", "release", "stripe") == 1
    assert "Nobody holds 'stripe'" in shop.err
    assert [action for _, action in on_store(audit, "guard:stripe")] == [
        "guard.let_go", "guard.held", "guard.held",
    ]  # fmt: skip


async def heard_without_breaker(store):
    await store.guards.report("n1", [BreakerReport("plain", BreakerState.CLOSED)], ttl=60)
    await store.guards.report("n1", [BreakerReport("stripe", BreakerState.CLOSED, generation=1)], ttl=60)


def test_a_guard_without_a_breaker_is_not_held(shop, on_store):
    on_store(heard_without_breaker)
    for act in ("hold-open", "hold-closed"):
        assert shop("guards", act, "plain") == 1
        assert "The guard 'plain' has no breaker, so there is nothing to hold" in shop.err
    assert shop.json("guards", "hold-open", "plain") == {"guard": "plain", "held": None}
    assert on_store(audit, "guard:plain") == []
    assert shop("guards", "hold-open", "stripe") == 0


async def many_keys(store):
    """More keys than a listing has rows, and a guard whose name begins like another's."""
    for name in ("a", "a/b"):
        await store.guards.report("n1", [BreakerReport(name, BreakerState.CLOSED)], ttl=60)
    keys = [
        *(f"a/user:{number}" for number in range(30)),
        *(f"a/b/user:{number}" for number in range(5)),
        "ab",
    ]
    await store.jobs.enqueue([NewJob(id=new_id(), task="t", guard=key) for key in keys])
    await store.holds.hold(await store.claims.claim({"default": 100}, lease=30, worker="w"), Held.GUARD)


def test_held_jobs_are_counted_once_and_all_of_them(shop, on_store):
    on_store(many_keys)
    for words in (("guards", "list", "--limit", "2"), ("guards", "--limit", "2", "list"), ("guards",)):
        found = shop.json(*words)["guards"]
        assert [(guard["name"], guard["jobs_held"]) for guard in found] == [("a", 30), ("a/b", 5)]
    assert len(shop.json("guards", "list", "--limit", "1")["guards"]) == 1


def test_the_doctor_names_guards_that_nobody_has(shop, on_store):
    assert shop("doctor") in (0, 1)
    assert "OK    held by guards" in shop.out
    on_store(many_keys)
    shop("doctor")
    assert "WARN  held by guards" in shop.out
    assert "Jobs are held by guards that no process has: 'ab'." in shop.out


# --- on Redis ---


@pytest.fixture
def on_redis(shop, own_valkey, monkeypatch):
    """The command line of a program whose guards meet on a Redis; and to do something there."""
    monkeypatch.setenv("HOLDFAST_GUARDS_URL", own_valkey.url)

    def act(verb):
        async def inside():
            guards = RedisGuards(own_valkey.url)
            await guards.open()
            try:
                return await verb(guards)
            finally:
                await guards.close()

        return asyncio.run(inside())

    return act


async def busy_on_redis(guards):
    report = BreakerReport("stripe", BreakerState.OPEN, generation=2, open_for=30.0, calls=20, failures=15)
    [told] = await guards.report("n1", [report], ttl=60)
    assert await guards.open_fleet("stripe", generation=told.generation, open_for=60)
    for number in range(3):
        await guards.take([Want("stripe", f"user:{number}", 1, 1, 10, 10)])
        await guards.slow("stripe", f"user:{number}", rate=0.5 + number, pause=40.0 * number)


async def paces(guards):
    wants = [Want("stripe", f"user:{number}", 1e-3, 1, 10, 10) for number in range(3)]
    return [(grant.rate, grant.paused) for grant in await guards.take(wants)]


def test_what_is_on_redis_is_shown_and_reset(shop, on_store, on_redis):
    on_store(heard_without_breaker)
    on_redis(busy_on_redis)
    [_, guard] = shop.json("guards")["guards"]
    assert (guard["name"], guard["state"], guard["slowed"], guard["paused"]) == ("stripe", "open", 3, 2)
    assert [node["node"] for node in guard["nodes"]] == ["n1"]
    shop("guards")
    assert "to 0.5/s (user:0), paused for 80 s (user:2)" in shop.out or "paused for 79 s" in shop.out
    assert "open for 60 s" in shop.out or "open for 59 s" in shop.out
    assert shop("guards", "reset", "stripe") == 0
    assert on_redis(paces) == [(10, 0)] * 3
    [_, guard] = shop.json("guards")["guards"]
    assert (guard["state"], guard["nodes"], guard["slowed"], guard["paused"]) == ("closed", [], 0, 0)


def test_a_redis_that_is_gone_is_told_and_the_database_shown(shop, on_store, on_redis, own_valkey):
    on_store(heard_without_breaker)
    shop("doctor")
    assert "OK    guards on redis" in shop.out
    own_valkey.kill()
    assert shop("guards") == 0
    assert "This is what the database knows" in shop.err
    assert "stripe" in shop.out
    shop("doctor")
    assert "WARN  guards on redis" in shop.out
    assert "goes on with its share" in shop.out


def test_a_guard_is_reset(shop, on_store):
    assert shop("guards", "reset", "stripe") == 1
    assert "No guard 'stripe' has been heard of" in shop.err
    on_store(busy)
    on_store(open_for_all)
    assert shop("guards", "reset", "stripe") == 0
    [guard] = shop.json("guards")["guards"]
    assert (guard["state"], guard["nodes"], guard["slowed"], guard["paused"]) == ("closed", [], 0, 0)


async def paused_often(store):
    for node, paused in (("n1", 0.12), ("n2", 0.004)):
        await store.guards.report(node, [BreakerReport("stripe", BreakerState.CLOSED, paused=paused)], ttl=60)
    await store.guards.report("n1", [BreakerReport("other", BreakerState.CLOSED, paused=0.004)], ttl=60)


def test_how_much_of_the_last_hour_a_limiter_was_paused(shop, on_store):
    on_store(paused_often)
    assert shop("guards") == 0
    assert shop.out.count("of the last hour") == 1
    assert "paused 12 % of the last hour" in shop.out
    assert {each["name"]: each["paused_share"] for each in shop.json("guards")["guards"]} == {
        "other": 0.004,
        "stripe": 0.12,
    }


async def held_by_a_rate(store):
    await store.jobs.enqueue([NewJob(id=new_id(), task="mail.send", guard="rate:mail.send/user:7")])
    claims = await store.claims.claim({"default": 1}, lease=30, worker="w")
    await store.holds.hold(claims, Held.GUARD)
    return claims[0].job_id


def test_a_job_that_waits_for_its_rate_says_so(shop, on_store):
    job_id = on_store(held_by_a_rate)
    assert shop("jobs", "list") == 0
    assert "held: rate 'mail.send/user:7'" in shop.out
    assert shop("jobs", "show", job_id) == 0
    assert "rate 'mail.send/user:7': its turn comes" in shop.out
