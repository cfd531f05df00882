"""`holdfast guards` on both stores: what the fleet says, what people decide, and the jobs that wait."""

from cli_kit import audit

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


def test_a_guard_is_reset(shop, on_store):
    assert shop("guards", "reset", "stripe") == 1
    assert "No guard 'stripe' has been heard of" in shop.err
    on_store(busy)
    on_store(open_for_all)
    assert shop("guards", "reset", "stripe") == 0
    [guard] = shop.json("guards")["guards"]
    assert (guard["state"], guard["nodes"], guard["slowed"], guard["paused"]) == ("closed", [], 0, 0)
