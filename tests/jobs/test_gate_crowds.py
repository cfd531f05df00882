"""Many jobs, or many keys, before a gate: they are held and let go together, and nobody else waits for them."""

import asyncio
from collections import Counter

import pytest
from waiting import heard, until

from holdfast.guards import Breaker, Limiter
from holdfast.jobs.releases import Releases
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.states import Held


def counted(monkeypatch, subject, *verbs):
    """How often each of these verbs of a store is asked."""
    asked = Counter()

    def counting(verb, name):
        async def call(*args, **named):
            asked[name] += 1
            return await verb(*args, **named)

        return call

    for name in verbs:
        monkeypatch.setattr(subject, name, counting(getattr(subject, name), name))
    return asked


@pytest.mark.parametrize("by", ["breaker", "limiter"])
async def test_a_job_behind_a_thousand_refused_ones_does_not_wait_for_each(hf, by, monkeypatch):
    parts = {"breaker": Breaker(failures=1, cooldown=60)}
    if by == "limiter":
        parts = {"limiter": Limiter(rate=0.01, burst=1, per="user:{user}")}
    guard = hf.guard("api", **parts)
    if by == "breaker":
        guard.breaker.hold_open()
    else:
        guard.limiter.throttled(60, key="user:7")

    @hf.task(guard=guard)
    async def ask(user: int = 7) -> None: ...

    @hf.task
    async def other() -> str:
        return "done"

    await ask.enqueue_many([{"user": 7}] * 1000)
    handle = await other.enqueue()
    asked = counted(monkeypatch, hf.store.holds, "hold", "shut_gates")
    with heard("job.gated") as refused:
        async with hf.worker({"default": 4}):
            assert await handle.result(30) == "done"
    assert len(refused) < 25
    assert asked["hold"] < 25
    assert sum(each.number for each in await hf.store.holds.gated()) == 1000


async def test_what_is_behind_an_open_breaker_comes_back_when_it_is_closed(hf):
    guard = hf.guard("api", breaker=Breaker(failures=1, cooldown=60), limiter=Limiter(rate=1e5, burst=1e5))
    guard.breaker.hold_open()

    @hf.task(guard=guard)
    async def ask() -> None:
        await guard.call(asyncio.sleep, 0)

    handles = await ask.enqueue_many([{}] * 60)
    async with hf.worker({"default": 4}):
        await until(lambda: _held(hf, 60))
        guard.breaker.reset()
        for handle in handles:
            await handle.result(30)
        records = [await handle.record() for handle in handles]
    assert {record.attempt for record in records} == {1}


async def _held(hf, number):
    return sum(each.number for each in await hf.store.holds.gated()) == number


async def test_hundreds_of_keys_are_let_go_in_one_transaction(hf, monkeypatch):
    guard = hf.guard("api", limiter=Limiter(rate=1, burst=1, per="user:{user}"))
    jobs = [NewJob(id=new_id(), task="ask", guard=f"api/user:{n % 300}") for n in range(600)]
    await hf.store.jobs.enqueue(jobs)
    claims = await hf.store.claims.claim({"default": 600}, lease=60, worker="w")
    await hf.store.holds.hold(claims, Held.GUARD)
    asked = counted(monkeypatch, hf.store.holds, "gates", "gated", "unhold", "open_gates")
    releases = Releases(hf.store, lambda: [guard], ["ask"], owner="w")
    assert await releases._look()
    assert asked == {"gates": 1, "open_gates": 1}
    ready = await hf.store.claims.claim({"default": 600}, lease=60, worker="w")
    assert sorted(Counter(claim.guard for claim in ready).values()) == [1] * 300


async def test_who_lets_go_of_nothing_looks_seldom(hf):
    """Another has the lease: this one need not list all keys several times a second."""
    guard = hf.guard("api", limiter=Limiter(rate=1, burst=1))
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="ask", guard="api")])
    await hf.store.holds.hold(await hf.store.claims.claim({"default": 1}, lease=60, worker="w"), Held.GUARD)
    one, two = (Releases(hf.store, lambda: [guard], ["ask"], owner=owner) for owner in ("one", "two"))
    assert await one._look()
    await hf.store.holds.hold(await hf.store.claims.claim({"default": 1}, lease=60, worker="w"), Held.GUARD)
    assert not await two._look()


async def _back(hf):
    """Whatever was let go comes to a worker, is refused, and is held again."""
    claims = await hf.store.claims.claim({"default": 9}, lease=60, worker="w")
    await hf.store.holds.hold(claims, Held.GUARD)
    return len(claims)


async def test_a_job_goes_when_the_fleet_has_quota_and_again_when_it_was_too_early(hf, manual_clock):
    """Other processes call, too: what this one knows of a key of three seconds is not enough."""
    guard = hf.guard("api", limiter=Limiter(rate=1 / 3, burst=1))
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="ask", guard="api") for _ in range(3)])
    await _back(hf)
    left = {"": 0.0}

    async def ahead(*_):
        return left

    releases = Releases(hf.store, lambda: [guard], ["ask"], owner="w", ttl=60, ahead=ahead)
    assert (await releases._look(), await _back(hf)) == (True, 0), "another has just called"
    left[""] = 1.0
    assert (await releases._look(), await _back(hf)) == (True, 1)
    assert (await releases._look(), await _back(hf)) == (True, 0), "it may be on its way to its call"
    manual_clock.advance(1.1)
    assert (await releases._look(), await _back(hf)) == (True, 1), "it was refused, and nobody has called"
    left[""] = 0.0
    manual_clock.advance(60)
    assert (await releases._look(), await _back(hf)) == (True, 0)
