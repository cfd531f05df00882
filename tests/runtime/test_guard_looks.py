"""`hf.guards.look(name, key=…)`: how a guard of the fleet is, from any process, quick enough for a page."""

import asyncio
from time import perf_counter

import pytest
from waiting import until

from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, GuardLook, Limiter, State
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.breakers import BreakerReport, BreakerState
from holdfast.store.quota import Want
from holdfast.store.records import NewJob
from holdfast.store.states import Held


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def place(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url"), None
    redis = request.getfixturevalue("own_valkey").url if request.param == "redis" else None
    return f"sqlite:///{tmp_path / 'jobs.db'}", redis


@pytest.fixture
async def pages(place):
    """A process that makes no calls, and declares nothing."""
    async with Holdfast(place[0], guards=place[1]) as hf:
        yield hf


@pytest.fixture
async def caller(place, pages):
    hf = Holdfast(place[0], guards=place[1])
    hf.guard(
        "api",
        breaker=Breaker(failures=2, cooldown=60),
        limiter=Limiter(
            rate=100, floor=1, ceiling=100, per="user:{user}", pause=Backoff(first=300, ceiling=2400)
        ),
    )
    async with hf:
        yield hf


async def refuse():
    raise ConnectionRefusedError(111, "no")


async def test_what_is_well_says_nothing(caller):
    assert await caller.guards.look("api") == GuardLook(name="api")
    assert await caller.guards.find() == [GuardLook(name="api")]


async def test_who_was_told_to_pause_sees_it_at_once(caller):
    """Before any other process has heard of it: the same one may draw the page."""
    caller._inside.fleet.guards["api"].limiter.throttled(key="user:7")
    look = await caller.guards.look("api", key="user:7")
    assert 290 < look.paused_until - await caller.store.now() < 360.1
    assert look.why is not None
    caller._inside.fleet.guards["api"].limiter.throttled()
    assert [each.paused_until is not None for each in await caller.guards.find()] == [True]


async def test_a_pause_of_a_key_its_reason_and_the_rate(caller, pages):
    limiter = caller._inside.fleet.guards["api"].limiter
    limiter.throttled(key="user:7")

    async def is_told():
        return (await pages.guards.look("api", key="user:7")).paused_until

    await until(is_told)
    look = await pages.guards.look("api", key="user:7")
    assert look.state is State.CLOSED
    assert 290 < look.paused_until - await pages.store.now() < 360.1
    assert look.why == "the other side asked for a pause, or for less"
    assert (look.rate, look.interval) == (pytest.approx(50, rel=0.5), pytest.approx(1 / look.rate))
    assert (await pages.guards.look("api", key="user:8")).paused_until is None
    name, key = "api", "user:7"
    await caller._inside.fleet._shared.slow(name, key, rate=None, pause=600, version=2**62, in_row=2)
    assert "throttled 2 times in a row" in (await pages.guards.look("api", key="user:7")).why


async def test_an_open_breaker_since_when_and_why(caller, pages):
    guard = caller._inside.fleet.guards["api"]
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await guard.call(refuse)

    async def is_open():
        return (await pages.guards.look("api")).state is State.OPEN

    await until(is_open)
    look = await pages.guards.look("api")
    assert look.why.startswith("open in 1 of ")
    if pages._inside.guards_elsewhere is None:  # there it is known only until when
        assert 0 <= await pages.store.now() - look.since < 5
    assert [each.state for each in await pages.guards.find()] == [State.OPEN]


async def test_who_holds_it(caller, pages):
    await pages.store.guards.hold("api", BreakerState.OPEN, actor="ada")
    look = await pages.guards.look("api")
    assert (look.state, look.why, look.held_by) == (State.OPEN, "held open by ada", "ada")
    assert 0 <= await pages.store.now() - look.since < 60


async def test_when_its_time_is_over_it_is_half_open_until_somebody_has_found_out(pages):
    if pages._inside.guards_elsewhere is not None:
        return
    await pages.store.guards.report("n", [BreakerReport("api", BreakerState.CLOSED)], ttl=60)
    await pages.store.guards.open_fleet("api", generation=0, open_for=0.05)
    await asyncio.sleep(0.1)
    assert (await pages.guards.look("api")).state is State.HALF_OPEN
    await pages.store.guards.close_fleet("api", generation=1)
    assert (await pages.guards.look("api")).state is State.CLOSED


async def test_how_many_jobs_wait_under_it(pages):
    await pages.store.guards.report("n", [BreakerReport("api", BreakerState.CLOSED)], ttl=60)
    keys = ["api/user:7"] * 3 + ["api"] * 2 + ["apis", "ap"]
    await pages.store.jobs.enqueue([NewJob(id=new_id(), task="t", guard=key) for key in keys])
    await pages.store.holds.hold(
        await pages.store.claims.claim({"default": 100}, lease=30, worker="w"), Held.GUARD
    )
    assert (await pages.guards.look("api")).held == 5
    assert (await pages.guards.look("api", key="user:7")).held == 3
    assert (await pages.guards.look("api", key="user:8")).held == 0


async def test_a_name_that_nobody_knows_is_refused(caller, pages):
    with pytest.raises(UsageError, match=r"No guard 'apl' is declared here.* Did you mean 'api'"):
        await caller.guards.look("apl")
    with pytest.raises(UsageError, match="nobody has heard of one"):
        await pages.guards.look("other")


async def test_sync_code_looks_too(caller, place):
    def look():
        hf = Holdfast(place[0], guards=place[1])
        hf.guard("api")
        try:
            return hf.blocking.guards.look("api"), hf.blocking.guards.find()
        finally:
            hf.blocking.close()

    assert await asyncio.to_thread(look) == (GuardLook(name="api"), [GuardLook(name="api")])


async def test_it_is_quick_beside_many_keys_and_jobs(pages):
    store = pages.store
    for part in range(10):
        await store.guards.take([Want("api", f"user:{part}:{n}", 1, 1, 10, 10) for n in range(1000)])
        await store.jobs.enqueue([NewJob(id=new_id(), task="t", guard=f"api/user:{n}") for n in range(1000)])
    while claims := await store.claims.claim({"default": 2000}, lease=60, worker="w"):
        await store.holds.hold(claims, Held.GUARD)
    took = []
    for _ in range(30):
        began = perf_counter()
        look = await pages.guards.look("api", key="user:7")
        took.append(perf_counter() - began)
        assert look.held == 10
    assert (await pages.guards.look("api")).held == 1000
    assert sorted(took)[15] < 0.02
